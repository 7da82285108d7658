"""Output as it comes, over connections that break."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import Create
from fake_daemon import (
    SANDBOX,
    Answer,
    FakeDaemon,
    Lost,
    Reply,
    Seen,
    Stream,
    refusal,
    sandbox_body,
)
from settled import settled

from dayfly import ExecInterrupted, ExecResult, NotFound, SandboxTimeout

ONE = f"/v1/sandboxes/{SANDBOX}"
START = f"{ONE}/exec/stream"
EXIT: tuple[str, dict[str, Any]] = ("exit", {"exit_code": 3, "reason": "exited", "duration_ms": 5})


def started(seen: Seen) -> tuple[str, dict[str, Any]]:
    return ("started", {"exec_id": seen.json["exec_id"]})


def out(text: str) -> tuple[str, dict[str, Any]]:
    return ("stdout", {"chunk": text})


def run(create: Create, told: list[str]) -> ExecResult:
    async def scenario() -> ExecResult:
        sandbox = await settled(create())
        return await settled(sandbox.exec("make", on_stdout=told.append))

    return asyncio.run(scenario())


def attach(fake: FakeDaemon, *answers: Answer) -> None:
    fake.on("GET", "*/attach", *answers)


def attached(fake: FakeDaemon) -> list[str]:
    """The offsets that were asked for."""
    return [seen.path.partition("?")[2] for seen in fake.seen("GET", "*/attach")]


def test_a_cut_stream_goes_on_where_it_was(fake: FakeDaemon, create: Create) -> None:
    cut = [out("one é\n"), ("stderr", {"chunk": "warn\n"}), out("two")]
    fake.on("POST", START, lambda seen: Stream([started(seen), *cut], is_cut=True))
    attach(fake, Stream([out(" three\n"), EXIT]))
    told: list[str] = []

    result = run(create, told)

    assert (result.stdout, result.stderr, result.exit_code) == ("one é\ntwo three\n", "warn\n", 3)
    assert "".join(told) == result.stdout
    assert attached(fake) == ["stdout_offset=10&stderr_offset=5"]
    assert len(fake.seen("POST", START)) == 1


def test_a_stream_that_just_ends_is_no_success(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", START, lambda seen: Stream([started(seen), out("half")]))
    attach(fake, Stream([EXIT]))
    assert run(create, []).exit_code == 3


def test_output_that_was_replaced_is_not_told_twice(fake: FakeDaemon, create: Create) -> None:
    first = [out("ok\n"), out("\ufffd bad")]
    fake.on("POST", START, lambda seen: Stream([started(seen), *first], is_cut=True))
    again = [out("\ufffd bad and more"), EXIT]
    attach(fake, Stream(again))
    told: list[str] = []

    assert run(create, told).stdout == "ok\n\ufffd bad and more"
    assert "".join(told) == "ok\n\ufffd bad and more"
    assert attached(fake) == ["stdout_offset=3&stderr_offset=0"]


def test_a_gap_moves_the_offset_and_is_told(fake: FakeDaemon, create: Create) -> None:
    gap = ("gap", {"stream": "stdout", "offset": 2, "bytes": 98})
    first = [out("ab"), gap, out("cd")]
    fake.on("POST", START, lambda seen: Stream([started(seen), *first], is_cut=True))
    attach(fake, Stream([EXIT]))

    result = run(create, [])

    assert attached(fake) == ["stdout_offset=102&stderr_offset=0"]
    assert result.truncated


def test_a_start_whose_answer_was_lost_starts_nothing_twice(
    fake: FakeDaemon, create: Create
) -> None:
    fake.on("POST", START, Lost(), lambda seen: Stream([started(seen), out("x"), EXIT]))
    assert run(create, []).stdout == "x"
    ids = {seen.json["exec_id"] for seen in fake.seen("POST", START)}
    assert len(fake.seen("POST", START)) == 2
    assert len(ids) == 1


def test_what_cannot_be_attached_again_is_an_interruption(
    fake: FakeDaemon, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dayfly._follow.REATTACH_SECONDS", 0.5)
    monkeypatch.setattr("dayfly._retry.LOST_PAUSES", ())
    fake.on("POST", START, lambda seen: Stream([started(seen), out("half")], is_cut=True))
    attach(fake, Lost())
    with pytest.raises(ExecInterrupted) as caught:
        run(create, [])
    assert caught.value.stdout == "half"
    assert caught.value.exec_id == fake.seen("POST", START)[0].json["exec_id"]


def test_a_sandbox_that_is_gone_is_an_interruption_too(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", START, lambda seen: Stream([started(seen), out("half")], is_cut=True))
    fake.on("GET", ONE, refusal(404, "not_found"))
    with pytest.raises(ExecInterrupted) as caught:
        run(create, [])
    assert caught.value.stdout == "half"


def test_a_sleeping_sandbox_is_left_asleep(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", START, lambda seen: Stream([started(seen)], is_cut=True))
    fake.on("GET", ONE, Reply(200, sandbox_body(status="hibernated")))
    attach(fake, Stream([EXIT]))
    with pytest.raises(ExecInterrupted, match="sleeps"):
        run(create, [])
    assert attached(fake) == []


def test_a_time_limit_keeps_the_output(fake: FakeDaemon, create: Create) -> None:
    late = ("error", {"error": "timeout: too long", "code": "timeout"})
    fake.on("POST", START, lambda seen: Stream([started(seen), out("so far"), late]))
    with pytest.raises(SandboxTimeout) as caught:
        run(create, [])
    assert caught.value.stdout == "so far"
    assert isinstance(caught.value, TimeoutError)


def test_a_refused_start_is_that_refusal(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", START, refusal(404, "not_found"))
    with pytest.raises(NotFound):
        run(create, [])


def test_callbacks_may_be_coroutines_in_asyncio(fake: FakeDaemon) -> None:
    from dayfly import AsyncSandbox

    fake.on("POST", START, lambda seen: Stream([started(seen), out("a"), out("b"), EXIT]))
    told: list[str] = []

    async def tell(text: str) -> None:
        await asyncio.sleep(0)
        told.append(text)

    async def scenario() -> None:
        async with AsyncSandbox.create("base", api_url=fake.url, api_key="k") as sandbox:
            await sandbox.exec("make", on_stdout=tell)

    asyncio.run(scenario())
    assert told == ["a", "b"]
