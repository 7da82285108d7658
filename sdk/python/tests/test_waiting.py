"""Refusals that created nothing are waited out, each reason for itself."""

from __future__ import annotations

import asyncio
import time

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, refusal, sandbox_body
from settled import settled

from dayfly import NodeUnavailable, Progress

CREATE = "/v1/sandboxes"


def test_who_waited_for_a_bake_also_waits_for_a_node(
    fake: FakeDaemon, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than the node's own limit is waited for the bake.
    monkeypatch.setattr("dayfly._retry.NODE_SECONDS", 1.2)
    baking = refusal(503, "template_baking", "0.5", percent=99)
    away = refusal(503, "node_unavailable", "0.1")
    fake.on("POST", CREATE, baking, baking, baking, away, away, Reply(201, sandbox_body()))
    news: list[Progress] = []

    assert asyncio.run(settled(create(on_progress=news.append))).id == SANDBOX
    reasons = [one.reason for one in news]
    assert reasons == ["template_baking"] * 3 + ["node_unavailable"] * 2


def test_the_wait_for_a_node_ends(
    fake: FakeDaemon, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.on("POST", CREATE, refusal(503, "node_unavailable", "0.1"))

    async def scenario() -> None:
        with pytest.raises(NodeUnavailable):
            await settled(create())

    monkeypatch.setattr("dayfly._retry.NODE_SECONDS", 0.35)
    began = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - began < 5
    assert 2 <= len(fake.seen("POST", CREATE)) <= 4
