"""Links to one file, which carry the address of the server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, refusal
from settled import settled

from dayfly import FileLink, Forbidden

LINKS = f"/v1/sandboxes/{SANDBOX}/fs/links"
ADDRESS = "/v1/sandboxes/sb-1/fs?path=/a&dayfly_token=secret"
MADE = {"id": "dfk_a", "method": "PUT", "address": ADDRESS, "expires_at": "2026-01-01T00:00:00Z"}


def test_a_link_is_whole_and_keeps_its_secret_out_of_texts(
    fake: FakeDaemon, create: Create
) -> None:
    fake.on("POST", LINKS, Reply(201, MADE))
    fake.on("DELETE", f"{LINKS}/dfk_a", Reply(204))

    async def scenario() -> Any:
        files = (await settled(create())).files
        await settled(files.download_link("/a"))
        link = await settled(files.upload_link("/a", ttl_seconds=60))
        await settled(files.revoke_link(link))
        return link

    link: FileLink = asyncio.run(scenario())
    assert (link.url, link.method, link.id) == (fake.url + ADDRESS, "PUT", "dfk_a")
    assert "secret" not in repr(link)
    assert [seen.json for seen in fake.seen("POST", LINKS)] == [
        {"path": "/a", "operation": "download"},
        {"path": "/a", "operation": "upload", "ttl_seconds": 60},
    ]
    assert len(fake.seen("DELETE", f"{LINKS}/dfk_a")) == 1


def test_a_link_that_is_refused_names_its_path(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", LINKS, refusal(403, "forbidden"))

    async def scenario() -> None:
        await settled((await settled(create())).files.download_link("/etc/shadow"))

    with pytest.raises(Forbidden, match="/etc/shadow"):
        asyncio.run(scenario())
