"""Disks that outlive sandboxes."""

from __future__ import annotations

import builtins

from ._handles import VolumeHandle
from ._keywords import known_keywords
from ._living import create_volume, delete_volume, get_volume, grow_volume, list_volumes
from ._sync import Session
from .client import Client, session_of
from .models import VolumeInfo


class Volume(VolumeHandle[Session]):
    """A disk with a name, unique in the project.

    ::

        volume = Volume.get_or_create("user-7", size_gb=20)
        with Sandbox(volumes=[volume.mount("/workspace")]) as sandbox:
            sandbox.exec("git status")
    """

    @classmethod
    @known_keywords
    def create(
        cls,
        name: str,
        size_gb: float | None = None,
        *,
        size_mb: int | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Volume:
        """Makes one; ``AlreadyExists`` when there is one of that name and another size."""
        session = session_of(client, api_url, api_key)
        make = create_volume(name, size_gb, size_mb, accept_other_size=False)
        return cls(session, session.run(make))

    @classmethod
    @known_keywords
    def get_or_create(
        cls,
        name: str,
        size_gb: float | None = None,
        *,
        size_mb: int | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Volume:
        """The one of that name, whatever its size; made with this size if there is none."""
        session = session_of(client, api_url, api_key)
        make = create_volume(name, size_gb, size_mb, accept_other_size=True)
        return cls(session, session.run(make))

    @classmethod
    def get(
        cls,
        name: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Volume:
        """The volume of that name."""
        session = session_of(client, api_url, api_key)
        return cls(session, session.run(get_volume(name)))

    @classmethod
    @known_keywords
    def list(
        cls,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> builtins.list[Volume]:
        """The volumes of the project."""
        session = session_of(client, api_url, api_key)
        return [cls(session, info) for info in session.run(list_volumes())]

    @known_keywords
    def grow(self, size_gb: float | None = None, *, size_mb: int | None = None) -> None:
        """Makes it larger, while no sandbox has it."""
        self.info: VolumeInfo = self._session.run(grow_volume(self.name, size_gb, size_mb))

    def delete(self) -> None:
        """Deletes it with all that is on it. One that a sandbox has is refused."""
        self._session.run(delete_volume(self.name))
