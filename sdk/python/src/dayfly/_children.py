"""The children of a fork, together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from . import _living
from ._async import AsyncSession
from ._async_ending import run_to_end
from ._handles import SandboxHandle
from ._sync import Session
from .errors import DayflyError

S = TypeVar("S", bound=SandboxHandle[Session])
A = TypeVar("A", bound=SandboxHandle[AsyncSession])


class Children(list[S]):
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

    def __enter__(self) -> Children[S]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except DayflyError:
            # What went wrong inside is the better news; their TTL ends them.
            if error is None:
                raise


class AsyncChildren(list[A]):
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

    async def __aenter__(self) -> AsyncChildren[A]:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.close()
        except DayflyError:
            # What went wrong inside is the better news; their TTL ends them.
            if error is None:
                raise
