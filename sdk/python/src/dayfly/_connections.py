"""The blocking connections of a client: how many there are, and which are kept for later."""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
import time
import weakref
from collections.abc import Callable

from . import _headers
from ._content import Content, WholeBody, content_of
from ._facts import ClientFacts, Route
from ._failures import no_place, words
from ._http1 import Head
from ._sockets import Connection, connect
from ._tls import make_context
from ._wire import Answer, Request
from .errors import AnswerLost, AnswerTimeout, DayflyError, InvalidSettings, ServerUnreachable

# What a server may have us make room for by a mere header.
LONG_BYTES_MAX = 1 << 30


class SyncBody:
    """A response whose body is still coming."""

    def __init__(self, pool: Pool, connection: Connection, head: Head, content: Content) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._content = content
        self._keeps = head.keeps_connection
        self.status: int = head.status
        self.headers: dict[str, str] = head.headers

    def read(self, timeout: float | None) -> bytes:
        """The next bytes; none at the end, after which the connection is kept."""
        return self._read(self._next, timeout)

    def read_long(self, timeout: float | None) -> bytes:
        """As ``read``, but what is left of a body with a length comes as one piece.

        So whoever wants the whole of it has it once in memory, not once more to join it.
        """
        return self._read(self._next_long, timeout)

    def _read(
        self, take: Callable[[Connection, float | None], bytes], timeout: float | None
    ) -> bytes:
        connection = self._connection
        if connection is None:
            return b""
        try:
            piece = take(connection, deadline_after(timeout))
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

    def _next(self, connection: Connection, deadline: float | None) -> bytes:
        while True:
            piece = self._content.take()
            if piece or self._content.is_over:
                return piece
            self._content.feed(connection.read(deadline))

    def _next_long(self, connection: Connection, deadline: float | None) -> bytes:
        length = self._content.length_left
        if length is None or length > LONG_BYTES_MAX:
            return self._next(connection, deadline)
        first = self._content.take()
        left = length - len(first)
        if not left:
            return first
        whole = connection.read_exactly(first, left, deadline)
        self._content.skip(left)
        return whole

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection, keeps=False)

    def __del__(self) -> None:
        # One that nobody reads any more must not count for ever.
        self.close()


