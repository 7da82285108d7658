"""Agents with the published packages of providers, against a model that follows a script.

``tests/model`` speaks the wire formats and judges every request. The packages have an environment
of their own, and the tests are skipped elsewhere::

    python3 -m venv models
    models/bin/pip install pytest anthropic openai
    models/bin/pytest tests/test_agent_wire.py

Blocking agents take whole responses, those for asyncio streams, unless a scenario says otherwise.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_stage import (
    MODEL,
    Rehearsal,
    act_before_call,
    acts_before_task,
    held_turn,
    interrupt_soon,
    interrupt_when_asked,
    load,
    serve,
)
from agent_worlds import CREATE, ONE
from fake_daemon import FakeDaemon

from dayfly import NotFound, Sandbox
from dayfly.agents import (
    Agent,
    AgentResult,
    AnthropicModel,
    AsyncAgent,
    Budget,
    CallBegan,
    Event,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Refusal,
    TextDelta,
    ToolCall,
    Transcript,
    TurnBegan,
    Usage,
)

INSTALL = "pip install anthropic openai"
MODELS: dict[str, Any] = {
    "anthropic": AnthropicModel,
    "chat": OpenAIChatModel,
    "responses": OpenAIResponsesModel,
}
# A killed client cannot say how it ended: test_live_agents.py has that.
SCENARIOS = [
    path for path in sorted((MODEL / "scenarios").glob("*.json")) if path.stem != "client_killed"
]
CASES = [
    pytest.param(path, form, is_async, id=f"{path.stem}-{form}-{'async' if is_async else 'sync'}")
    for path in SCENARIOS
    for form in load(path).formats
    for is_async in (False, True)
]


def package(name: str) -> Any:
    if os.environ.get("DAYFLY_REQUIRE_MODEL_PACKAGES") == "1":
        return __import__(name)
    return pytest.importorskip(name, reason=f"needs the real package: {INSTALL}")


class Show:
    """One scenario with one format and one kind of agent."""

    def __init__(self, script: Any, form: str, model: Any, fake: FakeDaemon | None) -> None:
        self.script = script
        self.form = form
        self.model = model
        self.fake = fake
        self.rehearsal = None if fake is None else Rehearsal(script, fake)
        self.calls = 0
        self.requests = 0
        self.agent: Any = None
        self.task: asyncio.Task[Any] | None = None

    def client(self, *, is_async: bool) -> Any:
        name = "anthropic" if self.form == "anthropic" else "openai"
        kind = {"anthropic": "Anthropic", "openai": "OpenAI"}[name]
        found = getattr(package(name), f"Async{kind}" if is_async else kind)
        url = self.model.address if name == "anthropic" else f"{self.model.address}/v1"
        run = self.script.run
        options = {"timeout": run.get("model_timeout_seconds", 20.0)}
        return found(base_url=url, api_key="key", max_retries=run.get("max_retries", 2), **options)

    def make(self, client: Any, *, is_async: bool) -> Any:
        run = self.script.run
        given = dict(run.get("budget", {}))
        each = given.pop("cost_of_token", 0.0)
        if "cost" in given:
            given["cost_of"] = functools.partial(_cost, each)
        stream = run.get("stream", is_async)
        options: dict[str, Any] = {
            "budget": Budget(**given),
            "before_execution": self.look,
            "scope": "session" if len(run["tasks"]) > 1 else "task",
            "checkpoint": run.get("checkpoint"),
            "undo_tool": run.get("undo_tool", False),
            "keep_checkpoints": "checkpoint" in run,
            "ttl_seconds": 300,
        }
        if "step_timeout_seconds" in run:
            options["step_timeout_seconds"] = run["step_timeout_seconds"]
        if run.get("native_tools"):
            options["tools"] = ["bash", "text_editor"]
        if self.fake is not None:
            options |= {"api_url": self.fake.url, "api_key": "df_key"}
        model = MODELS[self.form](client, "script-1", stream=stream)
        self.agent = (AsyncAgent if is_async else Agent)(model, **options)
        return self.agent

    def look(self, call: ToolCall) -> Refusal | None:
        """The hook: what happens before a call, and whether it is refused."""
        self.calls += 1
        act = act_before_call(self.script, self.calls)
        if act == "delete_sandbox":
            self.lose()
        elif act == "hibernate" and self.fake is None:
            Sandbox.connect(self.agent.sandbox_id).hibernate()
        refuse = self.script.run.get("refuse")
        if refuse and refuse["arguments_contain"] in str(call.arguments):
            return Refusal(refuse["why"])
        return None

    def lose(self) -> None:
        if self.rehearsal is not None:
            self.rehearsal.lose()
        else:
            Sandbox.connect(self.agent.sandbox_id).delete()

    def tell(self, event: Event) -> None:
        """Cancels where the scenario says so."""
        held = held_turn(self.script)
        if isinstance(event, TurnBegan):
            self.requests += 1
            if self.requests == held and not self.is_streamed():
                self.cancel(self.requests)
        elif isinstance(event, TextDelta):
            if self.requests == held:
                self.cancel()
        elif isinstance(event, CallBegan) and self.is_cancelled_within():
            self.cancel()

    def is_cancelled_within(self) -> bool:
        return act_before_call(self.script, self.calls) == "cancel"

    def is_streamed(self) -> bool:
        return self.script.run.get("stream", self.task is not None)

    def cancel(self, requests: int | None = None) -> None:
        if self.task is not None:
            asyncio.get_running_loop().call_soon(self.task.cancel)
        elif requests is None:
            interrupt_soon()
        else:
            interrupt_when_asked(self.model, requests)


def _cost(each: float, usage: Usage) -> float:
    return usage.total * each


def stored(transcript: Transcript, place: Path) -> Transcript:
    transcript.save(place / "transcript.json")
    return Transcript.load(place / "transcript.json")


def play(show: Show, place: Path) -> AgentResult | BaseException:
    """The tasks of a scenario, one after the other, in one conversation."""
    with show.client(is_async=False) as client, show.make(client, is_async=False) as agent:
        transcript, result = None, None
        for number, task in enumerate(show.script.run["tasks"], 1):
            for act in acts_before_task(show.script, number):
                if act["do"] == "undo":
                    assert agent.undo(act["steps"]) == act["steps"]
                    transcript = agent.transcript
                else:
                    assert act["do"] == "store_and_load"
                    transcript = stored(agent.transcript, place)
            try:
                result = agent.run(task, transcript=transcript, on_event=show.tell)
            except KeyboardInterrupt as error:
                return error
            transcript = result.transcript
        assert result is not None
        return result


async def play_async(show: Show, place: Path) -> AgentResult | BaseException:
    """As ``play``."""
    client = show.client(is_async=True)
    async with client, show.make(client, is_async=True) as agent:
        transcript: Transcript | None = None
        result: AgentResult | None = None
        for number, task in enumerate(show.script.run["tasks"], 1):
            for act in acts_before_task(show.script, number):
                if act["do"] == "undo":
                    assert await agent.undo(act["steps"]) == act["steps"]
                    transcript = agent.transcript
                else:
                    assert act["do"] == "store_and_load"
                    transcript = stored(agent.transcript, place)
            running = agent.run(task, transcript=transcript, on_event=show.tell)
            going = show.task = asyncio.ensure_future(running)
            try:
                result = await going
            except asyncio.CancelledError as error:
                return error
            transcript = agent.transcript
        assert result is not None
        return result


def check_end(show: Show, end: AgentResult | BaseException) -> None:
    outcome = show.script.outcome
    if isinstance(end, BaseException):
        assert outcome["stop"] == "cancelled"
        assert show.agent.transcript.stop == "cancelled"
        return
    assert end.reason == outcome["stop"], end.error
    wanted = outcome.get("text", {})
    assert end.text == wanted.get("equals", end.text)
    assert wanted.get("contains", "") in end.text


def check_log(show: Show) -> None:
    log = show.model.log()
    assert log["violations"] == []
    outcome = show.script.outcome
    if "requests_max" in outcome:
        assert len(log["requests"]) <= outcome["requests_max"]
    if outcome["stop"] != "cancelled":
        assert log["finished"]
    if "calls" in outcome and outcome["stop"] != "cancelled":
        assert show.calls == outcome["calls"]


def check_nothing_is_left(show: Show) -> None:
    if show.fake is None:
        if show.agent.sandbox_id is not None:
            with pytest.raises(NotFound):
                Sandbox.connect(show.agent.sandbox_id)
        return
    assert len(show.fake.seen("POST", CREATE)) == len(show.fake.seen("DELETE", ONE))


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """A shell has what it runs in the background ignore Ctrl-C, and the gate runs this there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def daemon(fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> FakeDaemon | None:
    """The fake one, unless there is a real one."""
    return None if os.environ.get("DAYFLY_API_URL") else fake


@pytest.mark.parametrize(("path", "form", "is_async"), CASES)
def test_a_scenario(
    path: Path,
    form: str,
    is_async: bool,
    daemon: FakeDaemon | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = load(path)
    if "candidates" in script.run:
        pytest.skip("test_the_best_of_three has it")
    with serve(script) as model:
        show = Show(script, form, model, daemon)
        if show.rehearsal is not None:
            monkeypatch.setattr("dayfly.agents._loop.call_tool_aloud", show.rehearsal.call)
        end = asyncio.run(play_async(show, tmp_path)) if is_async else play(show, tmp_path)
        check_end(show, end)
        check_log(show)
    check_nothing_is_left(show)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("form", list(MODELS))
def test_the_best_of_three(
    form: str, is_async: bool, daemon: FakeDaemon | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load(MODEL / "scenarios" / "best_of_three.json")
    task = script.run["tasks"][0]

    def judge(result: AgentResult, sandbox: Any) -> float:
        return float(result.text == "I wrote 42.")

    async def search(show: Show) -> Any:
        client = show.client(is_async=True)
        async with client, show.make(client, is_async=True) as agent:
            found = await agent.best_of(3, task, judge)
            await found.winner.delete()
            return found

    with serve(script) as model:
        show = Show(script, form, model, daemon)
        if show.rehearsal is not None:
            monkeypatch.setattr("dayfly.agents._loop.call_tool_aloud", show.rehearsal.call)
        if is_async:
            found = asyncio.run(search(show))
        else:
            with show.client(is_async=False) as client:
                found = show.make(client, is_async=False).best_of(3, task, judge)
                found.winner.delete()
        assert found.best.result.text == "I wrote 42."
        assert sorted(one.score for one in found.trials) == [0.0, 0.0, 1.0]
        assert model.log()["violations"] == []
        assert model.log()["finished"]
    check_nothing_is_left(show)
