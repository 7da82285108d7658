"""Which sandbox an agent works in, how long it is kept, and who deletes it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Literal

from .._effects import Operation
from .._living import delete_sandbox, get_sandbox
from .._making import SandboxWish, create
from ..errors import AlreadyExists, DayflyError, NotFound
from ..models import SandboxInfo

Scope = Literal["task", "session", "user"]

TEMPLATE = "code-interpreter"
TTL_SECONDS = 3600
# A user's sandbox sleeps between visits, and is deleted when nobody came for so long.
USER_TTL_SECONDS = 30 * 24 * 3600
USER_IDLE_SECONDS = 600


@dataclass(frozen=True)
class Given:
    """A sandbox of the caller's, who deletes it."""

    info: SandboxInfo


@dataclass(frozen=True)
class Made:
    """A sandbox that is made: for one run, for all runs of an agent, or for a user."""

    wish: SandboxWish
    scope: Scope


Place = Given | Made


def made(
    *,
    template: str | None,
    from_snapshot: str | None,
    ttl_seconds: int | None,
    egress_allowlist: list[str] | None,
    scope: Scope,
    user: str | None,
) -> Made:
    """What an agent is to make for itself. Its network is closed unless hosts are named."""
    if scope not in ("task", "session", "user"):
        raise ValueError('scope is "task", "session" or "user"')
    if (user is not None) != (scope == "user"):
        raise ValueError('scope="user" and user="..." belong together')
    wish = SandboxWish(
        template=template or (None if from_snapshot else TEMPLATE),
        from_snapshot=from_snapshot,
        ttl_seconds=ttl_seconds or TTL_SECONDS,
        network="deny" if egress_allowlist is None else None,
        egress_allowlist=egress_allowlist,
    )
    if user is not None:
        wish = replace(
            wish,
            name=user,
            ttl_seconds=ttl_seconds or USER_TTL_SECONDS,
            idle_seconds=USER_IDLE_SECONDS,
            on_timeout="hibernate",
        )
    return Made(wish, scope)


class AgentSandbox:
    """The sandbox of an agent, from its first use to its end."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._kept: SandboxInfo | None = None

    def enter(self) -> Operation[SandboxInfo]:
        """The sandbox of a run; it is made if there is none."""
        if isinstance(self._place, Given):
            return self._place.info
        if self._kept is not None:
            return self._kept
        if self._place.scope == "user":
            info = yield from _named(self._place.wish)
        else:
            info = yield from create(self._place.wish)
        if self._place.scope != "task":
            self._kept = info
        return info

    def leave(self, info: SandboxInfo) -> Operation[None]:
        """After a run: deletes what was made for it alone."""
        if isinstance(self._place, Made) and self._place.scope == "task":
            yield from _delete(info)

    def close(self) -> Operation[None]:
        """Deletes what was made for all runs; that of a user stays."""
        kept, self._kept = self._kept, None
        if kept is not None and isinstance(self._place, Made) and self._place.scope == "session":
            yield from _delete(kept)

    def forget(self) -> None:
        """The sandbox is lost: the next run makes another."""
        self._kept = None

    @property
    def is_over_after_run(self) -> bool:
        return isinstance(self._place, Made) and self._place.scope == "task"

    @property
    def ttl_seconds(self) -> int | None:
        """How long it lives, and so what belongs to it."""
        if isinstance(self._place, Given):
            return self._place.info.ttl_seconds
        return self._place.wish.ttl_seconds


def _named(wish: SandboxWish) -> Operation[SandboxInfo]:
    assert wish.name is not None
    try:
        return (yield from get_sandbox(wish.name))
    except NotFound:
        pass
    try:
        return (yield from create(wish))
    except AlreadyExists:
        # Somebody else was quicker.
        return (yield from get_sandbox(wish.name))


def _delete(info: SandboxInfo) -> Operation[None]:
    # Its TTL ends it when it cannot be deleted now; how the run ended is the better news.
    with contextlib.suppress(DayflyError):
        yield from delete_sandbox(info.id)
