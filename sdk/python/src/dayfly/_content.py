"""The body of a response as its sender meant it, or the reason why it is none of Dayfly's."""

from __future__ import annotations

import zlib
from urllib.parse import urlsplit

from ._effects import Body
from ._facts import ClientFacts
from ._failures import proxy_refusal
from ._http1 import BodyReader, Head
from ._wire import Answer, Request
from .errors import ProtocolError

# zlib finds out by itself which of both it is.
GZIP_OR_DEFLATE = 47


class Content:
    """Reads a body and undoes a content coding that somebody on the way has added."""

    def __init__(self, head: Head, method: str, rest: bytes) -> None:
        self._reader = BodyReader(head, method, rest)
        self._has_begun = False
        coding = check_coding(head)
        self._decoder = zlib.decompressobj(GZIP_OR_DEFLATE) if coding else None

    @property
    def is_over(self) -> bool:
        return self._reader.is_over

    @property
    def leaves_connection_clean(self) -> bool:
        return self._reader.leaves_connection_clean

    @property
    def length_left(self) -> int | None:
        """How many bytes are still to come; ``None`` when nobody has said that."""
        return self._reader.length_left if self._decoder is None else None

    def skip(self, count: int) -> None:
        """Counts what was read past this reader, behind all that was fed."""
        self._reader.skip(count)

    def feed(self, piece: bytes) -> None:
        """Takes what was read; nothing means that the connection has ended."""
        self._reader.feed(piece)

    def take(self) -> bytes:
        """What there is of the body; nothing when more has to be fed, or at its end."""
        piece = self._reader.take()
        return piece if self._decoder is None else self._decoded(piece)

    def _decoded(self, piece: bytes) -> bytes:
        decoder = self._decoder
        assert decoder is not None
        if not piece:
            if self._reader.is_over and self._has_begun and not decoder.eof:
                raise EOFError("the compressed response ended early")
            return b""
        self._has_begun = True
        try:
            return decoder.decompress(piece)
        except zlib.error:
            raise ProtocolError("the response is not compressed as it says") from None


class WholeBody:
    """Gathers a body. Refuses one that is longer than what was asked for, and closes it."""

    def __init__(self, request: Request, body: Body) -> None:
        self._most = request.answer_bytes_max if body.status < 300 else None
        self._body = body
        self._pieces: list[bytes] = []
        self._length = 0

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._most is not None and self._length > self._most:
            self._body.close()
            raise _too_long(self._most, self._body.status)
        self._pieces.append(piece)

    def answer(self, url: str) -> Answer:
        return Answer(self._body.status, self._body.headers, b"".join(self._pieces), url)


def check_coding(head: Head) -> str | None:
    """How a body is compressed, if it is. Nobody asked for that; some proxies do it anyway."""
    coding = head.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return None
    if coding in ("gzip", "x-gzip", "deflate"):
        return coding
    raise ProtocolError(
        f"the response has the content coding {coding!r}, which nobody asked for",
        status=head.status,
        hint="a proxy on the way compresses; it must not for this server",
    )


def content_of(facts: ClientFacts, request: Request, head: Head, rest: bytes) -> Content:
    """The body behind a head. Refuses what no Dayfly server answers."""
    check_head(facts, request, head)
    return Content(head, request.method, rest)


def check_head(facts: ClientFacts, request: Request, head: Head) -> None:
    if 300 <= head.status < 400:
        raise _redirect(facts, request, head)
    if head.status == 407 and facts.route.proxy is not None:
        raise proxy_refusal(facts, head.status)
    length = head.headers.get("content-length", "")
    most = request.answer_bytes_max
    if most is not None and head.status < 300 and length.isdecimal() and int(length) > most:
        raise _too_long(most, head.status)


def _too_long(most: int, status: int) -> ProtocolError:
    text = f"the response is longer than the {most} bytes that were asked for"
    return ProtocolError(text, status=status)


def _redirect(facts: ClientFacts, request: Request, head: Head) -> ProtocolError:
    """Not followed: the key must not go where somebody else says."""
    location = head.headers.get("location", "")
    target = urlsplit(location)._replace(query="", fragment="").geturl()
    base = target.removesuffix(facts.settings.path + request.path.partition("?")[0])
    where = f" to {target}" if target else ""
    hint = "the address of the server is wrong: set api_url= or DAYFLY_API_URL"
    if base != target and base.startswith(("http://", "https://")):
        hint += f" to {base}{facts.settings.path}"
    return ProtocolError(
        f"{facts.settings.url} redirects{where} (HTTP status {head.status})",
        status=head.status,
        hint=hint,
    )
