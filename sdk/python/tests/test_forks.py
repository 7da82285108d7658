"""Children of a fork: all of them or none, what they inherit, and who deletes them."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, refusal, sandbox_body
from settled import settled

from dayfly import AsyncSandbox, ForkFailed, Sandbox, WrongState

CREATE = "/v1/sandboxes"
FORK = f"{CREATE}/{SANDBOX}/fork"
FAILURES = {"sb-3": "no room for another sandbox"}


def forked(fake: FakeDaemon, failures: dict[str, str] | None = None) -> None:
    children = [sandbox_body(id=one) for one in ("sb-1", "sb-2")]
    fake.on("POST", FORK, Reply(201, {"children": children, "failures": failures or {}}))
    fake.on("POST", f"{FORK}-tree", Reply(201, {"children": children, "failures": failures or {}}))
    for child in ("sb-1", "sb-2"):
        fake.on("DELETE", f"{CREATE}/{child}", Reply(204))


def deleted(fake: FakeDaemon) -> set[str]:
    gone = [seen.path.rpartition("/")[2] for seen in fake.requests if seen.method == "DELETE"]
    assert len(gone) == len(set(gone)), "deleted twice"
    return set(gone)


@pytest.mark.parametrize("method", ["fork", "fork_tree"])
def test_fewer_children_than_asked_for_are_a_failure(
    fake: FakeDaemon, create: Create, method: str
) -> None:
    forked(fake, FAILURES)

    async def scenario() -> None:
        sandbox = await settled(create())
        with pytest.raises(ForkFailed, match="no room for another sandbox") as caught:
            await settled(getattr(sandbox, method)(3))
        assert caught.value.failures == FAILURES
        assert caught.value.children == ["sb-1", "sb-2"]
        assert pickle.loads(pickle.dumps(caught.value)).failures == FAILURES

    asyncio.run(scenario())
    assert deleted(fake) == {"sb-1", "sb-2"}


def test_a_partial_fork_tells_its_failures(fake: FakeDaemon, create: Create) -> None:
    forked(fake, FAILURES)

    async def scenario() -> None:
        sandbox = await settled(create())
        children = await settled(sandbox.fork(3, partial=True))
        assert [child.id for child in children] == ["sb-1", "sb-2"]
        assert children.failures == FAILURES

    asyncio.run(scenario())
    assert not deleted(fake)


def test_a_fork_that_made_nothing_is_the_refusal_itself(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", FORK, refusal(409, "wrong_state"))

    async def scenario() -> None:
        with pytest.raises(WrongState):
            await settled((await settled(create())).fork(3))

    asyncio.run(scenario())


def body_of_a_fork(fake: FakeDaemon, create: Create, **options: Any) -> dict[str, Any]:
    forked(fake)
    metadata = {"task": "42", "fork_parent_id": "sb-0", "fork_tree_id": "t", "explore_ttl": "9"}
    fake.on("POST", CREATE, Reply(201, sandbox_body(ttl_seconds=120, metadata=metadata)))

    async def scenario() -> None:
        await settled((await settled(create())).fork(2, **options))

    asyncio.run(scenario())
    return fake.seen("POST", FORK)[0].json


def test_what_children_inherit_is_left_to_the_server(fake: FakeDaemon, create: Create) -> None:
    assert body_of_a_fork(fake, create) == {"count": 2}


def test_children_have_what_they_are_given(fake: FakeDaemon, create: Create) -> None:
    body = body_of_a_fork(fake, create, ttl_seconds=7, metadata={})
    assert body == {"count": 2, "ttl_seconds": 7, "metadata": {}}


def test_the_end_of_with_deletes_children(fake: FakeDaemon) -> None:
    forked(fake)
    sandbox = Sandbox("base", api_url=fake.url, api_key="k")
    with pytest.raises(KeyError), sandbox.fork(2):
        raise KeyError
    assert deleted(fake) == {"sb-1", "sb-2"}


def test_the_end_of_async_with_deletes_children(fake: FakeDaemon) -> None:
    forked(fake)

    async def scenario() -> None:
        sandbox = await AsyncSandbox.create("base", api_url=fake.url, api_key="k")
        async with sandbox.fork(2) as children:
            await children[0].delete()
        async with sandbox.fork() as child:
            assert child.id == "sb-1"
            child.detach()

    asyncio.run(scenario())
    assert deleted(fake) == {"sb-1", "sb-2"}


def test_a_detached_one_stays(fake: FakeDaemon) -> None:
    forked(fake)
    sandbox = Sandbox("base", api_url=fake.url, api_key="k")
    with sandbox.fork(2) as children:
        children[1].detach()
    with Sandbox.connect(SANDBOX, api_url=fake.url, api_key="k").detach() as other:
        assert other.id == SANDBOX
    assert deleted(fake) == {"sb-1"}


def test_every_child_is_deleted_although_one_cannot_be(fake: FakeDaemon) -> None:
    forked(fake)
    fake.on("DELETE", f"{CREATE}/sb-1", refusal(500, "internal"))
    sandbox = Sandbox("base", api_url=fake.url, api_key="k")
    with pytest.raises(ZeroDivisionError), sandbox.fork(2):
        _ = 1 // 0
    assert deleted(fake) == {"sb-1", "sb-2"}
