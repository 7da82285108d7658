"""Tools that read and change files end with the step and with the budget, like all others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from agent_worlds import DONE, ONE, Script, Worlds, calling
from conftest import Create
from fake_daemon import Answer, FakeDaemon, Reply, Seen, Stream, refusal
from settled import settled

from dayfly import NotFound, ProtocolError
from dayfly.agents import Budget, CallResult, Results, StopReason, ToolCall

EDITOR = "str_replace_based_edit_tool"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "/f"}),
    ("write_file", {"path": "/f", "content": "x"}),
    ("edit_file", {"path": "/f", "old_text": "a", "new_text": "b"}),
    ("list_files", {"path": "/"}),
    (EDITOR, {"command": "view", "path": "/f"}),
    (EDITOR, {"command": "insert", "path": "/f", "insert_line": 0, "insert_text": "x"}),
]
# Much longer than any of them may take, so that a test without the limit fails and ends.
HANG_SECONDS = 8.0


@pytest.fixture
def hanging(fake: FakeDaemon) -> Iterator[None]:
    """A guest that takes requests about files, and does nothing."""
    is_over = threading.Event()

    def hang(_: Seen) -> Answer:
        is_over.wait(HANG_SECONDS)
        return refusal(503, "guest_unavailable")

    for method, path in [("GET", "fs"), ("PUT", "fs"), ("GET", "fs/dir"), ("GET", "fs/stat")]:
        fake.on(method, f"{ONE}/{path}", hang)
    yield
    is_over.set()


def result_of(agents: Worlds, call: tuple[str, dict[str, Any]], **options: Any) -> CallResult:
    name, arguments = call
    tools = ["text_editor"] if name == EDITOR else [name]
    model = Script(calling(ToolCall("c", name, arguments)), DONE)
    began = time.monotonic()
    result = agents.run(agents.make(model, tools=tools, **options), "do it")
    assert time.monotonic() - began < HANG_SECONDS / 2
    assert agents.is_deleted()
    assert result.reason is (StopReason.SECONDS if "budget" in options else StopReason.DONE)
    (results,) = [one for one in result.transcript.messages if isinstance(one, Results)]
    return results.results[0]


@pytest.mark.usefixtures("hanging")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: "-".join([call[0], *call[1]]))
def test_a_step_ends_a_file_that_hangs(agents: Worlds, call: tuple[str, dict[str, Any]]) -> None:
    result = result_of(agents, call, step_timeout_seconds=0.3)
    assert result.is_error
    assert result.text == "error: this took longer than 0.3 s"


@pytest.mark.usefixtures("hanging")
def test_a_budget_ends_a_file_that_hangs(agents: Worlds) -> None:
    assert result_of(agents, CALLS[0], budget=Budget(seconds=0.5)).is_error


def test_a_pause_between_attempts_ends_with_the_step(agents: Worlds) -> None:
    # The server asks for half a minute before the next attempt.
    agents.fake.on("GET", f"{ONE}/fs", refusal(429, "too_many", retry_after="30"))
    assert result_of(agents, CALLS[0], step_timeout_seconds=0.3).is_error


def test_pieces_that_come_slowly_end_with_the_step(agents: Worlds) -> None:
    def pieces(_: Seen) -> Answer:
        # Each in time, all of them not.
        gap = threading.Event()
        return Stream(("x", {}) for _ in range(200) if not gap.wait(0.05))

    agents.fake.on("GET", f"{ONE}/fs", pieces)
    result = result_of(agents, CALLS[0], step_timeout_seconds=0.4)
    assert result.text.startswith("error: this took longer than 0.4 s")


def read(create: Create, length: int) -> bytes:
    async def scenario() -> bytes:
        sandbox = await settled(create())
        return await settled(sandbox.files.read("/f", length=length))

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [Reply(200, b"x" * 11), Reply(206, b"x" * 11), Stream([("x", {"y": "z"})] * 3)],
    ids=["whole file", "too much", "without a length"],
)
def test_more_than_was_asked_for_is_refused(
    fake: FakeDaemon, create: Create, answer: Answer
) -> None:
    fake.on("GET", f"{ONE}/fs", answer)
    with pytest.raises(ProtocolError, match="longer than the 10 bytes that were asked for"):
        read(create, 10)
    assert len(fake.seen("GET", f"{ONE}/fs")) == 1


def test_what_was_asked_for_is_given(fake: FakeDaemon, create: Create) -> None:
    fake.on("GET", f"{ONE}/fs", Reply(206, b"x" * 10))
    assert read(create, 10) == b"x" * 10


def test_a_refusal_may_be_longer(fake: FakeDaemon, create: Create) -> None:
    fake.on("GET", f"{ONE}/fs", refusal(404, "not_found"))
    with pytest.raises(NotFound):
        read(create, 1)
