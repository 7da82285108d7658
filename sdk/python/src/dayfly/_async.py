"""Carries operations out on asyncio, with a small HTTP/1.1 client of its own.

The standard library has no asynchronous HTTP client, and threads around the blocking one could not
be cancelled. What a client of one known server needs of HTTP/1.1 is little: a head, a body by
length, by chunks or to the end, and connections that are used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import ssl
import time
import weakref
from collections.abc import Generator
from typing import Any, TypeVar

from ._effects import Ask, Effect, Open, Operation, Read, Send, Sleep
from ._headers import CONNECT_SECONDS, default_headers, tune_socket
from ._http1 import BodyReader, Head, parse_head, request_head
from ._settings import Settings
from ._wire import Answer, Request
from .errors import AnswerLost, AnswerTimeout, ProtocolError, ServerUnreachable

T = TypeVar("T")

IDLE_MAX = 16
IDLE_SECONDS = 20.0
PIECE_BYTES = 64 << 10
HEAD_BYTES_MAX = 128 << 10


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.idle_since = 0.0

    def is_usable(self) -> bool:
        if self.reader.at_eof() or self.writer.is_closing():
            return False
        return time.monotonic() - self.idle_since <= IDLE_SECONDS

    def close(self) -> None:
        self.writer.close()


class _AsyncBody:
    """An answer whose body is still coming."""

    def __init__(self, pool: _Pool, connection: _Connection, head: Head, method: str) -> None:
        self._pool = pool
        self._connection: _Connection | None = connection
        self._reader = BodyReader(head, method)
        self._keeps = head.keeps_connection
        self.status = head.status
        self.headers = head.headers

    async def read(self, timeout: float | None) -> bytes:
        connection = self._connection
        if connection is None:
            return b""
        try:
            piece = await asyncio.wait_for(self._next(connection), timeout)
        except (TimeoutError, asyncio.TimeoutError):
            self.close()
            raise AnswerTimeout("the server said nothing for too long") from None
        except (OSError, EOFError) as error:
            self.close()
            raise AnswerLost(f"the answer was cut off ({_words(error)})") from None
        except BaseException:
            self.close()
            raise
        if not piece:
            self._connection = None
            if self._keeps and self._reader.leaves_connection_clean:
                self._pool.keep(connection)
            else:
                connection.close()
        return piece

    async def _next(self, connection: _Connection) -> bytes:
        while True:
            piece = self._reader.take()
            if piece or self._reader.is_over:
                return piece
            self._reader.feed(await connection.reader.read(PIECE_BYTES))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _Pool:
    """The connections of one event loop to one server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._headers = default_headers(settings)
        self._idle: list[_Connection] = []
        self._tls = ssl.create_default_context() if settings.scheme == "https" else None

    async def open(self, request: Request) -> _AsyncBody:
        # As in the blocking pool: what must not be repeated gets a connection of its own.
        connection = self._take() if request.is_repeatable else None
        connection = connection or await self._connect()
        try:
            head = await asyncio.wait_for(self._exchange(connection, request), request.timeout)
        except (TimeoutError, asyncio.TimeoutError):
            connection.close()
            raise AnswerTimeout(f"no answer within {request.timeout:g} s") from None
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            connection.close()
            raise AnswerLost(f"the connection was lost ({_words(error)})") from None
        except BaseException:
            connection.close()
            raise
        if 300 <= head.status < 400:
            connection.close()
            raise ProtocolError("the server redirects", status=head.status)
        return _AsyncBody(self, connection, head, request.method)

    async def send(self, request: Request) -> Answer:
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        body = await self.open(request)
        pieces: list[bytes] = []
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            piece = await body.read(rest)
            if not piece:
                return Answer(body.status, body.headers, b"".join(pieces))
            pieces.append(piece)

    def keep(self, connection: _Connection) -> None:
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        while len(self._idle) > IDLE_MAX:
            self._idle.pop(0).close()

    def close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        connecting = asyncio.open_connection(
            self._settings.host, self._settings.port, ssl=self._tls, limit=HEAD_BYTES_MAX
        )
        try:
            reader, writer = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        except (OSError, asyncio.TimeoutError) as error:
            raise ServerUnreachable(
                f"cannot connect to {self._settings.url} ({_words(error)})",
                hint="is dayflyd running there? DAYFLY_API_URL says where to look",
            ) from None
        found = writer.get_extra_info("socket")
        if found is not None:
            tune_socket(found)
        return _Connection(reader, writer)

    async def _exchange(self, connection: _Connection, request: Request) -> Head:
        settings = self._settings
        head = request_head(settings, request, {**self._headers, **request.headers})
        connection.writer.write(head)
        # The server may have refused before it read all; its answer is worth more.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._write_body(connection.writer, request)
        while True:
            answer = parse_head(await connection.reader.readuntil(b"\r\n\r\n"))
            # 1xx come before the answer and mean nothing to us.
            if answer.status >= 200:
                return answer

    async def _write_body(self, writer: asyncio.StreamWriter, request: Request) -> None:
        if isinstance(request.body, bytes):
            writer.write(request.body)
            await writer.drain()
            return
        if request.body.seekable():
            request.body.seek(0)
        left = request.content_length
        while left:
            # A local file: reading a piece of it blocks for less than a thread would cost.
            piece = request.body.read(min(PIECE_BYTES, left))
            if not piece:
                raise AnswerLost("the file became shorter while it was sent")
            left -= len(piece)
            writer.write(piece)
            await writer.drain()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


class AsyncSession:
    """Carries operations out on the running event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Connections belong to the loop that made them.
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = (
            weakref.WeakKeyDictionary()
        )

    async def run(self, operation: Operation[T]) -> T:
        try:
            effect = next(operation)
            while True:
                try:
                    outcome = await self._perform(effect)
                # All of them: an operation may have to clean up after a cancellation.
                except BaseException as error:
                    effect = operation.throw(error)
                else:
                    effect = operation.send(outcome)
        except StopIteration as stop:
            return stop.value

    def close_idle(self) -> None:
        self._pool().close_idle()

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = _Pool(self.settings)
        return pool

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return await self._pool().send(effect.request)
        if isinstance(effect, Open):
            return await self._pool().open(effect.request)
        if isinstance(effect, Read):
            assert isinstance(effect.body, _AsyncBody)
            return await effect.body.read(effect.timeout)
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, Ask):
            outcome = effect.function(*effect.arguments)
            return await outcome if inspect.isawaitable(outcome) else outcome
        return await self._together(list(effect.operations), effect.at_once)

    async def _together(
        self, operations: list[Generator[Any, Any, Any]], at_once: int
    ) -> list[Any]:
        places = asyncio.Semaphore(max(1, at_once))

        async def one(operation: Generator[Any, Any, Any]) -> Any:
            async with places:
                return await self.run(operation)

        return await asyncio.gather(*map(one, operations), return_exceptions=True)


_sessions: dict[Settings, AsyncSession] = {}


def async_session_for(settings: Settings) -> AsyncSession:
    """The one session for these settings, so that all sandboxes share its connections."""
    return _sessions.setdefault(settings, AsyncSession(settings))
