"""Code in contexts: what it says, what becomes of it when nobody waits, and dead interpreters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, Answer, FakeDaemon, Lost, Reply, Seen, Stream, refusal
from settled import settled
from test_cancelling import Cancel, ways

from dayfly import (
    AsyncSandbox,
    ExecInterrupted,
    Execution,
    NotFound,
    Result,
    Sandbox,
    SandboxTimeout,
)
from dayfly.execution import execution_from_wire

ONE = f"/v1/sandboxes/{SANDBOX}"
CONTEXTS = f"{ONE}/repl/sessions"
RUN = f"{CONTEXTS}/default/run"
STREAM = f"{RUN}/stream"
INTERRUPT = f"{CONTEXTS}/default/interrupt"
RESTART = f"{CONTEXTS}/default/restart"

Event = tuple[str, dict[str, Any]]


def ran(stdout: str = "", **more: Any) -> Reply:
    body: dict[str, Any] = {
        "results": [],
        "stdout": stdout,
        "stderr": "",
        "exit_code": 0,
        "status": "ok",
    }
    return Reply(200, {**body, **more})


DIED = ran(status="died", exit_code=1, error="ContextDied: the python process ended")
SAID: list[Event] = [
    ("started", {"run_id": "r"}),
    ("stdout", {"chunk": "one "}),
    ("stderr", {"chunk": "bad"}),
    ("result", {"data": {"text/plain": "42"}}),
    ("stdout", {"chunk": "two"}),
]


def contexts(fake: FakeDaemon) -> None:
    fake.on("POST", CONTEXTS, Reply(201, {"id": "default", "language": "python"}))
    fake.on("POST", INTERRUPT, Reply(204))
    fake.on("POST", RESTART, Reply(204))


def run(create: Create, *codes: str, **options: Any) -> list[Execution]:
    async def scenario() -> list[Execution]:
        sandbox = await settled(create())
        return [await settled(sandbox.run_code(code, **options)) for code in codes]

    return asyncio.run(scenario())


def test_a_run_is_told_as_it_goes(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", STREAM, Stream([*SAID, ("end", {"status": "ok", "execution_count": 3})]))
    told: list[str] = []

    def tell(result: Result) -> None:
        told.append(str(result.text))

    (execution,) = run(
        create,
        "x",
        on_stdout=told.append,
        on_stderr=told.append,
        on_result=tell,
    )
    assert told == ["one ", "bad", "42", "two"]
    assert (execution.stdout, execution.stderr, execution.text) == ("one two", "bad", "42")
    assert execution.execution_count == 3


def test_the_limits_of_output_and_changes_are_asked_for(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", RUN, ran(changed_files=["/workspace/a"], omitted=[{"stream": "stdout"}]))
    (execution,) = run(create, "x", max_output_bytes=500, report_changes=True)
    sent = fake.seen("POST", RUN)[0].json
    assert (sent["max_output_bytes"], sent["report_changes"]) == (500, True)
    assert execution.changed_files == ["/workspace/a"]
    assert execution.omitted
    with pytest.raises(ValueError, match="report_changes"):
        run(create, "x", report_changes=True, on_stdout=len)


def test_a_time_limit_keeps_the_output(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", RUN, refusal(504, "timeout"))
    fake.on("POST", STREAM, Stream([*SAID, ("end", {"status": "timed_out"})]))
    with pytest.raises(SandboxTimeout) as caught:
        run(create, "x", timeout_seconds=5)
    assert (caught.value.stdout, caught.value.stderr) == ("one two", "bad")
    first, again = fake.seen("POST", RUN)[0].json, fake.seen("POST", STREAM)[0].json
    assert first["run_id"] == again["run_id"], "it would run a second time"


def test_a_time_limit_is_told_although_its_output_cannot_be_read(
    fake: FakeDaemon, create: Create
) -> None:
    contexts(fake)
    fake.on("POST", RUN, refusal(504, "timeout"))
    fake.on("POST", STREAM, Stream(SAID, is_cut=True))
    with pytest.raises(SandboxTimeout) as caught:
        run(create, "x", timeout_seconds=5)
    assert caught.value.stdout == "one two"


class Endless:
    """A run that ends when it is interrupted, as code that loops."""

    def __init__(self, fake: FakeDaemon, path: str) -> None:
        self.arrived = threading.Event()
        self._ended = threading.Event()
        fake.on("POST", path, self._run)
        fake.on("POST", INTERRUPT, self._interrupt)

    def _run(self, _: Seen) -> Answer:
        self.arrived.set()
        self._ended.wait(20)
        return ran(status="interrupted")

    def _interrupt(self, _: Seen) -> Answer:
        self._ended.set()
        return Reply(204)


@ways
@pytest.mark.parametrize("is_followed", [False, True], ids=["plain", "followed"])
def test_a_cancelled_run_is_interrupted(
    fake: FakeDaemon, cancel: Cancel, is_followed: bool
) -> None:
    contexts(fake)
    endless = Endless(fake, STREAM if is_followed else RUN)
    on_stdout: Callable[[str], Any] | None = len if is_followed else None

    async def scenario() -> None:
        sandbox = await AsyncSandbox.create("base", api_url=fake.url, api_key="k")
        # Made before, so that a time limit does not end before the run has begun.
        await sandbox.context("default")
        sandbox._contexts.made.add("default")  # pyright: ignore[reportPrivateUsage]

        async def use() -> None:
            await sandbox.run_code("while True: pass", on_stdout=on_stdout)

        await cancel(use, endless.arrived.is_set)

    asyncio.run(scenario())
    assert len(fake.seen("POST", INTERRUPT)) == 1


def test_a_run_that_waits_does_not_end_the_one_before(fake: FakeDaemon) -> None:
    contexts(fake)
    endless = Endless(fake, RUN)

    async def scenario() -> None:
        sandbox = await AsyncSandbox.create("base", api_url=fake.url, api_key="k")
        first = asyncio.create_task(sandbox.run_code("while True: pass"))
        while not endless.arrived.is_set():
            await asyncio.sleep(0.005)
        second = asyncio.create_task(sandbox.run_code("1"))
        while len(fake.seen("POST", RUN)) < 2:
            await asyncio.sleep(0.005)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert not fake.seen("POST", INTERRUPT)
        await (await sandbox.context("default")).interrupt()
        await first

    asyncio.run(scenario())


def test_ctrl_c_interrupts_the_code(fake: FakeDaemon) -> None:
    contexts(fake)
    fake.on("POST", STREAM, Stream(SAID))
    sandbox = Sandbox("base", api_url=fake.url, api_key="k")

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sandbox.run_code("while True: print()", on_stdout=stop)
    assert len(fake.seen("POST", INTERRUPT)) == 1


def test_a_dead_interpreter_is_started_again_and_says_so(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", RUN, DIED, ran("2"), ran("3"))
    killed, after, later = run(create, "import os; os._exit(1)", "1+1", "1+2")
    assert killed.error is not None
    assert not killed.state_lost
    assert (after.stdout, after.state_lost) == ("2", True)
    assert "state of before is lost" in str(after.hint)
    assert "state of before is lost" in after.for_model()
    assert (later.stdout, later.state_lost) == ("3", False)
    assert len(fake.seen("POST", RESTART)) == 1


def test_a_server_that_restarts_by_itself_is_believed(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", RUN, ran("2", state_lost=True))
    restarted: Event = ("restarted", {"reason": "it ended"})
    fake.on("POST", STREAM, Stream([restarted, ("end", {"status": "ok"})]))
    assert run(create, "1")[0].state_lost
    assert run(create, "1", on_stdout=len)[0].state_lost


def test_a_context_that_was_deleted_is_made_again(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", RUN, ran("1"), refusal(404, "not_found"), ran("2"))
    assert [one.stdout for one in run(create, "a", "b")] == ["1", "2"]
    assert len(fake.seen("POST", CONTEXTS)) == 2


def test_the_default_context_has_a_handle(fake: FakeDaemon, create: Create) -> None:
    contexts(fake)
    fake.on("POST", RUN, ran("1"))
    other = {"id": "ctx-1", "language": "bash", "state": "idle"}
    fake.on("GET", CONTEXTS, Reply(200, {"items": [other]}))
    fake.on("DELETE", f"{CONTEXTS}/default", Reply(204))

    async def scenario() -> None:
        sandbox = await settled(create())
        context = await settled(sandbox.context("default"))
        assert context.language == "python"
        assert (await settled(context.run("1"))).stdout == "1"
        for verb in ("interrupt", "restart", "delete"):
            await settled(getattr(context, verb)())
        assert (await settled(sandbox.context("ctx-1"))).language == "bash"
        with pytest.raises(NotFound, match="there are: ctx-1"):
            await settled(sandbox.context("nothing"))

    asyncio.run(scenario())
    assert len(fake.seen("POST", INTERRUPT)) == len(fake.seen("POST", RESTART)) == 1
    assert len(fake.seen("DELETE", f"{CONTEXTS}/default")) == 1


def test_a_followed_run_that_is_lost_says_what_may_be_done(
    fake: FakeDaemon, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dayfly._retry.LOST_PAUSES", (0.01,))
    contexts(fake)
    fake.on("POST", STREAM, Stream(SAID, is_cut=True))
    fake.on("POST", RUN, Lost())
    with pytest.raises(ExecInterrupted) as caught:
        run(create, "x", on_stdout=len)
    assert caught.value.stdout == "one two"
    assert "interrupt()" in str(caught.value)


class TestWithoutContexts:
    """A fresh interpreter each time, as a command: with all that commands can do."""

    @staticmethod
    def none(fake: FakeDaemon) -> None:
        fake.on("POST", CONTEXTS, refusal(501, "not_implemented"))

    def test_code_is_a_command_of_its_own(self, fake: FakeDaemon, create: Create) -> None:
        self.none(fake)
        failed = {"stdout": "a", "stderr": "Traceback", "exit_code": 1}
        fake.on("POST", f"{ONE}/exec", Lost(), Reply(200, failed))
        (execution,) = run(create, "1/0", max_output_bytes=999)
        assert (execution.exit_code, execution.stderr) == (1, "Traceback")
        assert execution.error is not None
        first, again = (seen.json for seen in fake.seen("POST", f"{ONE}/exec"))
        assert first == again
        assert (first["cmd"], first["stdin"]) == (["python3", "-"], "1/0")
        assert first["max_output_bytes"] == 999

    def test_it_can_be_followed(self, fake: FakeDaemon, create: Create) -> None:
        self.none(fake)
        exited: Event = ("exit", {"exit_code": 0, "reason": "exited"})
        fake.on("POST", f"{ONE}/exec/stream", Stream([("stdout", {"chunk": "a"}), exited]))
        told: list[str] = []
        run(create, "echo a", language="bash", on_stdout=told.append)
        assert told == ["a"]
        assert fake.seen("POST", f"{ONE}/exec/stream")[0].json["cmd"] == "echo a"

    def test_a_language_that_is_not_there_is_refused(
        self, fake: FakeDaemon, create: Create
    ) -> None:
        self.none(fake)
        with pytest.raises(Exception, match="not_implemented"):
            run(create, "1", language="javascript")


def test_a_text_for_a_model_has_everything_once() -> None:
    execution = execution_from_wire(
        {
            "results": [{"text/plain": "42"}, {"image/png": "aGk="}],
            "stdout": "out\n",
            "stderr": "warned",
            "error": "ValueError: bad",
            "traceback": ["Traceback", "ValueError: bad"],
            "hint": "try again",
            "changed_files": ["/workspace/a"],
        }
    )
    assert execution.for_model() == (
        "error ValueError, 0.0 s\nchanged files: /workspace/a\nhint: try again\nstdout:\nout\n"
        "stderr:\nwarned\nTraceback\nValueError: bad\nresult:\n42\nresult (with image/png)"
    )


def test_a_text_for_a_model_says_first_what_is_left_out() -> None:
    execution = execution_from_wire({"stdout": "x" * 100_000, "hint": "try again"})
    text = execution.for_model(max_bytes=1000)
    assert text.startswith("ok, 0.0 s\nhint: try again\ncut: 99000 bytes of stdout are left out\n")
    assert text.count("x") == 1000
    with pytest.raises(ValueError, match="max_bytes"):
        execution.for_model(max_bytes=1)
