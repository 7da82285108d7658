"""As much of HTTP/1.1 as a client of one known server needs, without input or output.

Both drivers read responses with this: bytes go in as the connection gives them, a head and the
pieces of a body come out. So both understand the same servers, and refuse the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._settings import Settings
from ._wire import Request
from .errors import ProtocolError

# All heads before a response (100, 103) together with its own, and the trailer of a body.
HEAD_BYTES_MAX = 128 << 10
CHUNK_LINE_BYTES_MAX = 4096
CHUNK_DIGITS_MAX = 16
HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


@dataclass(frozen=True)
class Head:
    """The status line and the headers of a response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    is_version_1_1: bool

    @property
    def keeps_connection(self) -> bool:
        return self.is_version_1_1 and "close" not in self.headers.get("connection", "").lower()


def request_head(
    settings: Settings, request: Request, headers: Mapping[str, str], *, is_absolute: bool = False
) -> bytes:
    """The head of a request; with ``is_absolute`` as a proxy wants it, the whole address in it."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if settings.port != (443 if settings.scheme == "https" else 80):
        host += f":{settings.port}"
    target = f"{settings.path}{request.path}"
    if is_absolute:
        target = f"{settings.scheme}://{host}{target}"
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if request.content_length or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {request.content_length}")
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header must be one line")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def connect_head(authority: str, authorization: str | None) -> bytes:
    """What asks a proxy for a tunnel."""
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if authorization is not None:
        lines.append(f"Proxy-Authorization: {authorization}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def parse_head(text: bytes) -> Head:
    first, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not _is_number(status):
        raise ProtocolError("the response is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            continue
        name, value = name.strip().lower(), value.strip()
        if name == "content-length" and headers.get(name, value) != value:
            raise ProtocolError("the response has two lengths")
        headers[name] = value
    return Head(int(status), headers, version == "HTTP/1.1")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


class HeadReader:
    """Finds the head of a response. What comes before it (100, 103) means nothing to us."""

    def __init__(self) -> None:
        self._buffer = b""
        self._taken = 0

    @property
    def rest(self) -> bytes:
        """What was read behind the head: the beginning of the body."""
        return self._buffer

    def feed(self, piece: bytes) -> Head | None:
        """Takes what was read; nothing means that the connection has ended."""
        if not piece:
            raise EOFError("the connection ended before the response")
        self._buffer += piece
        while True:
            if not self._buffer.startswith(b"HTTP/"[: len(self._buffer)]):
                raise ProtocolError("the response is not HTTP/1.1", hint=_hint_for(self._buffer))
            end = self._buffer.find(b"\r\n\r\n")
            if self._taken + (len(self._buffer) if end < 0 else end) > HEAD_BYTES_MAX:
                raise ProtocolError(f"the response has headers of over {HEAD_BYTES_MAX} bytes")
            if end < 0:
                return None
            head = parse_head(self._buffer[:end])
            self._buffer = self._buffer[end + 4 :]
            self._taken += end + 4
            if head.status == 101:
                raise ProtocolError("the server changes to a protocol that nobody asked for")
            if head.status >= 200:
                return head
            if not self._buffer:
                return None


def _hint_for(beginning: bytes) -> str | None:
    # An alert or a handshake of TLS.
    if beginning[:2] in (b"\x15\x03", b"\x16\x03"):
        return "the server speaks TLS there: its address begins with https://"
    return None


class BodyReader:
    """Cuts a body out of what a connection gives. ``rest`` is what was read with the head."""

    def __init__(self, head: Head, method: str, rest: bytes = b"") -> None:
        self._buffer = rest
        # How much of the buffer was taken: cutting it for each chunk would copy it each time.
        self._at = 0
        coding = head.headers.get("transfer-encoding", "").strip().lower()
        self._is_chunked = coding == "chunked"
        self._left: int | None = None
        self._has_length = True
        if method == "HEAD" or head.status in (204, 304):
            self._is_chunked, self._left = False, 0
        elif coding not in ("", "identity", "chunked"):
            raise ProtocolError(f"the response has the transfer coding {coding!r}")
        elif not self._is_chunked:
            length = head.headers.get("content-length")
            self._has_length = length is not None
            if length is not None:
                if not _is_number(length):
                    raise ProtocolError("the response has no usable length")
                self._left = int(length)
        self.is_over: bool = self._left == 0
        # In chunked bodies: None before the size line of a chunk.
        self._chunk_left: int | None = None
        self._is_in_trailer = False
        self._trailer_bytes = 0

    @property
    def leaves_connection_clean(self) -> bool:
        return self.is_over and self._has_length and self._at == len(self._buffer)

    @property
    def length_left(self) -> int | None:
        """How long the body still is, with what was fed; ``None`` when nobody has said that."""
        return None if self._is_chunked else self._left

    def skip(self, count: int) -> None:
        """Counts what its owner has read past this reader, behind all that was fed."""
        assert self._left is not None
        assert self._at == len(self._buffer)
        self._left -= count
        self.is_over = self._left == 0

    def feed(self, piece: bytes) -> None:
        """Takes what was read; nothing means that the connection has ended."""
        if piece:
            left = self._buffer[self._at :]
            self._buffer, self._at = left + piece if left else piece, 0
        elif self._has_length:
            raise EOFError("the connection ended within the response")
        else:
            self.is_over = True

    def take(self) -> bytes:
        """What there is of the body; nothing when more has to be fed, or at its end."""
        if self.is_over:
            return b""
        if self._is_chunked:
            return self._take_chunks()
        piece = self._cut(self._left)
        if self._left is not None:
            self._left -= len(piece)
            # The end is told by the next call, so that the last bytes are not taken for it.
            self.is_over = self._left == 0
        return piece

    def _cut(self, most: int | None) -> bytes:
        end = len(self._buffer) if most is None else min(self._at + most, len(self._buffer))
        piece = self._buffer[self._at : end]
        self._at = end
        return piece

    def _take_chunks(self) -> bytes:
        pieces: list[bytes] = []
        while not self.is_over:
            if self._chunk_left is None:
                line = self._take_line()
                if line is None:
                    break
                if self._is_in_trailer:
                    self._take_trailer(line)
                else:
                    self._start_chunk(line)
            elif self._chunk_left > 0:
                piece = self._cut(self._chunk_left)
                if not piece:
                    break
                self._chunk_left -= len(piece)
                pieces.append(piece)
            else:
                # The line end behind a chunk.
                line = self._take_line()
                if line is None:
                    break
                if line:
                    raise ProtocolError("the response has a broken chunk")
                self._chunk_left = None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _start_chunk(self, line: bytes) -> None:
        digits = line.partition(b";")[0].strip(b" \t")
        # `int` alone would take signs, `0x` and underscores, and two readers two lengths.
        if not 0 < len(digits) <= CHUNK_DIGITS_MAX or not HEX_DIGITS.issuperset(digits):
            raise ProtocolError("the response has a broken chunk")
        size = int(digits, 16)
        self._is_in_trailer = size == 0
        self._chunk_left = None if size == 0 else size

    def _take_trailer(self, line: bytes) -> None:
        self.is_over = not line
        self._trailer_bytes += len(line)
        if self._trailer_bytes > HEAD_BYTES_MAX:
            raise ProtocolError("the response has an endless trailer")

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", self._at)
        if end < 0:
            if len(self._buffer) - self._at > CHUNK_LINE_BYTES_MAX:
                raise ProtocolError("the response has a broken chunk")
            return None
        line = self._buffer[self._at : end]
        self._at = end + 2
        return line
