"""The children of a fork, together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from . import _living
from ._async import AsyncSession
from ._async_ending import run_to_end
from ._closing import AsyncClosing, Closing
from ._handles import SandboxHandle
from ._sync import Session

S = TypeVar("S", bound=SandboxHandle[Session])
A = TypeVar("A", bound=SandboxHandle[AsyncSession])


class Children(list[S], Closing):
    """A list of children; at the end of ``with`` those are deleted that are still held.

    ``failures`` says by id why others were not made. It is empty unless ``partial`` was asked for::

        with sandbox.fork(3) as children:
            results = [child.exec("make test") for child in children]
            children[0].detach()    # this one stays
    """

    def __init__(self, session: Session, made: Iterable[S], failures: Mapping[str, str]) -> None:
        super().__init__(made)
        self._session = session
        self.failures: dict[str, str] = dict(failures)

    def close(self) -> None:
        """Deletes those that were not deleted or detached."""
        held = [child for child in self if child.is_held]
        self._session.run(_living.delete_together([child.id for child in held]))


class AsyncChildren(list[A], AsyncClosing):
    """As ``Children``, for ``async with``."""

    def __init__(
        self, session: AsyncSession, made: Iterable[A], failures: Mapping[str, str]
    ) -> None:
        super().__init__(made)
        self._session = session
        self.failures: dict[str, str] = dict(failures)

    async def close(self) -> None:
        """Deletes those that were not deleted or detached."""
        held = [child for child in self if child.is_held]
        await run_to_end(self._session, _living.delete_together([child.id for child in held]))
