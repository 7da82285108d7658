"""Sandboxes that are ready before they are needed, and used again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._keywords import known_keywords
from ._making import MountLike
from ._options import NetworkMode, PromiseClass
from ._pooling import ClosedPool, Member, PoolFull, PoolStatus, Shelf, retain_seconds
from .builds import TemplateLike
from .client import Client
from .errors import DayflyError, NotFound
from .network import RuleLike
from .sandbox import Sandbox
from .snapshot import Snapshot

# How long an acquire waits for one that is given back.
WAIT_SECONDS = 60.0
USABLE = ("running", "paused", "hibernated")


class Acquired:
    """A sandbox of a pool for the time of ``with``; at its end it goes back."""

    def __init__(
        self,
        take: Callable[[], Sandbox],
        release: Callable[[Sandbox], None],
    ) -> None:
        self._take = take
        self._release = release
        self._sandbox: Sandbox | None = None

    def get(self) -> Sandbox:
        """The sandbox, without ``with``. Give it back by ``SandboxPool.release``."""
        return self._take()

    def __enter__(self) -> Sandbox:
        self._sandbox = self.get()
        return self._sandbox

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._sandbox is not None:
            self._release(self._sandbox)


class SandboxPool:
    """A number of sandboxes that are alike, for one user after the other.

    One that is given back is rolled back to the moment after ``prepare``: no file, process or
    variable of one user is seen by the next. One that cannot be is deleted, and replaced by the
    next ``acquire`` that needs it::

        with SandboxPool(4, "code-interpreter", prepare=install) as pool:
            with pool.acquire() as sandbox:
                sandbox.run_code("...")

    - ``size``: how many there are at most. They are made when they are first needed.
    - ``prepare``: is given each new sandbox, before the moment that it is rolled back to.
    - ``ttl_seconds``: how long each lives; one whose time is over is replaced.
    - The others mean what they mean for ``Sandbox``.

    Threads may share a pool. At the end of ``with`` its sandboxes and snapshots are deleted.
    """

    @known_keywords
    def __init__(
        self,
        size: int,
        template: TemplateLike | None = None,
        *,
        prepare: Callable[[Sandbox], Any] | None = None,
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
        client: Client | None = None,
    ) -> None:
        self._shelf: Shelf[Sandbox, Snapshot] = Shelf(size)
        self._changed = threading.Condition()
        self._prepare = prepare
        # One who had a sandbox may have replaced them, and a rollback keeps them.
        self._env = dict(env or {})
        self._retain_seconds = retain_seconds(ttl_seconds)
        self._create: Callable[[], Sandbox] = lambda: Sandbox(
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
    def acquire(self, timeout_seconds: float = WAIT_SECONDS) -> Acquired:
        """A sandbox for the time of ``with``. ``PoolFull`` when none is free in time."""
        return Acquired(lambda: self._take(timeout_seconds), self.release)

    def release(self, sandbox: Sandbox) -> None:
        """Gives one back: it is reset, or deleted when it cannot be."""
        with self._changed:
            member = self._shelf.give_back(sandbox.id)
        if member is None:
            return
        is_clean = False
        try:
            sandbox.rollback(member.snapshot, env=self._env)
            is_clean = True
        except DayflyError:
            # It is deleted below, and a new one is made when one is needed.
            pass
        finally:
            self._put(member, is_clean)

    def status(self) -> PoolStatus:
        """How many are free, in use, and being made or reset. Asks nobody."""
        with self._changed:
            return self._shelf.status()

    def close(self) -> None:
        """Deletes the sandboxes and snapshots. Those that are in use are deleted as well."""
        with self._changed:
            members = self._shelf.close()
            self._changed.notify_all()
        for member in members:
            _discard(member)

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, timeout_seconds: float) -> Sandbox:
        with self._changed:
            self._changed.wait_for(self._shelf.can_take, timeout_seconds)
            member = self._shelf.take()
        try:
            if member is not None:
                if _is_there(member):
                    return member.sandbox
                with self._changed:
                    self._shelf.remake(member.sandbox.id)
                member = None
            made = self._make()
        except BaseException:
            with self._changed:
                self._shelf.give_up(member)
                self._changed.notify()
            raise
        with self._changed:
            is_open = self._shelf.add(made)
        if not is_open:
            _discard(made)
            raise ClosedPool
        return made.sandbox

    def _make(self) -> Member[Sandbox, Snapshot]:
        sandbox = self._create()
        try:
            if self._prepare is not None:
                self._prepare(sandbox)
            return Member(sandbox, sandbox.snapshot(retain_seconds=self._retain_seconds))
        except BaseException:
            sandbox.delete()
            raise

    def _put(self, member: Member[Sandbox, Snapshot], is_clean: bool) -> None:
        with self._changed:
            is_kept = self._shelf.put(member, is_clean=is_clean)
            self._changed.notify()
        if not is_kept:
            _discard(member)


def _is_there(member: Member[Sandbox, Snapshot]) -> bool:
    """Whether it is still there: its time may have been over meanwhile."""
    try:
        member.sandbox.refresh()
    except NotFound:
        _discard(member)
        return False
    if member.sandbox.status in USABLE:
        return True
    _discard(member)
    return False


def _discard(member: Member[Sandbox, Snapshot]) -> None:
    for unwanted in (member.sandbox, member.snapshot):
        try:
            unwanted.delete()
        except DayflyError:
            # Both have an end of their own.
            continue


__all__ = ["Acquired", "ClosedPool", "PoolFull", "PoolStatus", "SandboxPool"]
