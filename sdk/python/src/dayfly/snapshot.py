"""Moments of sandboxes that were kept."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from ._handles import SnapshotHandle
from ._living import delete_snapshot, get_snapshot, list_snapshots
from ._making import SandboxWish, create
from ._sync import Session
from .client import Client, session_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CopyOptions
    from .sandbox import Sandbox


class Snapshot(SnapshotHandle[Session]):
    """Memory and disk of one moment; ``Sandbox.snapshot`` takes one.

    It stays until it is deleted, also when its sandbox is gone::

        snapshot = sandbox.snapshot()
        copy = snapshot.create_sandbox()
    """

    @classmethod
    def get(
        cls,
        snapshot: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Snapshot:
        """The snapshot of that id or name."""
        session = session_of(client, api_url, api_key)
        return cls(session, session.settings, session.run(get_snapshot(snapshot)))

    @classmethod
    def list(
        cls,
        sandbox_id: str | None = None,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> builtins.list[Snapshot]:
        """The snapshots of the project, or of one sandbox."""
        session = session_of(client, api_url, api_key)
        found = session.run(list_snapshots(sandbox_id))
        return [cls(session, session.settings, one) for one in found]

    def create_sandbox(self, **options: Unpack[CopyOptions]) -> Sandbox:
        """A new sandbox that goes on from this moment."""
        from .sandbox import Sandbox

        info = self._session.run(create(SandboxWish(from_snapshot=self.id, **options)))
        return Sandbox.of(self._session, info)

    def delete(self) -> None:
        self._session.run(delete_snapshot(self.id))
