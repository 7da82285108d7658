"""Environment variables of a sandbox: what is sent, and what is never told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, refusal, sandbox_body
from settled import settled
from test_pool import Server, pool_of

from dayfly import AsyncSandbox, AsyncSandboxPool, Sandbox, SandboxPool

CREATE = "/v1/sandboxes"
PATH = f"{CREATE}/{SANDBOX}"
SECRET = "v3ry-s3cret"


def bodies(fake: FakeDaemon, path: str) -> list[Any]:
    return [seen.json if seen.body else None for seen in fake.seen("POST", path)]


def test_create_fork_wake_and_rollback_send_them(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", CREATE, Reply(201, sandbox_body(env_names=["A"])))
    fake.on("POST", f"{PATH}/fork", Reply(201, {"children": [sandbox_body()], "failures": {}}))
    fake.on("POST", f"{PATH}/wake", Reply(204))
    fake.on("POST", f"{PATH}/rollback", Reply(200, sandbox_body(env_names=["D"])))

    async def scenario() -> list[list[str]]:
        sandbox = await settled(create(env={"A": "1"}))
        names = [sandbox._info.env_names]
        await settled(sandbox.fork(env={"B": "2"}))
        await settled(sandbox.wake())
        await settled(sandbox.wake(env={"C": "3"}))
        names.append(sandbox._info.env_names)
        await settled(sandbox.wake(env={}))
        await settled(sandbox.rollback("snap-1"))
        await settled(sandbox.rollback("snap-1", env={"D": "4"}))
        names.append(sandbox._info.env_names)
        return names

    assert asyncio.run(scenario()) == [["A"], ["C"], ["D"]]
    assert bodies(fake, CREATE)[0]["env"] == {"A": "1"}
    assert bodies(fake, f"{PATH}/fork") == [{"count": 1, "env": {"B": "2"}}]
    assert bodies(fake, f"{PATH}/wake") == [None, {"env": {"C": "3"}}, {"env": {}}]
    assert bodies(fake, f"{PATH}/rollback") == [
        {"snapshot_id": "snap-1"},
        {"snapshot_id": "snap-1", "env": {"D": "4"}},
    ]


@pytest.mark.parametrize("kind", [Sandbox, AsyncSandbox], ids=["sync", "async"])
def test_one_that_is_made_by_name_has_them(fake: FakeDaemon, kind: Any) -> None:
    fake.on("GET", f"{CREATE}/notebook", refusal(404, "not_found"))
    fake.on("POST", CREATE, Reply(201, sandbox_body(name="notebook")))

    async def scenario() -> None:
        options = {"env": {"A": "1"}, "api_url": fake.url, "api_key": "k"}
        await settled(kind.get_or_create("notebook", **options))

    asyncio.run(scenario())
    assert bodies(fake, CREATE) == [{"name": "notebook", "env": {"A": "1"}}]


@pytest.mark.parametrize("kind", [SandboxPool, AsyncSandboxPool], ids=["sync", "async"])
@pytest.mark.parametrize("env", [None, {"A": "1"}])
def test_the_next_user_of_a_pool_has_those_of_the_pool(
    fake: FakeDaemon, kind: Any, env: dict[str, str] | None
) -> None:
    pool = pool_of(kind, Server(fake), env=env)

    async def scenario() -> None:
        sandbox = await settled(pool.acquire().get())
        await settled(pool.release(sandbox))
        await settled(pool.close())

    asyncio.run(scenario())
    assert bodies(fake, CREATE)[0].get("env") == env
    assert bodies(fake, "*/rollback") == [{"snapshot_id": "snap-1", "env": env or {}}]


def test_a_value_that_is_no_text_is_refused_and_not_told(fake: FakeDaemon, create: Create) -> None:
    async def scenario() -> None:
        await settled(create(env={"TOKEN": SECRET.encode()}))

    with pytest.raises(TypeError, match="env\\['TOKEN'\\] takes str, not bytes") as caught:
        asyncio.run(scenario())
    assert SECRET not in str(caught.value)
