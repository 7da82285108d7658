"""As much of WebSocket (RFC 6455) as a client of one known server needs, without input or output.

Strict: what the standard forbids ends the connection. No extensions are asked for.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from enum import IntEnum

from .errors import ProtocolError

# One message. The server sends output in pieces of 64 KiB.
MESSAGE_BYTES_MAX = 4 << 20
CONTROL_BYTES_MAX = 125
NORMAL_CLOSURE = 1000
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Opcode(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


@dataclass(frozen=True)
class Message:
    """A whole message, or a control frame."""

    opcode: Opcode
    payload: bytes

    @property
    def close_code(self) -> int:
        """Why it was closed; 1005 stands for none that was given."""
        return int.from_bytes(self.payload[:2], "big") if self.payload else 1005


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(16)).decode()


def upgrade_headers(key: str) -> dict[str, str]:
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
    }


def check_upgrade(headers: dict[str, str], key: str) -> None:
    """Whether the answer to an upgrade is one of a WebSocket server, to this very request."""
    expected = base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
    is_upgrade = headers.get("upgrade", "").lower() == "websocket"
    is_connection = "upgrade" in headers.get("connection", "").lower()
    if not (is_upgrade and is_connection and headers.get("sec-websocket-accept") == expected):
        raise ProtocolError("the server does not speak WebSocket here")
    if "sec-websocket-extensions" in headers or "sec-websocket-protocol" in headers:
        raise ProtocolError("the server speaks a WebSocket that was not asked for")


def encode(opcode: Opcode, payload: bytes) -> bytes:
    """One frame of a client: whole, and masked as the standard wants it."""
    length = len(payload)
    head = bytearray([0x80 | opcode])
    if length <= CONTROL_BYTES_MAX:
        head.append(0x80 | length)
    elif length < 1 << 16:
        head.append(0x80 | 126)
        head += length.to_bytes(2, "big")
    else:
        head.append(0x80 | 127)
        head += length.to_bytes(8, "big")
    mask = secrets.token_bytes(4)
    return bytes(head) + mask + masked(payload, mask)


def close_frame(code: int = NORMAL_CLOSURE) -> bytes:
    return encode(Opcode.CLOSE, code.to_bytes(2, "big"))


def masked(payload: bytes, mask: bytes) -> bytes:
    """The payload under a mask of four bytes; twice is the payload again."""
    whole = mask * (len(payload) // 4 + 1)
    both = int.from_bytes(payload, "big") ^ int.from_bytes(whole[: len(payload)], "big")
    return both.to_bytes(len(payload), "big")


class MessageReader:
    """Cuts messages out of what a connection gives, however it is cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts = bytearray()
        self._kind: Opcode | None = None
        self._is_closed = False

    def feed(self, piece: bytes) -> list[Message]:
        self._buffer += piece
        messages: list[Message] = []
        while (frame := self._take_frame()) is not None:
            if self._is_closed:
                raise ProtocolError("a frame came after the end of a WebSocket")
            message = self._take(*frame)
            if message is not None:
                self._is_closed = message.opcode is Opcode.CLOSE
                messages.append(message)
        return messages

    def _take_frame(self) -> tuple[bool, Opcode, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        if buffer[0] & 0x70:
            raise ProtocolError("a WebSocket frame has bits that mean nothing here")
        if buffer[1] & 0x80:
            raise ProtocolError("a WebSocket frame of the server is masked")
        opcode = _opcode(buffer[0] & 0x0F)
        begin, length = 2, buffer[1]
        if length >= 126:
            width = 2 if length == 126 else 8
            begin += width
            if len(buffer) < begin:
                return None
            length = int.from_bytes(buffer[2:begin], "big")
            if length <= CONTROL_BYTES_MAX or (width == 8 and length < 1 << 16):
                raise ProtocolError("the length of a WebSocket frame is not written the short way")
        is_last = bool(buffer[0] & 0x80)
        if opcode >= Opcode.CLOSE and (length > CONTROL_BYTES_MAX or not is_last):
            raise ProtocolError("a control frame of a WebSocket is too long, or in parts")
        if length + len(self._parts) > MESSAGE_BYTES_MAX:
            raise ProtocolError("a WebSocket message is longer than any that the server sends")
        if len(buffer) < begin + length:
            return None
        payload = bytes(buffer[begin : begin + length])
        del buffer[: begin + length]
        return is_last, opcode, payload

    def _take(self, is_last: bool, opcode: Opcode, payload: bytes) -> Message | None:
        if opcode >= Opcode.CLOSE:
            if opcode is Opcode.CLOSE:
                _check_close(payload)
            return Message(opcode, payload)
        if (opcode is Opcode.CONTINUATION) != (self._kind is not None):
            raise ProtocolError("the parts of a WebSocket message do not fit")
        self._kind = self._kind or opcode
        self._parts += payload
        if not is_last:
            return None
        message = Message(self._kind, bytes(self._parts))
        self._kind = None
        self._parts.clear()
        return message


def _opcode(number: int) -> Opcode:
    try:
        return Opcode(number)
    except ValueError:
        raise ProtocolError(f"a WebSocket frame is of kind {number}") from None


def _check_close(payload: bytes) -> None:
    if len(payload) == 1:
        raise ProtocolError("a WebSocket was closed with half a code")
    try:
        payload[2:].decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("a WebSocket was closed with a reason that is no text") from None
