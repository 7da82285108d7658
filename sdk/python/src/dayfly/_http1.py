"""As much of HTTP/1.1 as a client of one known server needs, without input or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._settings import Settings
from ._wire import Request
from .errors import ProtocolError

CHUNK_LINE_BYTES_MAX = 4096


@dataclass(frozen=True)
class Head:
    status: int
    headers: dict[str, str]
    is_version_1_1: bool

    @property
    def keeps_connection(self) -> bool:
        return self.is_version_1_1 and "close" not in self.headers.get("connection", "").lower()


def request_head(settings: Settings, request: Request, headers: Mapping[str, str]) -> bytes:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if settings.port != (443 if settings.scheme == "https" else 80):
        host += f":{settings.port}"
    lines = [f"{request.method} {settings.path}{request.path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if request.content_length or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {request.content_length}")
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header must be one line")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def parse_head(text: bytes) -> Head:
    first, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdigit():
        raise ProtocolError("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return Head(int(status), headers, version == "HTTP/1.1")


class BodyReader:
    """Cuts a body out of what a connection gives."""

    def __init__(self, head: Head, method: str) -> None:
        self._buffer = b""
        self._is_chunked = "chunked" in head.headers.get("transfer-encoding", "").lower()
        self._left: int | None = None
        self._has_length = True
        if method == "HEAD" or head.status in (204, 304):
            self._is_chunked, self._left = False, 0
        elif not self._is_chunked:
            length = head.headers.get("content-length")
            self._has_length = length is not None
            if length is not None:
                if not length.isdigit():
                    raise ProtocolError("the answer has no usable length")
                self._left = int(length)
        self.is_over = self._left == 0
        # In chunked bodies: None before the size line of a chunk.
        self._chunk_left: int | None = None
        self._is_in_trailer = False

    @property
    def leaves_connection_clean(self) -> bool:
        return self.is_over and self._has_length and not self._buffer

    def feed(self, piece: bytes) -> None:
        """Takes what was read; nothing means that the connection has ended."""
        if piece:
            self._buffer += piece
        elif self._has_length:
            raise EOFError("the connection ended within the answer")
        else:
            self.is_over = True

    def take(self) -> bytes:
        """What there is of the body; nothing when more has to be fed, or at its end."""
        if self.is_over:
            return b""
        if self._is_chunked:
            return self._take_chunks()
        if self._left is None:
            piece, self._buffer = self._buffer, b""
            return piece
        piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        self._left -= len(piece)
        # The end is told by the next call, so that the last bytes are not taken for it.
        self.is_over = self._left == 0
        return piece

    def _take_chunks(self) -> bytes:
        pieces: list[bytes] = []
        while not self.is_over:
            if self._chunk_left is None:
                line = self._take_line()
                if line is None:
                    break
                if self._is_in_trailer:
                    self.is_over = not line
                    continue
                self._start_chunk(line)
            elif self._chunk_left > 0:
                piece = self._buffer[: self._chunk_left]
                if not piece:
                    break
                self._buffer = self._buffer[len(piece) :]
                self._chunk_left -= len(piece)
                pieces.append(piece)
            else:
                # The line end behind a chunk.
                if self._take_line() is None:
                    break
                self._chunk_left = None
        return b"".join(pieces)

    def _start_chunk(self, line: bytes) -> None:
        try:
            size = int(line.split(b";", 1)[0].strip(), 16)
        except ValueError:
            raise ProtocolError("the answer has a broken chunk") from None
        self._is_in_trailer = size == 0
        self._chunk_left = None if size == 0 else size

    def _take_line(self) -> bytes | None:
        line, end, rest = self._buffer.partition(b"\r\n")
        if not end:
            if len(self._buffer) > CHUNK_LINE_BYTES_MAX:
                raise ProtocolError("the answer has a broken chunk")
            return None
        self._buffer = rest
        return line
