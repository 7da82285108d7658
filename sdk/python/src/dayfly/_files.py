"""Files of a sandbox."""

from __future__ import annotations

import functools
import os
import posixpath
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

from ._checks import checked_seconds
from ._effects import Operation, Read
from ._retry import call, open_body
from ._wire import (
    Request,
    delete,
    get,
    path_of,
    send_json,
    with_query,
    without_none,
)
from .errors import AnswerLost, ApiError, DayflyError, NotFound
from .models import ChangedFile, FileEntry, FileLink, from_wire

P = ParamSpec("P")
T = TypeVar("T")

# Between two pieces of a transfer, which as a whole may take long.
TRANSFER_SILENCE_SECONDS = 120.0
PAGE_ENTRIES = 5000
UPLOAD_SECONDS = 24 * 3600.0


def names_path(operation: Callable[P, Operation[T]]) -> Callable[P, Operation[T]]:
    """Has every refusal say which path it is about; the second argument is that path."""

    @functools.wraps(operation)
    def named(*args: P.args, **kwargs: P.kwargs) -> Operation[T]:
        try:
            return (yield from operation(*args, **kwargs))
        except ApiError as error:
            user = kwargs.get("user")
            name_path(error, str(args[0]), str(args[1]), str(user) if user else None)
            raise

    return named


def name_path(error: ApiError, sandbox: str, path: str, user: str | None = None) -> None:
    """Has a refusal say which path it is about."""
    # A sandbox that is not there has no paths.
    if sandbox not in error.message and path not in error.message:
        who = f" (as user {user})" if user else ""
        error.message = f"{path}{who}: {error.message}"
        error.args = (error.message,)


@names_path
def read(
    sandbox: str, path: str, user: str | None, offset: int | None, length: int | None
) -> Operation[bytes]:
    request = get(_address(sandbox, path, user), timeout=UPLOAD_SECONDS)
    if length == 0:
        return b""
    if offset is not None or length is not None:
        first = offset or 0
        last = "" if length is None else str(first + length - 1)
        headers = {"Range": f"bytes={first}-{last}"}
        request = replace(request, headers=headers, answer_bytes_max=length)
    return (yield from call(request)).body


@names_path
def write(
    sandbox: str,
    path: str,
    data: bytes | BinaryIO,
    length: int | None,
    *,
    mode: int | None = None,
    append: bool = False,
    user: str | None = None,
) -> Operation[int]:
    address = with_query(
        path_of("sandboxes", sandbox, "fs"),
        path=path,
        append=True if append else None,
        mode=_octal(mode),
        user=user,
    )
    headers = {"Content-Type": "application/octet-stream"}
    # A whole file replaces the whole file; what is appended twice is there twice.
    request = Request("PUT", address, headers, data, length, not append, UPLOAD_SECONDS)
    return int((yield from call(request)).json()["bytes"])


@names_path
def remove(sandbox: str, path: str, *, recursive: bool, user: str | None) -> Operation[None]:
    address = with_query(
        path_of("sandboxes", sandbox, "fs"),
        path=path,
        recursive=True if recursive else None,
        user=user,
    )
    # A repeat would say that it is not there, so a lost answer is the caller's to judge.
    yield from call(replace(delete(address), is_repeatable=False))


@names_path
def list_directory(
    sandbox: str, path: str, depth: int | None, user: str | None
) -> Operation[list[FileEntry]]:
    """All entries, however many pages they take."""
    entries: list[FileEntry] = []
    after: str | None = None
    while True:
        address = with_query(
            path_of("sandboxes", sandbox, "fs", "dir"),
            path=path,
            depth=depth,
            limit=PAGE_ENTRIES,
            after=after,
            user=user,
        )
        page = (yield from call(get(address))).json()
        entries += [from_wire(FileEntry, entry) for entry in page["entries"]]
        after = page.get("next_after")
        if not page.get("has_more") or after is None:
            return entries