def deadline_after(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


class Pool:
    """At most so many connections. May be used by many threads, and for several servers."""

    def __init__(self, limit: int, tls: ssl.SSLContext | None = None) -> None:
        self._limit = limit
        self._tls = tls
        self._contexts: dict[str | None, ssl.SSLContext] = {}
        self._is_closed = False
        self.forget()
        _pools.add(self)

    def forget(self) -> None:
        """After a fork of this process both would write into the same connections."""
        self._changed = threading.Condition()
        self._idle: list[Connection] = []
        self._in_use = 0
        self._given_back_at = time.monotonic()
        self._timer: threading.Timer | None = None

    @property
    def open_count(self) -> int:
        """How many connections there are, used and kept."""
        return self._in_use + len(self._idle)

    def open(self, facts: ClientFacts, request: Request) -> SyncBody:
        """Sends a request and reads the head of its response."""
        timeout = facts.timeout_of(request)
        began = time.monotonic()
        try:
            # A kept connection may die under a request, and then nobody knows whether it arrived.
            # What must not be repeated goes over a connection of its own, where a failed connect
            # is clear.
            connection = self._take(facts, timeout, may_be_kept=request.is_repeatable)
            head, content = self._exchange(facts, connection, request, timeout)
        except DayflyError as error:
            facts.log_failure(request, error, began)
            raise
        facts.log_response(request, head.status, head.headers, began)
        return SyncBody(self, connection, head, content)

    def send(self, facts: ClientFacts, request: Request) -> Answer:
        """Sends a request and reads its whole response."""
        began = time.monotonic()
        body = self.open(facts, request)
        deadline = facts.body_deadline(request, began)
        whole = WholeBody(request, body)
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            piece = body.read_long(rest)
            if not piece:
                return whole.answer(facts.settings.url)
            whole.add(piece)

    def connect(self, facts: ClientFacts) -> Connection:
        """A connection for another protocol, as WebSockets. It is the caller's, and not counted."""
        return connect(facts, self._context(facts.route), is_raw=True)

    def give_back(self, connection: Connection, *, keeps: bool) -> None:
        """Takes back a connection; one whose response was read to its end may be kept."""
        connection.idle_since = time.monotonic()
        surplus: list[Connection] = []
        with self._changed:
            self._in_use = max(0, self._in_use - 1)
            self._given_back_at = connection.idle_since
            if keeps and not self._is_closed:
                self._idle.append(connection)
                surplus = self._idle[: -_headers.IDLE_MAX]
                self._idle = self._idle[-_headers.IDLE_MAX :]
                self._set_timer()
            else:
                surplus.append(connection)
            self._changed.notify()
        _close_all(surplus)

    def close(self) -> None:
        """Closes what is kept now, and later what is in use now."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
            self._changed.notify_all()
        _close_all(idle)

    def close_old(self) -> None:
        """Closes what nobody has used for long, and looks again later if something is left."""
        oldest = time.monotonic() - _headers.IDLE_SECONDS
        with self._changed:
            self._timer = None
            old = [one for one in self._idle if one.idle_since <= oldest]
            self._idle = [one for one in self._idle if one.idle_since > oldest]
            self._set_timer()
        _close_all(old)

    def _set_timer(self) -> None:
        if self._timer is not None or not self._idle:
            return
        # The timer must not keep alive a pool that nobody has any more.
        pool = weakref.ref(self)
        timer = threading.Timer(_headers.IDLE_SECONDS, _close_old, (pool,))
        timer.daemon = True
        # When the interpreter ends no thread can be started, and none is needed.
        with contextlib.suppress(RuntimeError):
            timer.start()
            self._timer = timer

    def _take(self, facts: ClientFacts, timeout: float | None, *, may_be_kept: bool) -> Connection:
        self._wait_for_place(timeout)
        try:
            kept = self._kept(facts.route) if may_be_kept else None
            return kept or connect(facts, self._context(facts.route))
        except BaseException:
            self._leave_place()
            raise

    def _wait_for_place(self, timeout: float | None) -> None:
        with self._changed:
            while self._in_use >= self._limit and not self._is_closed:
                self._changed.wait(timeout)
                # Whoever waits is patient as long as others get on.
                silence = time.monotonic() - self._given_back_at
                if timeout is not None and self._in_use >= self._limit and silence >= timeout:
                    raise no_place(self._limit, timeout)
            if self._is_closed:
                raise InvalidSettings("this client was closed")
            self._in_use += 1

    def _leave_place(self) -> None:
        with self._changed:
            self._in_use = max(0, self._in_use - 1)
            self._given_back_at = time.monotonic()
            self._changed.notify()

    def _kept(self, route: Route) -> Connection | None:
        """A kept connection of a route. Makes room for a new one if there is none."""
        oldest = time.monotonic() - _headers.IDLE_SECONDS
        surplus: list[Connection] = []
        try:
            with self._changed:
                for connection in reversed([one for one in self._idle if one.route == route]):
                    self._idle.remove(connection)
                    if connection.idle_since > oldest and connection.is_usable():
                        return connection
                    surplus.append(connection)
                while self._idle and self.open_count > self._limit:
                    surplus.append(self._idle.pop(0))
        finally:
            _close_all(surplus)
        return None

    def _context(self, route: Route) -> ssl.SSLContext | None:
        if not route.is_secure or self._tls is not None:
            return self._tls if route.is_secure else None
        with self._changed:
            found = self._contexts.get(route.authorities)
            if found is None:
                found = self._contexts[route.authorities] = make_context(route.authorities)
        return found

    def _exchange(
        self, facts: ClientFacts, connection: Connection, request: Request, timeout: float | None
    ) -> tuple[Head, Content]:
        try:
            deadline = deadline_after(timeout)
            head, rest = connection.exchange(facts.head_of(request), request, deadline)
            return head, content_of(facts, request, head, rest)
        except BaseException as error:
            self.give_back(connection, keeps=False)
            raise exchange_failure(error, timeout) from None


def exchange_failure(error: BaseException, timeout: float | None) -> BaseException:
    """What went wrong with a request that was sent, or sent in part."""
    if isinstance(error, (AnswerLost, ServerUnreachable)):
        return error
    if isinstance(error, TimeoutError):
        return AnswerTimeout(f"no response within {timeout or 0:g} s")
    if isinstance(error, (OSError, EOFError)):
        return AnswerLost(f"the connection was lost ({words(error)})")
    return error


def _close_all(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()


def _close_old(pool: weakref.ref[Pool]) -> None:
    found = pool()
    if found is not None:
        found.close_old()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
