"""What the log says, and what it never does."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from conftest import ME, Create, Worlds
from fake_daemon import FakeDaemon, Lost, Reply, refusal, sandbox_body
from settled import settled

CREATE = "/v1/sandboxes"


def test_requests_are_logged_without_the_key(
    fake: FakeDaemon, worlds: Worlds, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dayfly")
    fake.on("GET", "/v1/me", Lost(), Reply(200, ME, {"X-Request-Id": "req-77"}))
    worlds.use(worlds.me, fake.url, "df_very_secret")
    lost, found = [record.getMessage() for record in caplog.records if record.name == "dayfly"]
    assert lost.startswith("GET /v1/me failed after ")
    assert found.startswith("GET /v1/me 200 in ")
    assert found.endswith(" ms, request req-77")
    assert "df_very_secret" not in caplog.text


def test_a_logger_of_ones_own(fake: FakeDaemon, worlds: Worlds, caplog: Any) -> None:
    caplog.set_level("DEBUG")
    worlds.use(worlds.me, fake.url, logger=logging.getLogger("mine"))
    assert {record.name for record in caplog.records} >= {"mine"}
    assert "dayfly" not in {record.name for record in caplog.records}


@pytest.mark.parametrize(("pause", "lines"), [(1000.0, 1), (0.0, 3)])
def test_a_wait_for_a_bake_is_told(
    fake: FakeDaemon,
    create: Create,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    pause: float,
    lines: int,
) -> None:
    monkeypatch.setattr("dayfly._retry.TELL_SECONDS", pause)
    answers = [refusal(503, "template_baking", "0.1", percent=number) for number in (7, 8, 9)]
    fake.on("POST", CREATE, *answers, Reply(201, sandbox_body()))
    asyncio.run(settled(create()))
    told = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert len(told) == lines
    for percent, text in zip((7, 8, 9), told, strict=False):
        assert text == f"a create waits: no: template_baking ({percent}%)"


def test_a_wait_is_told_once(
    fake: FakeDaemon, create: Create, caplog: pytest.LogCaptureFixture
) -> None:
    fake.on("POST", CREATE, refusal(503, "no_capacity", "0.1"), Reply(201, sandbox_body()))
    news: list[Any] = []
    asyncio.run(settled(create(on_progress=news.append)))
    assert [one.reason for one in news] == ["no_capacity"]
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