class Walk:
    """The directories of a tree, from the top on, one request for each."""

    def __init__(self, sandbox: str, path: str, user: str | None) -> None:
        self._sandbox = sandbox
        self._user = user
        self._root = path.rstrip("/") or "/"
        self._waiting = [self._root]
        self._told: tuple[str, list[str]] | None = None

    def next(self) -> Operation[tuple[str, list[str], list[str]] | None]:
        """The next directory with the names in it; ``None`` behind the last one."""
        self._go_down()
        while self._waiting:
            directory = self._waiting.pop()
            try:
                entries = yield from list_directory(self._sandbox, directory, None, self._user)
            except NotFound:
                # Removed meanwhile, unless it is the one that was asked for.
                if directory == self._root:
                    raise
                continue
            names = [entry.name for entry in entries if entry.is_dir and not entry.is_symlink]
            rest = [entry.name for entry in entries if not entry.is_dir or entry.is_symlink]
            self._told = directory, names
            return directory, names, rest
        return None

    def _go_down(self) -> None:
        """Into what the caller has left in the list of directories."""
        if self._told is not None:
            directory, names = self._told
            above = directory.rstrip("/")
            self._waiting += [f"{above}/{name}" for name in reversed(names)]
            self._told = None


@names_path
def stat(sandbox: str, path: str, user: str | None) -> Operation[FileEntry]:
    address = with_query(path_of("sandboxes", sandbox, "fs", "stat"), path=path, user=user)
    return from_wire(FileEntry, (yield from call(get(address))).json())


def exists(sandbox: str, path: str, user: str | None) -> Operation[bool]:
    try:
        yield from stat(sandbox, path, user)
    except NotFound:
        # Nor does a file exist in a sandbox that does not; but that is another question.
        yield from call(get(path_of("sandboxes", sandbox)))
        return False
    return True


@names_path
def make_directory(
    sandbox: str, path: str, *, parents: bool, mode: int | None, user: str | None
) -> Operation[None]:
    body = without_none(path=path, parents=parents, mode=_octal(mode), user=user)
    address = path_of("sandboxes", sandbox, "fs", "mkdir")
    yield from call(send_json("POST", address, body, is_repeatable=parents))


@names_path
def make_link(
    sandbox: str, path: str, operation: str, ttl_seconds: int | None, *, api_url: str
) -> Operation[FileLink]:
    seconds = checked_seconds("ttl_seconds", ttl_seconds)
    body = without_none(path=path, operation=operation, ttl_seconds=seconds)
    # Not repeated: a second link would stay that nobody knows of.
    request = send_json("POST", path_of("sandboxes", sandbox, "fs", "links"), body)
    made = (yield from call(request)).json()
    return FileLink(api_url + made["address"], made["method"], made["expires_at"], made["id"])


def revoke_link(sandbox: str, link: str) -> Operation[None]:
    yield from call(delete(path_of("sandboxes", sandbox, "fs", "links", link)))


@names_path
def move(
    sandbox: str, source: str, target: str, *, replace_target: bool, user: str | None
) -> Operation[None]:
    body = without_none(to=target, replace=True if replace_target else None, user=user)
    address = path_of("sandboxes", sandbox, "fs", "move")
    yield from call(send_json("POST", address, {"from": source, **body}))


@names_path
def change_mode(sandbox: str, path: str, mode: int, user: str | None) -> Operation[None]:
    body = without_none(path=path, mode=_octal(mode), user=user)
    address = path_of("sandboxes", sandbox, "fs", "chmod")
    yield from call(send_json("POST", address, body, is_repeatable=True))


@names_path
def changes(sandbox: str, path: str, since: str | None) -> Operation[list[ChangedFile]]:
    address = with_query(path_of("sandboxes", sandbox, "fs", "changes"), path=path, since=since)
    answer = yield from call(get(address))
    return [from_wire(ChangedFile, entry) for entry in answer.json()["entries"]]


