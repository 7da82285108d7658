"""As ``volume``, for asyncio."""

from __future__ import annotations

import builtins

from ._async import AsyncSession, async_session_for
from ._handles import VolumeHandle
from ._living import create_volume, delete_volume, get_volume, grow_volume, list_volumes
from ._settings import load_settings


class AsyncVolume(VolumeHandle[AsyncSession]):
    """As ``Volume``, for asyncio."""

    @classmethod
    async def create(
        cls,
        name: str,
        size_gb: float | None = None,
        *,
        size_mb: int | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
    ) -> AsyncVolume:
        session = async_session_for(load_settings(api_url, api_key))
        make = create_volume(name, size_gb, size_mb, accept_other_size=False)
        return cls(session, await session.run(make))

    @classmethod
    async def get_or_create(
        cls,
        name: str,
        size_gb: float | None = None,
        *,
        size_mb: int | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
    ) -> AsyncVolume:
        session = async_session_for(load_settings(api_url, api_key))
        make = create_volume(name, size_gb, size_mb, accept_other_size=True)
        return cls(session, await session.run(make))

    @classmethod
    async def get(
        cls, name: str, *, api_url: str | None = None, api_key: str | None = None
    ) -> AsyncVolume:
        session = async_session_for(load_settings(api_url, api_key))
        return cls(session, await session.run(get_volume(name)))

    @classmethod
    async def list(
        cls, *, api_url: str | None = None, api_key: str | None = None
    ) -> builtins.list[AsyncVolume]:
        session = async_session_for(load_settings(api_url, api_key))
        return [cls(session, info) for info in await session.run(list_volumes())]

    async def grow(self, size_gb: float | None = None, *, size_mb: int | None = None) -> None:
        self.info = await self._session.run(grow_volume(self.name, size_gb, size_mb))

    async def delete(self) -> None:
        await self._session.run(delete_volume(self.name))
