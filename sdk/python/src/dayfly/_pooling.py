"""Which sandboxes of a pool are free and which are not, without asking anybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ._handles import SandboxHandle
from .errors import DayflyError

TTL_DEFAULT = 3600
# Longer than the sandbox lives that is rolled back to it.
RETAIN_MORE_SECONDS = 60

S = TypeVar("S", bound=SandboxHandle[Any])
N = TypeVar("N")


class PoolFull(DayflyError, TimeoutError):
    """Every sandbox of the pool is in use, and none was given back in time."""


class ClosedPool(DayflyError):
    """The pool was closed."""

    def __init__(self, message: str = "the pool is closed") -> None:
        super().__init__(message)


@dataclass(frozen=True)
class PoolStatus:
    """How many sandboxes of a pool are where. Those that were never needed are not made."""

    size: int
    free: int
    in_use: int
    busy: int

    @property
    def made(self) -> int:
        return self.free + self.in_use + self.busy


@dataclass(frozen=True)
class Member(Generic[S, N]):
    """A sandbox, and the moment that it is rolled back to."""

    sandbox: S
    snapshot: N


def retain_seconds(ttl_seconds: int | None) -> int:
    """How long a snapshot of the pool is kept, also when this process dies and deletes nothing."""
    return (ttl_seconds or TTL_DEFAULT) + RETAIN_MORE_SECONDS


class Shelf(Generic[S, N]):
    """The places of a pool. Whoever uses it keeps others away meanwhile."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError("a pool has at least one sandbox")
        self._size = size
        self._free: list[Member[S, N]] = []
        self._in_use: dict[str, Member[S, N]] = {}
        # Places whose sandbox is being made or reset.
        self._busy = 0
        self._is_closed = False

    def can_take(self) -> bool:
        return self._is_closed or bool(self._free) or self._has_place()

    def _has_place(self) -> bool:
        return len(self._free) + len(self._in_use) + self._busy < self._size

    def take(self) -> Member[S, N] | None:
        """A free one, which is in use from now on; or nothing, and a place to make one for."""
        if self._is_closed:
            raise ClosedPool
        if self._free:
            # The last that was used: others may sleep.
            member = self._free.pop()
            self._in_use[member.sandbox.id] = member
            return member
        if not self._has_place():
            raise PoolFull(
                f"all {self._size} sandboxes of the pool are in use",
                hint="release() gives one back; a larger size or timeout_seconds helps as well",
            )
        self._busy += 1
        return None

    def remake(self, sandbox: str) -> None:
        """One that was taken is gone; its place is for a new one."""
        self._in_use.pop(sandbox, None)
        self._busy += 1

    def add(self, member: Member[S, N]) -> bool:
        """A new one is in use. False when the pool was closed meanwhile."""
        self._busy -= 1
        if not self._is_closed:
            self._in_use[member.sandbox.id] = member
        return not self._is_closed

    def give_up(self, member: Member[S, N] | None) -> None:
        """Nobody has what was taken: the member itself, or the place for a new one."""
        if member is None:
            self._busy -= 1
        elif self._in_use.pop(member.sandbox.id, None) is not None:
            self._free.append(member)

    def give_back(self, sandbox: str) -> Member[S, N] | None:
        """One that is to be reset; nothing when the pool was closed, and it with the pool."""
        if self._is_closed:
            return None
        member = self._in_use.pop(sandbox, None)
        if member is None:
            raise ValueError(f"{sandbox} is not in use of this pool")
        self._busy += 1
        return member

    def put(self, member: Member[S, N], *, is_clean: bool) -> bool:
        """One that was given back is free again. False when it is not wanted any more."""
        self._busy -= 1
        if is_clean and not self._is_closed:
            self._free.append(member)
            return True
        return False

    def status(self) -> PoolStatus:
        return PoolStatus(self._size, len(self._free), len(self._in_use), self._busy)

    def close(self) -> list[Member[S, N]]:
        """All that are there, for whoever deletes them."""
        members = [*self._free, *self._in_use.values()]
        self._free, self._in_use, self._is_closed = [], {}, True
        return members
