"""The files of a sandbox."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from . import _files
from ._keywords import known_keywords
from ._sync import Session
from ._watching import WatchState, open_watch
from .models import ChangedFile, FileChange, FileEntry, FileLink


class Watch:
    """Changes of a directory: iterate over it, and close it when done."""

    def __init__(self, session: Session, state: WatchState) -> None:
        self._session = session
        self._state = state

    def __iter__(self) -> Iterator[FileChange]:
        return self

    def __next__(self) -> FileChange:
        change = self._session.run(self._state.next())
        if change is None:
            raise StopIteration
        return change

    def close(self) -> None:
        """Ends the watch."""
        self._state.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Filesystem:
    """Files by their path in the guest, as the user ``agent`` unless ``user`` says otherwise.

    ::

        sandbox.filesystem.write("/workspace/a.txt", "hello")
        sandbox.filesystem.read("/workspace/a.txt")        # b'hello'
        sandbox.filesystem.read_text("/workspace/a.txt")   # 'hello'
    """

    def __init__(self, session: Session, sandbox: str) -> None:
        self._session = session
        self._sandbox = sandbox

    @known_keywords
    def read(
        self,
        path: str,
        *,
        offset: int | None = None,
        length: int | None = None,
        user: str | None = None,
    ) -> bytes:
        """The content of a file, or a part of it."""
        return self._session.run(_files.read(self._sandbox, path, user, offset, length))

    @known_keywords
    def read_text(self, path: str, encoding: str = "utf-8", *, user: str | None = None) -> str:
        """The content of a file as text."""
        return self.read(path, user=user).decode(encoding)

    @known_keywords
    def write(
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
        return self._session.run(write)

    @known_keywords
    def upload(self, local: str | PathLike[str], remote: str, *, user: str | None = None) -> int:
        """Copies a local file or directory into the sandbox and gives the number of bytes.

        With ``remote`` ``"dir/"`` into that directory, which is made.
        """
        return self._session.run(_files.upload(self._sandbox, local, remote, user))

    @known_keywords
    def download(self, remote: str, local: str | PathLike[str], *, user: str | None = None) -> Path:
        """Copies a file or directory out of the sandbox and gives its local path.

        With ``local`` ``"dir/"`` into that directory, which is made.
        """
        return self._session.run(_files.download(self._sandbox, remote, local, user))

    @known_keywords
    def list(
        self, path: str = "/workspace", *, depth: int | None = None, user: str | None = None
    ) -> builtins.list[FileEntry]:
        """The entries of a directory; with ``depth`` also of those below it."""
        return self._session.run(_files.list_directory(self._sandbox, path, depth, user))

    listdir = list

    @known_keywords
    def walk(
        self, path: str = "/workspace", *, user: str | None = None
    ) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        """As ``os.walk``: each directory with the names of its directories and files.

        Each is read when it is asked for, and names that are taken out of the list of directories
        are not gone into.
        """
        walk = _files.Walk(self._sandbox, path, user)
        while (found := self._session.run(walk.next())) is not None:
            yield found

    @known_keywords
    def stat(self, path: str, *, user: str | None = None) -> FileEntry:
        """What a path is, without following a link; ``NotFound`` when it is not there."""
        return self._session.run(_files.stat(self._sandbox, path, user))

    @known_keywords
    def exists(self, path: str, *, user: str | None = None) -> bool:
        """Whether there is something at a path."""
        return self._session.run(_files.exists(self._sandbox, path, user))

    @known_keywords
    def remove(self, path: str, *, recursive: bool = False, user: str | None = None) -> None:
        """Removes a file or an empty directory; with ``recursive`` a whole one."""
        self._session.run(_files.remove(self._sandbox, path, recursive=recursive, user=user))

    @known_keywords
    def mkdir(
        self,
        path: str,
        *,
        parents: bool = True,
        mode: int | None = None,
        user: str | None = None,
    ) -> None:
        """Makes a directory, with those above it unless ``parents`` is false."""
        make = _files.make_directory(self._sandbox, path, parents=parents, mode=mode, user=user)
        self._session.run(make)

    @known_keywords
    def move(
        self, source: str, target: str, *, replace: bool = False, user: str | None = None
    ) -> None:
        """Gives another path; ``AlreadyExists`` if that is taken, unless ``replace``."""
        move = _files.move(self._sandbox, source, target, replace_target=replace, user=user)
        self._session.run(move)

    @known_keywords
    def chmod(self, path: str, mode: int, *, user: str | None = None) -> None:
        """Changes permission bits: ``chmod(path, 0o755)``."""
        self._session.run(_files.change_mode(self._sandbox, path, mode, user))

    @known_keywords
    def download_link(self, path: str, *, ttl_seconds: int | None = None) -> FileLink:
        """An address by which whoever has it reads this file, for an hour by default."""
        return self._link(path, "download", ttl_seconds)

    @known_keywords
    def upload_link(self, path: str, *, ttl_seconds: int | None = None) -> FileLink:
        """An address by which whoever has it writes this file, for an hour by default."""
        return self._link(path, "upload", ttl_seconds)

    def revoke_link(self, link: FileLink) -> None:
        """Ends a link that this key made, at once."""
        self._session.run(_files.revoke_link(self._sandbox, link.id))

    def _link(self, path: str, operation: str, ttl_seconds: int | None) -> FileLink:
        url = self._session.settings.url
        making = _files.make_link(self._sandbox, path, operation, ttl_seconds, api_url=url)
        return self._session.run(making)

    @known_keywords
    def watch(
        self, path: str = "/workspace", *, recursive: bool = False, user: str | None = None
    ) -> Watch:
        """Changes from now on: ``with sandbox.files.watch(path) as watch: for change in watch``."""
        opening = open_watch(self._sandbox, path, recursive=recursive, user=user)
        state = self._session.run(opening)
        return Watch(self._session, state)

    @known_keywords
    def changes(self, path: str = "/", *, since: str | None = None) -> builtins.list[ChangedFile]:
        """What differs since the sandbox began, or since one of its snapshots (its id)."""
        return self._session.run(_files.changes(self._sandbox, path, since))
