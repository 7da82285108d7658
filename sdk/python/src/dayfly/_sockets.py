"""One blocking connection: made, written to, read from, and looked at before it is used again."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

from ._facts import ClientFacts, Route
from ._failures import connect_failure, proxy_refusal
from ._headers import CONNECT_SECONDS, PIECE_BYTES, tune_socket
from ._http1 import Head, HeadReader, connect_head
from ._wire import Request
from .errors import AnswerLost

# What is asked of the kernel at once. Pieces of a body are as long as what it had.
READ_BYTES = 64 << 10


class Connection:
    """A connection to the server. Deadlines are moments of ``time.monotonic``."""

    def __init__(self, route: Route, found: socket.socket) -> None:
        self.route: Route = route
        self._socket = found
        self.idle_since: float = 0.0

    @property
    def socket(self) -> socket.socket:
        return self._socket

    def is_usable(self) -> bool:
        """Nothing is expected on an idle connection: what can be read is its end."""
        try:
            return not _is_readable(self._socket)
        except (OSError, ValueError):
            return False

    def exchange(self, head: bytes, request: Request, deadline: float | None) -> tuple[Head, bytes]:
        """Sends a request. Gives the head of its response and what came behind it."""
        self._write(head, request, deadline)
        return self.read_head(deadline)

    def read_head(self, deadline: float | None) -> tuple[Head, bytes]:
        reader = HeadReader()
        found = None
        while found is None:
            found = reader.feed(self.read(deadline))
        return found, reader.rest

    def read(self, deadline: float | None) -> bytes:
        self._set_timeout(deadline)
        return self._socket.recv(READ_BYTES)

    def read_exactly(self, first: bytes, count: int, deadline: float | None) -> bytes:
        """``first`` and the next ``count`` bytes as one, each of which is copied only once."""
        source = _Source(self, first, count, deadline)
        # It makes the bytes at their full length and has them filled in place.
        whole = io.BufferedReader(source).read(len(first) + count)
        if source.left:
            raise EOFError("the connection ended within the response")
        return whole

    def read_into(self, target: memoryview, deadline: float | None) -> int:
        self._set_timeout(deadline)
        return self._socket.recv_into(target)

    def write(self, piece: bytes, deadline: float | None) -> None:
        self._set_timeout(deadline)
        self._socket.sendall(piece)

    def secure(self, tls: ssl.SSLContext, deadline: float | None) -> None:
        self._set_timeout(deadline)
        self._socket = tls.wrap_socket(self._socket, server_hostname=self.route.host)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _write(self, head: bytes, request: Request, deadline: float | None) -> None:
        if isinstance(request.body, bytes) and len(request.body) <= PIECE_BYTES:
            # In one piece, which is one packet for most.
            self.write(head + request.body, deadline)
            return
        self.write(head, deadline)
        for piece in body_pieces(request):
            try:
                self.write(piece, deadline)
            except (BrokenPipeError, ConnectionResetError):
                # The server may have refused before it read all; its response is worth more.
                return

    def _set_timeout(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)


class _Source(io.RawIOBase):
    """Bytes that are here already, then so many of a connection's, and not one more."""

    def __init__(
        self, connection: Connection, first: bytes, left: int, deadline: float | None
    ) -> None:
        self._connection = connection
        self._first = memoryview(first)
        self._deadline = deadline
        self.left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        target = memoryview(buffer)
        if self._first:
            count = min(len(target), len(self._first))
            target[:count], self._first = self._first[:count], self._first[count:]
            return count
        if not self.left:
            return 0
        count = self._connection.read_into(target[: self.left], self._deadline)
        self.left -= count
        return count


def connect(
    facts: ClientFacts, tls: ssl.SSLContext | None, *, is_raw: bool = False
) -> Connection:
    """A connection to the server of a client, through its proxy if it has one.

    One that is raw is for another protocol than HTTP: a proxy passes all of it on.
    """
    route, deadline = facts.route, time.monotonic() + CONNECT_SECONDS
    first = route.proxy or route
    try:
        found = socket.create_connection((first.host, first.port), CONNECT_SECONDS)
    except OSError as error:
        raise connect_failure(facts, error) from None
    tune_socket(found)
    connection = Connection(route, found)
    try:
        if route.proxy is not None and (tls is not None or is_raw):
            _open_tunnel(facts, connection, deadline)
        if tls is not None:
            connection.secure(tls, deadline)
    except (OSError, EOFError) as error:
        connection.close()
        raise connect_failure(facts, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _open_tunnel(facts: ClientFacts, connection: Connection, deadline: float) -> None:
    proxy = facts.route.proxy
    authorization = None if proxy is None else proxy.authorization
    connection.write(connect_head(facts.route.authority, authorization), deadline)
    head, _ = connection.read_head(deadline)
    if not 200 <= head.status < 300:
        connection.close()
        raise proxy_refusal(facts, head.status)


def body_pieces(request: Request) -> Iterator[bytes]:
    """The body of a request, from its beginning also when it is sent again."""
    if isinstance(request.body, bytes):
        view = memoryview(request.body)
        for start in range(0, len(view), PIECE_BYTES):
            yield bytes(view[start : start + PIECE_BYTES])
        return
    if request.body.seekable():
        request.body.seek(0)
    left = request.content_length
    while left:
        piece = request.body.read(min(PIECE_BYTES, left))
        if not piece:
            raise AnswerLost("the file became shorter while it was sent")
        left -= len(piece)
        yield piece


def _is_readable(found: socket.socket) -> bool:
    if hasattr(select, "poll"):
        # `select` does not take descriptors from 1024 on.
        poll = select.poll()
        poll.register(found, select.POLLIN)
        return bool(poll.poll(0))
    readable, _, _ = select.select([found], [], [], 0)
    return bool(readable)
