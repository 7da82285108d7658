"""A WebSocket server on the loopback interface that does what a test wrote down."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode: int, payload: bytes = b"", *, first: int | None = None) -> bytes:
    """A frame as a server sends it; ``first`` is its first byte when that is to be odd."""
    head = bytes([0x80 | opcode if first is None else first])
    length = len(payload)
    if length < 126:
        return head + bytes([length]) + payload
    if length < 1 << 16:
        return head + b"\x7e" + length.to_bytes(2, "big") + payload
    return head + b"\x7f" + length.to_bytes(8, "big") + payload


class Conversation:
    """What a script has in its hands."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self.head = b""

    def read_head(self) -> dict[str, str]:
        while not self.head.endswith(b"\r\n\r\n"):
            self.head += self._file.read(1)
        lines = self.head.decode().split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if line)
        return {name.lower(): value.strip() for name, _, value in pairs}

    def send(self, content: bytes) -> None:
        self._connection.sendall(content)

    def tell(self, **event: Any) -> None:
        self.send(frame(1, json.dumps(event).encode()))

    def print(self, text: bytes, offset: int = 0) -> None:
        self.send(frame(2, b"\x01" + offset.to_bytes(8, "big") + text))

    def next(self) -> tuple[int, bytes]:
        """The next frame of the client, which has to be whole and masked."""
        first, second = self._file.read(2)
        assert first & 0x80, "in parts"
        assert second & 0x80, "not masked"
        length = second & 0x7F
        if length >= 126:
            length = int.from_bytes(self._file.read(2 if length == 126 else 8), "big")
        mask = self._file.read(4)
        payload = self._file.read(length)
        return first & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))

    def next_call(self) -> Any:
        opcode, payload = self.next()
        assert opcode == 1
        return json.loads(payload)


class SocketServer:
    """Serves one connection after the other by a script. ``failures`` has what a script found."""

    def __init__(self, script: Callable[[Conversation], None], *, is_upgraded: bool = True) -> None:
        self._script = script
        self._is_upgraded = is_upgraded
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.headers: dict[str, str] = {}
        self.line = ""
        self.failures: list[BaseException] = []
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            conversation = Conversation(connection)
            try:
                self.headers = conversation.read_head()
                self.line = conversation.head.decode().partition("\r\n")[0]
                if self._is_upgraded:
                    self._upgrade(conversation)
                self._script(conversation)
            except (OSError, ValueError):
                # The client hung up in the middle of it, which some tests are about.
                return
            except BaseException as error:
                self.failures.append(error)

    def _upgrade(self, conversation: Conversation) -> None:
        key = self.headers["sec-websocket-key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        conversation.send(
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            + f"sec-websocket-accept: {accept}\r\n\r\n".encode()
        )

    def finish(self) -> None:
        """Waits for the end of the script, and tells what it found."""
        self._thread.join(20)
        with contextlib.suppress(OSError):
            self._listener.close()
        assert not self._thread.is_alive(), "the script goes on"
        if self.failures:
            raise self.failures[0]
