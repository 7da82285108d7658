"""Work that must come to its end although whoever waits for it is cancelled.

A task that is cancelled once may still clean up behind itself. But a cancel scope of anyio cancels
every further await of its task, and so the cleaning up as well: a sandbox would stay that nobody
holds. So such work is done in a task of its own, which no scope knows, and waited for to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from ._async import AsyncSession
from ._effects import Operation
from .errors import DayflyError

T = TypeVar("T")


async def run_to_end(session: AsyncSession, operation: Operation[T]) -> T:
    """Carries an operation out to its end, also when the caller is cancelled meanwhile."""
    if not _has_asyncio():
        with session.transport.shield():
            return await session.run(operation)
    return await _outlast(asyncio.ensure_future(session.run(operation)), is_told=False)


async def to_end(work: Coroutine[Any, Any, T]) -> T:
    """As ``run_to_end``, for several calls after each other."""
    return await _outlast(asyncio.ensure_future(work), is_told=False)


async def told_once(task: asyncio.Task[T]) -> T:
    """Waits for a task that cleans up behind itself; it is told of the first cancellation."""
    return await _outlast(task, is_told=True)


async def run_and_undo(
    session: AsyncSession,
    operation: Operation[T],
    undo: Callable[[T], Operation[None]] | None = None,
) -> T:
    """Carries out an operation that undoes itself when it is cancelled.

    It is told of the first cancellation alone, and has the time to clean up. ``undo`` is for a
    result that was there already, and that nobody will get any more.
    """
    if not _has_asyncio():
        return await session.run(operation)
    task = asyncio.ensure_future(session.run(operation))
    try:
        return await _outlast(task, is_told=True)
    except asyncio.CancelledError:
        if undo is not None and not task.cancelled() and task.exception() is None:
            # What cannot be undone now is ended by its TTL.
            with contextlib.suppress(DayflyError):
                await run_to_end(session, undo(task.result()))
        raise


def _has_asyncio() -> bool:
    """Whether tasks are asyncio's. On trio a session shields what cleans up by itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _outlast(task: asyncio.Task[T], *, is_told: bool) -> T:
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            if cancellation is None and is_told:
                task.cancel()
            cancellation = error
    if cancellation is not None:
        if not task.cancelled():
            # Seen, so that nobody complains that it was not; the cancellation counts.
            task.exception()
        raise cancellation
    return task.result()


class Held(Protocol):
    """What ``async with`` can hold."""

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object, /
    ) -> None: ...


HeldT = TypeVar("HeldT", bound=Held)


class Making(Coroutine[Any, Any, HeldT], Generic[HeldT]):
    """Something that is made when it is awaited, or by ``async with``, which also ends it.

    A coroutine like those of ``async def``, so that a task can be made of it.
    """

    def __init__(self, making: Coroutine[Any, Any, HeldT]) -> None:
        self._making = making
        self._made: HeldT | None = None

    def __await__(self) -> Generator[Any, Any, HeldT]:
        return self._making.__await__()

    def send(self, value: Any) -> Any:
        return self._making.send(value)

    def throw(
        self,
        kind: Any,
        value: BaseException | object | None = None,
        trace: TracebackType | None = None,
    ) -> Any:
        if value is None and trace is None:
            return self._making.throw(kind)
        return self._making.throw(kind, value, trace)

    def close(self) -> None:
        self._making.close()

    async def __aenter__(self) -> HeldT:
        self._made = await self._making
        return self._made

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._made is not None:
            await self._made.__aexit__(kind, error, trace)