def content_of(data: Any) -> bytes:
    """What a write was given, as bytes."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, memoryview):
        return data.tobytes()
    kind = type(data).__name__
    hint = "json.dumps(...) makes a text of it"
    if hasattr(data, "read"):
        hint = "give what its read() gives, or its path to upload()"
    raise TypeError(f"files.write takes str or bytes, not {kind}; {hint}")


def upload(
    sandbox: str, local: str | os.PathLike[str], remote: str, user: str | None
) -> Operation[int]:
    """Copies a local file, or a whole directory, into the sandbox."""
    if remote.endswith("/"):
        # Into that directory, as `cp` means it. A link gives its own name, and "." that of where
        # it is.
        remote += os.path.basename(os.path.abspath(local))
    if os.path.isdir(local):
        return (yield from _upload_tree(sandbox, remote, local, user=user))
    with open(local, "rb") as file:
        details = os.fstat(file.fileno())
        mode = details.st_mode & 0o777 if os.name == "posix" else None
        return (yield from write(sandbox, remote, file, details.st_size, mode=mode, user=user))


@names_path
def _upload_tree(
    sandbox: str, remote: str, local: str | os.PathLike[str], *, user: str | None
) -> Operation[int]:
    with tempfile.TemporaryFile() as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(local, arcname=".")
        length = packed.tell()
        address = with_query(path_of("sandboxes", sandbox, "fs", "tar"), path=remote, user=user)
        headers = {"Content-Type": "application/x-tar"}
        request = Request("PUT", address, headers, packed, length, True, UPLOAD_SECONDS)
        return int((yield from call(request)).json()["bytes"])


def download(
    sandbox: str, remote: str, local: str | os.PathLike[str], user: str | None
) -> Operation[Path]:
    """Copies a file, or a whole directory, out of the sandbox."""
    entry = yield from stat(sandbox, remote, user)
    target = Path(local)
    # A Path has no slash at its end; a file cannot take the place of a directory either.
    if os.fspath(local).endswith(("/", os.sep)) or (target.is_dir() and not entry.is_dir):
        target /= posixpath.basename(posixpath.normpath(posixpath.join("/workspace", remote)))
    if entry.is_dir:
        return (yield from _download_tree(sandbox, remote, target, user=user))
    return (yield from _download_file(sandbox, remote, target, user=user))


@names_path
def _download_file(
    sandbox: str, remote: str, local: Path, *, user: str | None
) -> Operation[Path]:
    local.parent.mkdir(parents=True, exist_ok=True)
    # Under another name until it is whole: a broken transfer must not look like the file.
    part = local.with_name(f".{local.name}.part")
    try:
        with open(part, "wb") as file:
            yield from _copy(_address(sandbox, remote, user), file)
        os.replace(part, local)
    finally:
        part.unlink(missing_ok=True)
    return local


@names_path
def _download_tree(
    sandbox: str, remote: str, local: Path, *, user: str | None
) -> Operation[Path]:
    if not hasattr(tarfile, "data_filter"):
        raise DayflyError("unpacking a directory safely needs a newer patch release of Python")
    address = with_query(path_of("sandboxes", sandbox, "fs", "tar"), path=remote, user=user)
    with tempfile.TemporaryFile() as packed:
        yield from _copy(address, packed)
        packed.seek(0)
        local.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=packed, mode="r:") as archive:
            # The guest wrote the archive: nothing in it may leave the directory.
            archive.extractall(local, filter="data")
    return local


def _copy(address: str, target: BinaryIO) -> Operation[None]:
    body = yield from open_body(get(address))
    try:
        piece: bytes = yield Read(body, TRANSFER_SILENCE_SECONDS)
        while piece:
            target.write(piece)
            piece = yield Read(body, TRANSFER_SILENCE_SECONDS)
    except AnswerLost as error:
        raise AnswerLost(f"the download broke off: {error.message}") from error
    finally:
        body.close()


def _address(sandbox: str, path: str, user: str | None) -> str:
    return with_query(path_of("sandboxes", sandbox, "fs"), path=path, user=user)


def _octal(mode: int | None) -> str | None:
    return None if mode is None else f"{mode:04o}"
