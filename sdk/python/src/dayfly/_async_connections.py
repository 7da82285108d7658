"""The connections of a client on asyncio: how many there are, and which are kept for later.

The standard library has no asynchronous HTTP client, and threads around a blocking one could not be
cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import deque

from . import _headers
from ._connections import exchange_failure
from ._content import Content, WholeBody, content_of
from ._facts import ClientFacts, Route
from ._failures import connect_failure, no_place, proxy_refusal, words
from ._headers import CONNECT_SECONDS, tune_socket
from ._http1 import Head, HeadReader, connect_head
from ._sockets import READ_BYTES, body_pieces
from ._tls import make_context
from ._wire import Answer, Request
from .errors import AnswerLost, AnswerTimeout, DayflyError, InvalidSettings


class Connection:
    """A connection to the server."""

    def __init__(
        self, route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.route: Route = route
        self.reader = reader
        self.writer = writer
        self.idle_since: float = 0.0

    def is_usable(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def exchange(self, head: bytes, request: Request) -> tuple[Head, bytes]:
        """Sends a request. Gives the head of its response and what came behind it."""
        self.writer.write(head)
        # The server may have refused before it read all; its response is worth more.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            # From a local file: reading a piece of it blocks for less than a thread would cost.
            for piece in body_pieces(request):
                self.writer.write(piece)
                await self.writer.drain()
        return await self.read_head()

    async def read_head(self) -> tuple[Head, bytes]:
        reader = HeadReader()
        found = None
        while found is None:
            found = reader.feed(await self.reader.read(READ_BYTES))
        return found, reader.rest

    def close(self) -> None:
        # The loop that it belongs to may be gone.
        with contextlib.suppress(RuntimeError):
            self.writer.close()


class AsyncBody:
    """A response whose body is still coming."""

    def __init__(
        self, pool: LoopPool, connection: Connection, head: Head, content: Content
    ) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._content = content
        self._keeps = head.keeps_connection
        self.status: int = head.status
        self.headers: dict[str, str] = head.headers

    async def read(self, timeout: float | None) -> bytes:
        """The next bytes; none at the end, after which the connection is kept."""
        connection = self._connection
        if connection is None:
            return b""
        try:
            async with asyncio.timeout(timeout):
                piece = await self._next(connection)
        except TimeoutError:
            self.close()
            raise AnswerTimeout("the server said nothing for too long") from None
        except (OSError, EOFError) as error:
            self.close()
            raise AnswerLost(f"the response was cut off ({words(error)})") from None
        except BaseException:
            self.close()
            raise
        if not piece:
            self._connection = None
            keeps = self._keeps and self._content.leaves_connection_clean
            self._pool.give_back(connection, keeps=keeps)
        return piece

    async def _next(self, connection: Connection) -> bytes:
        while True:
            piece = self._content.take()
            if piece or self._content.is_over:
                return piece
            self._content.feed(await connection.reader.read(READ_BYTES))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection, keeps=False)


class LoopPool:
    """The connections of one event loop, at most so many. May be used for several servers."""

    def __init__(self, limit: int, tls: ssl.SSLContext | None = None) -> None:
        self._limit = limit
        self._tls = tls
        self._contexts: dict[str | None, ssl.SSLContext] = {}
        self._idle: list[Connection] = []
        self._in_use = 0
        self._given_back_at = time.monotonic()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def open_count(self) -> int:
        """How many connections there are, used and kept."""
        return self._in_use + len(self._idle)

    async def open(self, facts: ClientFacts, request: Request) -> AsyncBody:
        """Sends a request and reads the head of its response."""
        timeout = facts.timeout_of(request)
        began = time.monotonic()
        try:
            # As in the blocking pool: what must not be repeated gets a connection of its own.
            connection = await self._take(facts, timeout, may_be_kept=request.is_repeatable)
            head, content = await self._exchange(facts, connection, request, timeout)
        except DayflyError as error:
            facts.log_failure(request, error, began)
            raise
        facts.log_response(request, head.status, head.headers, began)
        return AsyncBody(self, connection, head, content)

    async def send(self, facts: ClientFacts, request: Request) -> Answer:
        """Sends a request and reads its whole response."""
        began = time.monotonic()
        body = await self.open(facts, request)
        deadline = facts.body_deadline(request, began)
        whole = WholeBody(request, body)
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            piece = await body.read(rest)
            if not piece:
                return whole.answer(facts.settings.url)
            whole.add(piece)

    def give_back(self, connection: Connection, *, keeps: bool) -> None:
        """Takes back a connection; one whose response was read to its end may be kept."""
        self._leave_place()
        if not keeps or self._is_closed:
            connection.close()
            return
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        while len(self._idle) > _headers.IDLE_MAX:
            self._idle.pop(0).close()
        self._set_timer()

    def close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Closes what is kept now, and later what is in use now."""
        self._is_closed = True
        self.close_idle()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(InvalidSettings("this client was closed"))
        self._waiting.clear()

    def _set_timer(self) -> None:
        if self._timer is None and self._idle:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_headers.IDLE_SECONDS, self._close_old)

    def _close_old(self) -> None:
        self._timer = None
        oldest = time.monotonic() - _headers.IDLE_SECONDS
        for connection in [one for one in self._idle if one.idle_since <= oldest]:
            self._idle.remove(connection)
            connection.close()
        self._set_timer()

    async def _take(
        self, facts: ClientFacts, timeout: float | None, *, may_be_kept: bool
    ) -> Connection:
        if self._is_closed:
            raise InvalidSettings("this client was closed")
        await self._wait_for_place(timeout)
        try:
            kept = self._kept(facts.route) if may_be_kept else None
            return kept or await self.connect(facts, is_raw=False)
        except BaseException:
            self._leave_place()
            raise

    async def _wait_for_place(self, timeout: float | None) -> None:
        if self._in_use < self._limit:
            self._in_use += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            while not (await asyncio.wait([waiter], timeout=timeout))[0]:
                # Whoever waits is patient as long as others get on.
                if timeout is not None and time.monotonic() - self._given_back_at >= timeout:
                    raise no_place(self._limit, timeout)
            waiter.result()
        except BaseException:
            if waiter.done() and waiter.exception() is None:
                # The place was given to us in the moment in which we gave up.
                self._leave_place()
            else:
                waiter.cancel()
            raise

    def _leave_place(self) -> None:
        self._given_back_at = time.monotonic()
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                # The place goes to who has waited longest.
                waiter.set_result(None)
                return
        self._in_use -= 1

    def _kept(self, route: Route) -> Connection | None:
        """A kept connection of a route. Makes room for a new one if there is none."""
        oldest = time.monotonic() - _headers.IDLE_SECONDS
        for connection in reversed([one for one in self._idle if one.route == route]):
            self._idle.remove(connection)
            if connection.idle_since > oldest and connection.is_usable():
                return connection
            connection.close()
        while self._idle and self.open_count > self._limit:
            self._idle.pop(0).close()
        return None

    def _context(self, route: Route) -> ssl.SSLContext | None:
        if not route.is_secure or self._tls is not None:
            return self._tls if route.is_secure else None
        found = self._contexts.get(route.authorities)
        if found is None:
            found = self._contexts[route.authorities] = make_context(route.authorities)
        return found

    async def connect(self, facts: ClientFacts, *, is_raw: bool = True) -> Connection:
        """A connection for another protocol, as WebSockets. It is the caller's, and not counted."""
        tls = self._context(facts.route)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await _connect(facts, tls, is_raw=is_raw)
        except (OSError, EOFError) as error:
            raise connect_failure(facts, error) from None

    async def _exchange(
        self, facts: ClientFacts, connection: Connection, request: Request, timeout: float | None
    ) -> tuple[Head, Content]:
        try:
            async with asyncio.timeout(timeout):
                head, rest = await connection.exchange(facts.head_of(request), request)
            return head, content_of(facts, request, head, rest)
        except BaseException as error:
            self.give_back(connection, keeps=False)
            raise exchange_failure(error, timeout) from None


async def _connect(
    facts: ClientFacts, tls: ssl.SSLContext | None, *, is_raw: bool
) -> Connection:
    route = facts.route
    first = route.proxy or route
    at_once = tls if route.proxy is None else None
    reader, writer = await asyncio.open_connection(
        first.host, first.port, ssl=at_once, limit=READ_BYTES
    )
    found = writer.get_extra_info("socket")
    if found is not None:
        tune_socket(found)
    connection = Connection(route, reader, writer)
    if route.proxy is None or (tls is None and not is_raw):
        return connection
    try:
        writer.write(connect_head(route.authority, route.proxy.authorization))
        head, _ = await connection.read_head()
        if not 200 <= head.status < 300:
            raise proxy_refusal(facts, head.status)
        if tls is not None:
            await writer.start_tls(tls, server_hostname=route.host)
    except BaseException:
        connection.close()
        raise
    return connection
