"""Carries operations out on asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import ssl
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from ._async_connections import LoopPool
from ._effects import Ask, Body, Effect, Know, Open, Operation, Read, Send, Sleep, Within
from ._facts import ClientFacts
from ._settings import Settings
from ._wire import Answer, Request

T = TypeVar("T")


class AsyncBodyLike(Body, Protocol):
    """A body that is awaited."""

    async def read(self, timeout: float | None) -> bytes: ...


class AsyncTransport(Protocol):
    """Connections, and what differs from one asynchronous world to another."""

    async def send(self, facts: ClientFacts, request: Request) -> Answer: ...

    async def open(self, facts: ClientFacts, request: Request) -> AsyncBodyLike: ...

    async def connect(
        self, facts: ClientFacts
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection for another protocol than HTTP."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def within(self, seconds: float, work: Awaitable[Any]) -> Any:
        """Awaits something for so long; ``TimeoutError`` if it takes longer."""
        ...

    async def together(
        self, calls: Sequence[Callable[[], Awaitable[Any]]], at_once: int
    ) -> list[Any]:
        """Results and exceptions of calls, of which so many run at once."""
        ...

    def shield(self) -> AbstractContextManager[object]:
        """Within it nothing is cancelled, where a world cancels every further await."""
        ...

    def close_idle(self) -> None: ...

    async def close(self) -> None: ...


class AsyncioTransport:
    """Connections of each event loop, which belong to the loop that made them."""

    def __init__(self, limit: int, tls: ssl.SSLContext | None = None) -> None:
        self._limit = limit
        self._tls = tls
        self._is_closed = False
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopPool] = (
            weakref.WeakKeyDictionary()
        )

    async def send(self, facts: ClientFacts, request: Request) -> Answer:
        return await self.pool().send(facts, request)

    async def open(self, facts: ClientFacts, request: Request) -> AsyncBodyLike:
        return await self.pool().open(facts, request)

    async def connect(
        self, facts: ClientFacts
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        connection = await self.pool().connect(facts)
        return connection.reader, connection.writer

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, work: Awaitable[Any]) -> Any:
        async with asyncio.timeout(seconds):
            return await work

    async def together(
        self, calls: Sequence[Callable[[], Awaitable[Any]]], at_once: int
    ) -> list[Any]:
        places = asyncio.Semaphore(max(1, at_once))

        async def one(call: Callable[[], Awaitable[Any]]) -> Any:
            async with places:
                return await call()

        return await asyncio.gather(*map(one, calls), return_exceptions=True)

    def shield(self) -> AbstractContextManager[object]:
        # A task of asyncio is cancelled once, and may clean up after that.
        return contextlib.nullcontext()

    def close_idle(self) -> None:
        self.pool().close_idle()

    async def close(self) -> None:
        self._is_closed = True
        self.pool().close()

    def pool(self) -> LoopPool:
        loop = _running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            # Connections hold on to their loop, which would keep it here for ever.
            for ended in [one for one in self._pools if one.is_closed()]:
                del self._pools[ended]
            pool = self._pools[loop] = LoopPool(self._limit, self._tls)
            if self._is_closed:
                pool.close()
        return pool


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "no event loop of asyncio runs here; for trio there is dayfly.httpx2.AsyncClient"
        ) from None


class AsyncSession:
    """Carries operations out, awaiting what takes time."""

    def __init__(self, facts: ClientFacts, transport: AsyncTransport) -> None:
        self.facts: ClientFacts = facts
        self.settings: Settings = facts.settings
        self.transport: AsyncTransport = transport

    async def run(self, operation: Operation[T]) -> T:
        try:
            effect = next(operation)
            is_cancelled = False
            while True:
                try:
                    with self.transport.shield() if is_cancelled else contextlib.nullcontext():
                        done = await self._perform(effect)
                # All of them: an operation may have to clean up after a cancellation.
                except BaseException as error:
                    effect = operation.throw(error)
                    is_cancelled = is_cancelled or not isinstance(error, Exception)
                else:
                    effect = operation.send(done)
        except StopIteration as stop:
            outcome: T = stop.value
            return outcome

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the server for another protocol than HTTP, by the client's own rules."""
        return await self.transport.connect(self.facts)

    def close_idle(self) -> None:
        self.transport.close_idle()

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return await self.transport.send(self.facts, effect.request)
        if isinstance(effect, Open):
            return await self.transport.open(self.facts, effect.request)
        if isinstance(effect, Read):
            body: Any = effect.body
            return await body.read(effect.timeout)
        if isinstance(effect, Sleep):
            return await self.transport.sleep(effect.seconds)
        if isinstance(effect, Know):
            return self.facts
        if isinstance(effect, Ask):
            outcome = effect.function(*effect.arguments)
            return await outcome if inspect.isawaitable(outcome) else outcome
        if isinstance(effect, Within):
            outcome = effect.function(*effect.arguments)
            if not inspect.isawaitable(outcome):
                return outcome
            return await self.transport.within(max(0.0, effect.seconds), outcome)
        calls = [lambda one=one: self.run(one) for one in effect.operations]
        return await self.transport.together(calls, effect.at_once)
