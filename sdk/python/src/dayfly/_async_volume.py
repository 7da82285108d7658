"""As ``volume``, for asyncio."""

from __future__ import annotations

import builtins

from ._async import AsyncSession
from ._async_client import AsyncClient, async_session_of
from ._handles import VolumeHandle
from ._keywords import known_keywords
from ._living import create_volume, delete_volume, get_volume, grow_volume, list_volumes
from .models import VolumeInfo


class AsyncVolume(VolumeHandle[AsyncSession]):
    """As ``Volume``, for asyncio."""

    @classmethod
    @known_keywords
    async def create(
        cls,
        name: str,
        size_gb: float | None = None,
        *,
        size_mb: int | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> AsyncVolume:
        """Makes one; ``AlreadyExists`` when there is one of that name and another size."""
        session = async_session_of(client, api_url, api_key)
        make = create_volume(name, size_gb, size_mb, accept_other_size=False)
        return cls(session, await session.run(make))

    @classmethod
    @known_keywords
    async def get_or_create(
        cls,
        name: str,
        size_gb: float | None = None,
        *,
        size_mb: int | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> AsyncVolume:
        """The one of that name, whatever its size; made with this size if there is none."""
        session = async_session_of(client, api_url, api_key)
        make = create_volume(name, size_gb, size_mb, accept_other_size=True)
        return cls(session, await session.run(make))

    @classmethod
    @known_keywords
    async def get(
        cls,
        name: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> AsyncVolume:
        """The volume of that name."""
        session = async_session_of(client, api_url, api_key)
        return cls(session, await session.run(get_volume(name)))

    @classmethod
    @known_keywords
    async def list(
        cls,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> builtins.list[AsyncVolume]:
        """The volumes of the project."""
        session = async_session_of(client, api_url, api_key)
        return [cls(session, info) for info in await session.run(list_volumes())]

    @known_keywords
    async def grow(self, size_gb: float | None = None, *, size_mb: int | None = None) -> None:
        """Makes it larger, while no sandbox has it."""
        self.info: VolumeInfo = await self._session.run(grow_volume(self.name, size_gb, size_mb))

    async def delete(self) -> None:
        """Deletes it with all that is on it. One that a sandbox has is refused."""
        await self._session.run(delete_volume(self.name))
