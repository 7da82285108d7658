"""As ``snapshot``, for asyncio."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from ._async import AsyncSession
from ._async_client import AsyncClient, async_session_of
from ._handles import SnapshotHandle
from ._living import delete_snapshot, get_snapshot, list_snapshots
from ._making import SandboxWish, create

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._async_sandbox import AsyncSandbox
    from ._options import CopyOptions


class AsyncSnapshot(SnapshotHandle[AsyncSession]):
    """As ``Snapshot``, for asyncio."""

    @classmethod
    async def get(
        cls,
        snapshot: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> AsyncSnapshot:
        """The snapshot of that id or name."""
        session = async_session_of(client, api_url, api_key)
        return cls(session, session.settings, await session.run(get_snapshot(snapshot)))

    @classmethod
    async def list(
        cls,
        sandbox_id: str | None = None,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> builtins.list[AsyncSnapshot]:
        """The snapshots of the project, or of one sandbox."""
        session = async_session_of(client, api_url, api_key)
        found = await session.run(list_snapshots(sandbox_id))
        return [cls(session, session.settings, one) for one in found]

    async def create_sandbox(self, **options: Unpack[CopyOptions]) -> AsyncSandbox:
        """A new sandbox that goes on from this moment."""
        from ._async_sandbox import AsyncSandbox

        info = await self._session.run(create(SandboxWish(from_snapshot=self.id, **options)))
        return AsyncSandbox.of(self._session, info)

    async def delete(self) -> None:
        await self._session.run(delete_snapshot(self.id))
