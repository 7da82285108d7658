"""As ``snapshot``, for asyncio."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# The module, not its class: the two name each other, and the sandbox is loaded first.
from . import _async_sandbox as sandboxes  # pyright: ignore[reportPrivateUsage]
from ._async import AsyncSession
from ._async_client import AsyncClient, async_session_of
from ._async_ending import run_and_undo
from ._handles import SnapshotHandle
from ._keywords import known_keywords
from ._living import delete_sandbox, delete_snapshot, get_snapshot, list_snapshots
from ._making import MountLike, SandboxWish, create
from ._options import NetworkMode, OnTimeout, PromiseClass
from .network import RuleLike


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

    @known_keywords
    async def create_sandbox(
        self,
        *,
        ttl_seconds: int | None = None,
        persistent: bool = False,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        volumes: Sequence[MountLike] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        cpu: float | None = None,
        disk_gb: float | None = None,
        class_: PromiseClass | None = None,
        disk_only: bool = False,
    ) -> sandboxes.AsyncSandbox:
        """A new sandbox that goes on from this moment, or with ``disk_only`` boots on its disk."""
        wish = SandboxWish(
            from_snapshot=self.id,
            ttl_seconds=ttl_seconds,
            persistent=persistent,
            metadata=metadata,
            env=env,
            idle_seconds=idle_seconds,
            on_timeout=on_timeout,
            volumes=volumes,
            egress_allowlist=egress_allowlist,
            network=network,
            cpu=cpu,
            disk_gb=disk_gb,
            class_=class_,
            disk_only=disk_only,
        )
        info = await run_and_undo(self._session, create(wish), lambda made: delete_sandbox(made.id))
        return sandboxes.AsyncSandbox.of(self._session, info)

    async def delete(self) -> None:
        """Deletes it. Sandboxes that came from it stay."""
        await self._session.run(delete_snapshot(self.id))
