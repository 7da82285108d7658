"""Carries operations out with blocking sockets: ``http.client`` and a few kept connections."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, TypeVar

from ._effects import Ask, Effect, Open, Operation, Read, Send, Sleep
from ._headers import CONNECT_SECONDS, default_headers, tune_socket
from ._settings import Settings
from ._wire import Answer, Request
from .errors import AnswerLost, AnswerTimeout, ProtocolError, ServerUnreachable

T = TypeVar("T")

IDLE_MAX = 16
# Well below the time after which servers and proxies drop a silent connection.
IDLE_SECONDS = 20.0
PIECE_BYTES = 64 << 10


class _Connection:
    def __init__(self, http: HTTPConnection) -> None:
        self.http = http
        self.idle_since = 0.0

    @property
    def socket(self) -> socket.socket | None:
        # http.client sets it to None, which its types do not tell.
        found: socket.socket | None = self.http.sock
        return found

    def is_usable(self) -> bool:
        """Nothing is expected on an idle connection: what can be read is its end."""
        found = self.socket
        if found is None or time.monotonic() - self.idle_since > IDLE_SECONDS:
            return False
        try:
            readable, _, _ = select.select([found], [], [], 0)
        except (OSError, ValueError):
            return False
        return not readable


class _SyncBody:
    """An answer whose body is still coming."""

    def __init__(self, pool: Pool, connection: _Connection, response: HTTPResponse) -> None:
        self._pool = pool
        self._connection: _Connection | None = connection
        self._response = response
        # Counted here: not every version of http.client counts in `read1`.
        self._left: int | None = response.length
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    def read(self, timeout: float | None) -> bytes:
        """The next bytes; none at the end, after which the connection is kept."""
        connection = self._connection
        if connection is None:
            return b""
        try:
            if connection.socket is not None:
                connection.socket.settimeout(timeout)
            piece = self._read_piece()
        except TimeoutError:
            self.close()
            raise AnswerTimeout("the server said nothing for too long") from None
        except (OSError, HTTPException) as error:
            self.close()
            raise AnswerLost(f"the answer was cut off ({_words(error)})") from None
        except BaseException:
            self.close()
            raise
        if not piece:
            if self._left:
                self.close()
                raise AnswerLost("the answer was cut off")
            self._connection = None
            self._response.close()
            self._pool.keep(connection, self._response)
        return piece

    def _read_piece(self) -> bytes:
        if self._left is None:
            return self._response.read1(PIECE_BYTES)
        if self._left == 0:
            return b""
        piece = self._response.read(min(PIECE_BYTES, self._left))
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.http.close()
        self._response.close()


class Pool:
    """The connections to one server. May be used by many threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._headers = default_headers(settings)
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._process = os.getpid()
        self._tls = ssl.create_default_context() if settings.scheme == "https" else None

    def open(self, request: Request) -> _SyncBody:
        """Sends a request and reads the head of its answer."""
        # A kept connection may die under a request, and then nobody knows whether it arrived. What
        # must not be repeated goes over a connection of its own, where a failed connect is clear.
        connection = self._take() if request.is_repeatable else None
        connection = connection or self._connect()
        try:
            response = self._exchange(connection, request)
        except TimeoutError:
            connection.http.close()
            raise AnswerTimeout(f"no answer within {request.timeout:g} s") from None
        except (OSError, HTTPException) as error:
            connection.http.close()
            raise AnswerLost(f"the connection was lost ({_words(error)})") from None
        except BaseException:
            connection.http.close()
            raise
        if 300 <= response.status < 400:
            # The key must not follow a redirect to another host.
            connection.http.close()
            raise ProtocolError("the server redirects", status=response.status)
        return _SyncBody(self, connection, response)

    def send(self, request: Request) -> Answer:
        """Sends a request and reads its whole answer."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        body = self.open(request)
        pieces: list[bytes] = []
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            piece = body.read(rest)
            if not piece:
                return Answer(body.status, body.headers, b"".join(pieces))
            pieces.append(piece)

    def keep(self, connection: _Connection, response: HTTPResponse) -> None:
        """Takes back a connection whose answer was read to its end."""
        if response.will_close or connection.socket is None:
            connection.http.close()
            return
        connection.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle[:-IDLE_MAX]
            self._idle = self._idle[-IDLE_MAX:]
        for old in surplus:
            old.http.close()

    def _take(self) -> _Connection | None:
        with self._lock:
            if self._process != os.getpid():
                # After a fork of this process both would write into the same connections.
                self._process, self._idle = os.getpid(), []
            while self._idle:
                connection = self._idle.pop()
                if connection.is_usable():
                    return connection
                connection.http.close()
        return None

    def _connect(self) -> _Connection:
        host, port = self.settings.host, self.settings.port
        if self._tls is not None:
            http: HTTPConnection = HTTPSConnection(
                host, port, timeout=CONNECT_SECONDS, context=self._tls
            )
        else:
            http = HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        try:
            http.connect()
        except OSError as error:
            http.close()
            raise ServerUnreachable(
                f"cannot connect to {self.settings.url} ({_words(error)})",
                hint="is dayflyd running there? DAYFLY_API_URL says where to look",
            ) from None
        tune_socket(http.sock)
        return _Connection(http)

    def _exchange(self, connection: _Connection, request: Request) -> HTTPResponse:
        http = connection.http
        if connection.socket is not None:
            connection.socket.settimeout(request.timeout)
        http.putrequest(
            request.method, self.settings.path + request.path, skip_accept_encoding=True
        )
        for name, value in {**self._headers, **request.headers}.items():
            http.putheader(name, value)
        if request.content_length or request.method in ("POST", "PUT", "PATCH"):
            http.putheader("Content-Length", str(request.content_length))
        http.endheaders()
        try:
            for piece in _pieces(request):
                http.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            # The server may have refused before it read all; its answer is worth more.
            pass
        return http.getresponse()


def _pieces(request: Request) -> Iterator[bytes]:
    if isinstance(request.body, bytes):
        if request.body:
            yield request.body
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


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


class Session:
    """Carries operations out, blocking the caller."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = Pool(settings)

    def run(self, operation: Operation[T]) -> T:
        try:
            effect = next(operation)
            while True:
                try:
                    outcome = self._perform(effect)
                # All of them: an operation may have to clean up after a KeyboardInterrupt.
                except BaseException as error:
                    effect = operation.throw(error)
                else:
                    effect = operation.send(outcome)
        except StopIteration as stop:
            return stop.value

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return self.pool.send(effect.request)
        if isinstance(effect, Open):
            return self.pool.open(effect.request)
        if isinstance(effect, Read):
            assert isinstance(effect.body, _SyncBody)
            return effect.body.read(effect.timeout)
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        if isinstance(effect, Ask):
            return effect.function(*effect.arguments)
        return self._together(list(effect.operations), effect.at_once)

    def _together(self, operations: list[Generator[Any, Any, Any]], at_once: int) -> list[Any]:
        threads = ThreadPoolExecutor(max_workers=max(1, at_once))
        try:
            futures: list[Future[Any]] = [threads.submit(self.run, one) for one in operations]
            return [future.exception() or future.result() for future in futures]
        finally:
            # After a KeyboardInterrupt nobody wants to wait for commands that still run.
            threads.shutdown(wait=False, cancel_futures=True)


_sessions: dict[Settings, Session] = {}
_sessions_lock = threading.Lock()


def session_for(settings: Settings) -> Session:
    """The one session for these settings, so that all sandboxes share its connections."""
    with _sessions_lock:
        return _sessions.setdefault(settings, Session(settings))
