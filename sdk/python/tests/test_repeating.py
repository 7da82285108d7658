"""What is sent again and what is not."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any
from urllib.parse import parse_qs

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Lost, Reply, refusal, sandbox_body
from settled import settled

from dayfly import (
    AnswerLost,
    NoCapacity,
    NodeUnavailable,
    Progress,
    Sandbox,
    ServerUnreachable,
    TemplateBaking,
)

CREATE = "/v1/sandboxes"


def test_a_create_whose_answer_was_lost_is_not_made_twice(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", CREATE, Lost(), Lost(), Reply(201, sandbox_body()))

    sandbox = asyncio.run(settled(create()))

    assert sandbox.id == SANDBOX
    keys = {seen.headers["idempotency-key"] for seen in fake.seen("POST", CREATE)}
    assert len(fake.seen("POST", CREATE)) == 3
    assert len(keys) == 1


def test_two_creates_have_two_keys(fake: FakeDaemon, create: Create) -> None:
    asyncio.run(settled(create()))
    asyncio.run(settled(create()))
    keys = {seen.headers["idempotency-key"] for seen in fake.seen("POST", CREATE)}
    assert len(keys) == 2


def test_what_has_no_id_is_not_sent_again(fake: FakeDaemon, create: Create) -> None:
    path = f"{CREATE}/{SANDBOX}/run"
    fake.on("POST", path, Lost(), Reply(200, {"results": []}))

    async def scenario() -> None:
        sandbox = await settled(create())
        with pytest.raises(AnswerLost):
            await settled(sandbox.run("rm -rf build"))

    asyncio.run(scenario())
    assert len(fake.seen("POST", path)) == 1


def test_an_exec_is_repeated_under_its_id(fake: FakeDaemon, create: Create) -> None:
    path = f"{CREATE}/{SANDBOX}/exec"
    result = {"stdout": "x", "stderr": "", "exit_code": 0}
    fake.on("POST", path, Lost(), Reply(200, result))

    async def scenario() -> Any:
        return await settled((await settled(create())).exec("date"))

    assert asyncio.run(scenario()).stdout == "x"
    ids = [seen.json["exec_id"] for seen in fake.seen("POST", path)]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_a_node_that_is_away_is_asked_again_for_reads_only(
    fake: FakeDaemon, create: Create
) -> None:
    away = refusal(503, "node_unavailable")
    info, run = f"{CREATE}/{SANDBOX}", f"{CREATE}/{SANDBOX}/run"
    fake.on("GET", info, away, Reply(200, sandbox_body()))
    fake.on("POST", run, away)

    async def scenario() -> None:
        sandbox = await settled(create())
        await settled(sandbox.info())
        with pytest.raises(NodeUnavailable):
            await settled(sandbox.run("true"))

    asyncio.run(scenario())
    assert len(fake.seen("GET", info)) == 2
    assert len(fake.seen("POST", run)) == 1


def test_a_bake_is_waited_for_and_told_about(fake: FakeDaemon, create: Create) -> None:
    baking = refusal(503, "template_baking", "0.2", percent=40)
    fake.on("POST", CREATE, baking, baking, Reply(201, sandbox_body()))
    news: list[Progress] = []
    began = time.monotonic()

    asyncio.run(settled(create(on_progress=news.append)))

    assert [(one.reason, one.percent) for one in news] == [("template_baking", 40)] * 2
    assert time.monotonic() - began >= 0.4, "Retry-After was not honoured"


def test_the_wait_for_a_bake_ends(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", CREATE, refusal(503, "template_baking", "0.1", percent=1))

    async def scenario() -> None:
        with pytest.raises(TemplateBaking) as caught:
            await settled(create(wait_seconds=0.25))
        assert caught.value.percent == 1

    asyncio.run(scenario())
    assert len(fake.seen("POST", CREATE)) <= 3


def test_a_pause_longer_than_the_patience_is_not_begun(
    fake: FakeDaemon, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dayfly._retry.REFUSAL_PAUSE_MAX", 61.0)
    fake.on("POST", CREATE, refusal(503, "no_capacity", "600"))
    began = time.monotonic()

    async def scenario() -> None:
        with pytest.raises(NoCapacity):
            await settled(create())

    asyncio.run(scenario())
    assert time.monotonic() - began < 5


def test_nobody_there_is_said_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServerUnreachable) as caught:
            Sandbox(api_url=url, api_key="k")
    assert "DAYFLY_API_URL" in str(caught.value)


def test_connections_are_kept_and_shared_by_threads(fake: FakeDaemon) -> None:
    sandbox = Sandbox(api_url=fake.url, api_key="k")
    for _ in range(5):
        sandbox.info()
    assert len({seen.connection for seen in fake.requests}) == 1

    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(20):
                assert sandbox.info().id == SANDBOX
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len({seen.connection for seen in fake.requests}) <= 10


def test_a_kept_connection_that_died_costs_nothing(fake: FakeDaemon, create: Create) -> None:
    info = f"{CREATE}/{SANDBOX}"
    closing = Reply(200, sandbox_body(), {"Connection": "close"})
    fake.on("GET", info, closing, Reply(200, sandbox_body()))

    async def scenario() -> None:
        sandbox = await settled(create())
        await settled(sandbox.info())
        assert (await settled(sandbox.info())).id == SANDBOX

    asyncio.run(scenario())


def test_a_list_is_read_page_by_page_and_chosen_by_the_server(fake: FakeDaemon) -> None:
    pages = [
        Reply(200, {"items": [sandbox_body(id="sb-1")], "next_cursor": "1.sb-1"}),
        Reply(200, {"items": [sandbox_body(id="sb-2")]}),
    ]
    fake.on("GET", CREATE, *pages)
    found = Sandbox.list(
        status="running", metadata={"task": "7 & 8"}, api_url=fake.url, api_key="k"
    )
    assert [one.id for one in found] == ["sb-1", "sb-2"]
    first, second = (parse_qs(seen.path.partition("?")[2]) for seen in fake.seen("GET", CREATE))
    assert (first["status"], first["metadata"]) == (["running"], ['{"task": "7 & 8"}'])
    assert "cursor" not in first
    assert second["cursor"] == ["1.sb-1"]


def test_a_rollback_is_not_sent_again(fake: FakeDaemon, create: Create) -> None:
    path = f"{CREATE}/{SANDBOX}/rollback"
    fake.on("POST", path, Lost(), Reply(200, sandbox_body()))

    async def scenario() -> None:
        with pytest.raises(AnswerLost):
            await settled((await settled(create())).rollback("snap-1"))

    asyncio.run(scenario())
    assert len(fake.seen("POST", path)) == 1
