"""As ``sandbox_pool``, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from ._async_client import AsyncClient
from ._async_ending import Making, to_end, told_once
from ._async_sandbox import AsyncSandbox
from ._async_snapshot import AsyncSnapshot
from ._keywords import known_keywords
from ._making import MountLike
from ._options import NetworkMode, PromiseClass
from ._pooling import ClosedPool, Member, PoolStatus, Shelf, retain_seconds
from .builds import TemplateLike
from .errors import DayflyError, NotFound
from .network import RuleLike

# How long an acquire waits for one that is given back.
WAIT_SECONDS = 60.0
USABLE = ("running", "paused", "hibernated")


class AsyncAcquired:
    """A sandbox of a pool for the time of ``with``; at its end it goes back."""

    def __init__(
        self,
        take: Callable[[], Awaitable[AsyncSandbox]],
        release: Callable[[AsyncSandbox], Awaitable[None]],
    ) -> None:
        self._take = take
        self._release = release
        self._sandbox: AsyncSandbox | None = None

    async def get(self) -> AsyncSandbox:
        """The sandbox, without ``with``. Give it back by ``SandboxPool.release``."""
        return await self._take()

    async def __aenter__(self) -> AsyncSandbox:
        self._sandbox = await self.get()
        return self._sandbox

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._sandbox is not None:
            await self._release(self._sandbox)


class AsyncSandboxPool:
    """As ``SandboxPool``, for asyncio. ``prepare`` may be a coroutine function."""

    @known_keywords
    def __init__(
        self,
        size: int,
        template: TemplateLike | None = None,
        *,
        prepare: Callable[[AsyncSandbox], Any] | None = None,
        ttl_seconds: int | None = None,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        volumes: Sequence[MountLike] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        cpu: float | None = None,
        memory_mb: int | None = None,
        disk_gb: float | None = None,
        class_: PromiseClass | None = None,
        from_snapshot: str | None = None,
        wait_seconds: float | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> None:
        self._shelf: Shelf[AsyncSandbox, AsyncSnapshot] = Shelf(size)
        self._changed = asyncio.Condition()
        self._prepare = prepare
        # One who had a sandbox may have replaced them, and a rollback keeps them.
        self._env = dict(env or {})
        self._retain_seconds = retain_seconds(ttl_seconds)
        self._create: Callable[[], Making[AsyncSandbox]] = lambda: AsyncSandbox.create(
            template,
            ttl_seconds=ttl_seconds,
            metadata=metadata,
            env=env,
            volumes=volumes,
            egress_allowlist=None if egress_allowlist is None else list(egress_allowlist),
            network=network,
            cpu=cpu,
            memory_mb=memory_mb,
            disk_gb=disk_gb,
            class_=class_,
            from_snapshot=from_snapshot,
            wait_seconds=wait_seconds,
            api_url=api_url,
            api_key=api_key,
            client=client,
        )

    @known_keywords
    def acquire(self, timeout_seconds: float = WAIT_SECONDS) -> AsyncAcquired:
        """A sandbox for the time of ``with``. ``PoolFull`` when none is free in time."""
        return AsyncAcquired(lambda: self._take(timeout_seconds), self.release)

    async def release(self, sandbox: AsyncSandbox) -> None:
        """Gives one back: it is reset, or deleted when it cannot be. A cancelled caller waits."""
        await to_end(self._reset(sandbox))

    async def _reset(self, sandbox: AsyncSandbox) -> None:
        async with self._changed:
            member = self._shelf.give_back(sandbox.id)
        if member is None:
            return
        is_clean = False
        try:
            await sandbox.rollback(member.snapshot, env=self._env)
            is_clean = True
        except DayflyError:
            # It is deleted below, and a new one is made when one is needed.
            pass
        finally:
            await self._put(member, is_clean)

    def status(self) -> PoolStatus:
        """How many are free, in use, and being made or reset. Asks nobody."""
        return self._shelf.status()

    async def close(self) -> None:
        """Deletes the sandboxes and snapshots. Those that are in use are deleted as well."""
        async with self._changed:
            members = self._shelf.close()
            self._changed.notify_all()
        for member in members:
            await to_end(_discard(member))

    async def __aenter__(self) -> AsyncSandboxPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _take(self, timeout_seconds: float) -> AsyncSandbox:
        # In a task of its own: a cancelled caller must not leave one that nobody has.
        task = asyncio.ensure_future(self._find(timeout_seconds))
        try:
            return await told_once(task)
        except asyncio.CancelledError:
            if not task.cancelled() and task.exception() is None:
                await self.release(task.result())
            raise

    async def _find(self, timeout_seconds: float) -> AsyncSandbox:
        async with self._changed:
            # When that takes too long, the shelf says why there is none.
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                can_take = self._changed.wait_for(self._shelf.can_take)
                await asyncio.wait_for(can_take, timeout_seconds)
            member = self._shelf.take()
        try:
            if member is not None:
                if await _is_there(member):
                    return member.sandbox
                self._shelf.remake(member.sandbox.id)
                member = None
            made = await self._make()
        except BaseException:
            async with self._changed:
                self._shelf.give_up(member)
                self._changed.notify()
            raise
        if not self._shelf.add(made):
            await _discard(made)
            raise ClosedPool
        return made.sandbox

    async def _make(self) -> Member[AsyncSandbox, AsyncSnapshot]:
        sandbox = await self._create()
        try:
            if self._prepare is not None:
                outcome = self._prepare(sandbox)
                if inspect.isawaitable(outcome):
                    await outcome
            return Member(sandbox, await sandbox.snapshot(retain_seconds=self._retain_seconds))
        except BaseException:
            await sandbox.delete()
            raise

    async def _put(self, member: Member[AsyncSandbox, AsyncSnapshot], is_clean: bool) -> None:
        async with self._changed:
            is_kept = self._shelf.put(member, is_clean=is_clean)
            self._changed.notify()
        if not is_kept:
            await _discard(member)


async def _is_there(member: Member[AsyncSandbox, AsyncSnapshot]) -> bool:
    """Whether it is still there: its time may have been over meanwhile."""
    try:
        await member.sandbox.refresh()
    except NotFound:
        await _discard(member)
        return False
    if member.sandbox.status in USABLE:
        return True
    await _discard(member)
    return False


async def _discard(member: Member[AsyncSandbox, AsyncSnapshot]) -> None:
    for unwanted in (member.sandbox, member.snapshot):
        try:
            await unwanted.delete()
        except DayflyError:
            # Both have an end of their own.
            continue
