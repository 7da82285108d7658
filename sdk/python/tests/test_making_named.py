"""Sandboxes by name: found, or made with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Reply, refusal, sandbox_body
from settled import settled

from dayfly import AsyncSandbox, Sandbox

CREATE = "/v1/sandboxes"
NAMED = "/v1/sandboxes/notebook"

pytestmark = pytest.mark.parametrize("kind", [Sandbox, AsyncSandbox], ids=["sync", "async"])


def get_or_create(kind: Any, fake: FakeDaemon, **options: Any) -> Any:
    async def scenario() -> Any:
        made = kind.get_or_create("notebook", api_url=fake.url, api_key="k", **options)
        return await settled(made)

    return asyncio.run(scenario())


def test_one_that_is_there_is_not_made(fake: FakeDaemon, kind: Any) -> None:
    fake.on("GET", NAMED, Reply(200, sandbox_body(name="notebook")))
    assert get_or_create(kind, fake, ttl_seconds=60).name == "notebook"
    assert fake.seen("POST", CREATE) == []


def test_one_that_is_not_there_is_made(fake: FakeDaemon, kind: Any) -> None:
    fake.on("GET", NAMED, refusal(404, "not_found"))
    fake.on("POST", CREATE, Reply(201, sandbox_body(name="notebook")))
    assert get_or_create(kind, fake, ttl_seconds=60).name == "notebook"
    assert [seen.json for seen in fake.seen("POST", CREATE)] == [
        {"name": "notebook", "ttl_seconds": 60}
    ]


def test_who_comes_second_has_the_others(fake: FakeDaemon, kind: Any) -> None:
    fake.on("GET", NAMED, refusal(404, "not_found"), Reply(200, sandbox_body(name="notebook")))
    fake.on("POST", CREATE, refusal(409, "already_exists"))
    assert get_or_create(kind, fake).name == "notebook"


def test_an_option_that_is_not_one_is_refused_also_when_it_is_there(
    fake: FakeDaemon, kind: Any
) -> None:
    fake.on("GET", NAMED, Reply(200, sandbox_body(name="notebook")))
    with pytest.raises(TypeError, match="ttl_seconds"):
        get_or_create(kind, fake, ttl=60)
