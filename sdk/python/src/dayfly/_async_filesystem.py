"""As ``filesystem``, for asyncio."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path

from . import _files
from ._async import AsyncSession
from ._keywords import known_keywords
from ._watching import WatchState, open_watch
from .models import ChangedFile, FileChange, FileEntry, FileLink


class AsyncWatch:
    """Changes of a directory: iterate over it, and close it when done."""

    def __init__(self, session: AsyncSession, state: WatchState) -> None:
        self._session = session
        self._state = state

    def __aiter__(self) -> AsyncIterator[FileChange]:
        return self

    async def __anext__(self) -> FileChange:
        change = await self._session.run(self._state.next())
        if change is None:
            raise StopAsyncIteration
        return change

    def close(self) -> None:
        """Ends the watch."""
        self._state.close()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncFilesystem:
    """As ``Filesystem``, for asyncio."""

    def __init__(self, session: AsyncSession, sandbox: str) -> None:
        self._session = session
        self._sandbox = sandbox

    @known_keywords
    async def read(
        self,
        path: str,
        *,
        offset: int | None = None,
        length: int | None = None,
        user: str | None = None,
    ) -> bytes:
        """The content of a file, or a part of it."""
        return await self._session.run(_files.read(self._sandbox, path, user, offset, length))

    @known_keywords
    async def read_text(
        self, path: str, encoding: str = "utf-8", *, user: str | None = None
    ) -> str:
        """The content of a file as text."""
        return (await self.read(path, user=user)).decode(encoding)

    @known_keywords
    async def write(
        self,
        path: str,
        data: str | bytes,
        *,
        mode: int | None = None,
        append: bool = False,
        user: str | None = None,
    ) -> int:
        """Replaces a file as a whole, or appends to it. Directories above it are made.

        Gives the number of bytes.
        """
        content = _files.content_of(data)
        write = _files.write(
            self._sandbox, path, content, None, mode=mode, append=append, user=user
        )
        return await self._session.run(write)

    @known_keywords
    async def upload(
        self, local: str | PathLike[str], remote: str, *, user: str | None = None
    ) -> int:
        """Copies a local file or directory into the sandbox and gives the number of bytes.

        With ``remote`` ``"dir/"`` into that directory, which is made.
        """
        return await self._session.run(_files.upload(self._sandbox, local, remote, user))

    @known_keywords
    async def download(
        self, remote: str, local: str | PathLike[str], *, user: str | None = None
    ) -> Path:
        """Copies a file or directory out of the sandbox and gives its local path.

        With ``local`` ``"dir/"`` into that directory, which is made.
        """
        return await self._session.run(_files.download(self._sandbox, remote, local, user))

    @known_keywords
    async def list(
        self, path: str = "/workspace", *, depth: int | None = None, user: str | None = None
    ) -> builtins.list[FileEntry]:
        """The entries of a directory; with ``depth`` also of those below it."""
        return await self._session.run(_files.list_directory(self._sandbox, path, depth, user))

    listdir = list

    @known_keywords
    async def walk(
        self, path: str = "/workspace", *, user: str | None = None
    ) -> AsyncIterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        """As ``os.walk``: each directory with the names of its directories and files.

        Each is read when it is asked for, and names that are taken out of the list of directories
        are not gone into.
        """
        walk = _files.Walk(self._sandbox, path, user)
        while (found := await self._session.run(walk.next())) is not None:
            yield found

    @known_keywords
    async def stat(self, path: str, *, user: str | None = None) -> FileEntry:
        """What a path is, without following a link; ``NotFound`` when it is not there."""
        return await self._session.run(_files.stat(self._sandbox, path, user))

    @known_keywords
    async def exists(self, path: str, *, user: str | None = None) -> bool:
        """Whether there is something at a path."""
        return await self._session.run(_files.exists(self._sandbox, path, user))

    @known_keywords
    async def remove(self, path: str, *, recursive: bool = False, user: str | None = None) -> None:
        """Removes a file or an empty directory; with ``recursive`` a whole one."""
        await self._session.run(_files.remove(self._sandbox, path, recursive=recursive, user=user))

    @known_keywords
    async def mkdir(
        self,
        path: str,
        *,
        parents: bool = True,
        mode: int | None = None,
        user: str | None = None,
    ) -> None:
        """Makes a directory, with those above it unless ``parents`` is false."""
        make = _files.make_directory(self._sandbox, path, parents=parents, mode=mode, user=user)
        await self._session.run(make)

    @known_keywords
    async def move(
        self, source: str, target: str, *, replace: bool = False, user: str | None = None
    ) -> None:
        """Gives another path; ``AlreadyExists`` if that is taken, unless ``replace``."""
        move = _files.move(self._sandbox, source, target, replace_target=replace, user=user)
        await self._session.run(move)

    @known_keywords
    async def chmod(self, path: str, mode: int, *, user: str | None = None) -> None:
        """Changes permission bits: ``chmod(path, 0o755)``."""
        await self._session.run(_files.change_mode(self._sandbox, path, mode, user))

    @known_keywords
    async def download_link(self, path: str, *, ttl_seconds: int | None = None) -> FileLink:
        """An address by which whoever has it reads this file, for an hour by default."""
        return await self._link(path, "download", ttl_seconds)

    @known_keywords
    async def upload_link(self, path: str, *, ttl_seconds: int | None = None) -> FileLink:
        """An address by which whoever has it writes this file, for an hour by default."""
        return await self._link(path, "upload", ttl_seconds)

    async def revoke_link(self, link: FileLink) -> None:
        """Ends a link that this key made, at once."""
        await self._session.run(_files.revoke_link(self._sandbox, link.id))

    async def _link(self, path: str, operation: str, ttl_seconds: int | None) -> FileLink:
        url = self._session.settings.url
        making = _files.make_link(self._sandbox, path, operation, ttl_seconds, api_url=url)
        return await self._session.run(making)

    @known_keywords
    async def watch(
        self, path: str = "/workspace", *, recursive: bool = False, user: str | None = None
    ) -> AsyncWatch:
        """Changes from now on: ``with sandbox.files.watch(path) as watch: for change in watch``."""
        opening = open_watch(self._sandbox, path, recursive=recursive, user=user)
        state = await self._session.run(opening)
        return AsyncWatch(self._session, state)

    @known_keywords
    async def changes(
        self, path: str = "/", *, since: str | None = None
    ) -> builtins.list[ChangedFile]:
        """What differs since the sandbox began, or since one of its snapshots (its id)."""
        return await self._session.run(_files.changes(self._sandbox, path, since))
