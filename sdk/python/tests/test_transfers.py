"""Copies between this computer and a sandbox: where they end up."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, Stream, refusal
from settled import settled

from dayfly import DiskFull, Forbidden, NotFound

FS = f"/v1/sandboxes/{SANDBOX}/fs"


def transfer(create: Create, method: str, *arguments: Any) -> Any:
    async def scenario() -> Any:
        files = (await settled(create())).files
        return await settled(getattr(files, method)(*arguments))

    return asyncio.run(scenario())


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tree:
        entry = tarfile.TarInfo("./a.txt")
        entry.size = 1
        tree.addfile(entry, io.BytesIO(b"x"))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("local", "remote", "verb", "path"),
    [
        ("big.bin", "/workspace/new", "", "/workspace/new"),
        ("big.bin", "/workspace/new/", "", "/workspace/new/big.bin"),
        ("link", "/workspace/new/", "", "/workspace/new/link"),
        ("tree", "/workspace/new", "/tar", "/workspace/new"),
        ("tree", "/workspace/new/", "/tar", "/workspace/new/tree"),
        ("tree/", "/workspace/new/", "/tar", "/workspace/new/tree"),
        ("tree/.", "/workspace/new/", "/tar", "/workspace/new/tree"),
    ],
)
def test_an_upload_into_a_directory_is_like_cp(
    fake: FakeDaemon,
    create: Create,
    tmp_path: Path,
    local: str,
    remote: str,
    verb: str,
    path: str,
) -> None:
    (tmp_path / "big.bin").write_bytes(b"x")
    (tmp_path / "link").symlink_to("big.bin")
    (tmp_path / "tree").mkdir()
    fake.on("PUT", FS + verb, Reply(200, {"bytes": 1}))
    transfer(create, "upload", f"{tmp_path}/{local}", remote)
    query = urlsplit(fake.seen("PUT", FS + verb)[0].path).query
    assert parse_qs(query)["path"] == [path]


@pytest.mark.parametrize(
    ("remote", "local", "made"),
    [
        ("/srv/a.txt", "new", "new"),
        ("/srv/a.txt", "new/", "new/a.txt"),
        ("/srv/a.txt", "new/b.txt", "new/b.txt"),
        ("/srv/a.txt", "there", "there/a.txt"),
        ("/srv/tree", "new", "new/a.txt"),
        ("/srv/tree", "new/", "new/tree/a.txt"),
        ("/srv/tree/", "there", "there/a.txt"),
        ("/srv/tree/", "there/", "there/tree/a.txt"),
        (".", "new/", "new/workspace/a.txt"),
    ],
)
def test_a_download_into_a_directory_is_like_cp(
    fake: FakeDaemon, create: Create, tmp_path: Path, remote: str, local: str, made: str
) -> None:
    (tmp_path / "there").mkdir()
    is_file = remote.endswith(".txt")
    entry = {"name": "x", "path": remote, "type": "file", "size": 1, "is_dir": not is_file}
    fake.on("GET", f"{FS}/stat", Reply(200, entry))
    fake.on("GET", FS, Reply(200, b"x"))
    fake.on("GET", f"{FS}/tar", Reply(200, archive()))
    given = transfer(create, "download", remote, os.path.join(tmp_path, local))
    assert (tmp_path / made).read_bytes() == b"x"
    assert given == (tmp_path / made if is_file else (tmp_path / made).parent)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [tmp_path / made]


def test_a_refused_directory_says_which(fake: FakeDaemon, create: Create, tmp_path: Path) -> None:
    fake.on("PUT", f"{FS}/tar", refusal(507, "disk_full"))
    with pytest.raises(DiskFull, match=r"^/srv/tree: no: disk_full"):
        transfer(create, "upload", tmp_path, "/srv/tree")
    directory = {"name": "tree", "path": "/srv/tree", "type": "dir", "size": 0, "is_dir": True}
    fake.on("GET", f"{FS}/stat", Reply(200, directory))
    fake.on("GET", f"{FS}/tar", refusal(403, "forbidden"))
    with pytest.raises(Forbidden, match=r"^/srv/tree: no: forbidden"):
        transfer(create, "download", "/srv/tree", tmp_path / "out")


def test_a_watch_that_fails_says_of_what(fake: FakeDaemon, create: Create) -> None:
    failed = ("error", {"code": "not_found", "error": "it was unmounted"})
    fake.on("GET", f"{FS}/watch", Stream([("ready", {}), failed]))

    async def scenario() -> None:
        watch = await settled((await settled(create())).files.watch("/srv/tree"))
        await settled(watch.__anext__() if hasattr(watch, "__anext__") else next(watch))

    with pytest.raises(NotFound, match=r"^/srv/tree: it was unmounted"):
        asyncio.run(scenario())
