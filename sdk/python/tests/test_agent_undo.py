"""Every tool call is a snapshot away from being undone."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest
from agent_worlds import CREATE, DONE, ONE, Script, Worlds, calling, shell
from fake_daemon import refusal
from settled import settled

from dayfly.agents import (
    CallBegan,
    CallEnded,
    CheckpointDropped,
    CheckpointTaken,
    Event,
    Message,
    Results,
    ToolCall,
    Turn,
    TurnBegan,
    TurnEnded,
    Undone,
    UndoRefused,
    UserText,
)


def undoing(steps: int) -> ToolCall:
    return ToolCall("u", "undo", {"steps": steps})


def rolled_back(agents: Worlds) -> list[str]:
    return [one.json["snapshot_id"] for one in agents.fake.seen("POST", f"{ONE}/rollback")]


def test_the_model_undoes_three_calls(agents: Worlds) -> None:
    agents.with_snapshots()
    calls = [shell(str(number), f"c{number}") for number in range(4)]
    looking = ToolCall("r", "list_files", {})
    model = Script(calling(*calls), calling(looking), calling(undoing(3)), DONE)
    told: list[Event] = []
    agent = agents.make(model, checkpoint="step", undo_tool=True)
    assert agents.run(agent, "do it", on_event=told.append).ok
    assert rolled_back(agents) == ["snap-2"]
    assert model.results()[0].text.startswith("undone, the earliest first: run_shell, run_shell")
    assert [one.calls for one in told if isinstance(one, Undone)] == [3]
    assert len([one for one in told if isinstance(one, CheckpointTaken)]) == 4
    assert sorted(agents.deleted_snapshots()) == ["snap-1", "snap-2", "snap-3", "snap-4"]
    taken = agents.fake.seen("POST", f"{ONE}/snapshots")
    assert taken[0].json["retain_seconds"] == 3600, "for when this process is killed"


def test_what_the_model_took_is_deleted_with_its_sandbox(agents: Worlds) -> None:
    agents.with_snapshots()
    model = Script(calling(ToolCall("s", "snapshot", {"name": "before"})), DONE)
    agents.run(agents.make(model), "do it")
    assert agents.deleted_snapshots() == ["snap-1"]
    assert agents.fake.seen("POST", f"{ONE}/snapshots")[0].json["retain_seconds"] == 3600


def test_more_than_there_are_is_told(agents: Worlds) -> None:
    agents.with_snapshots()
    model = Script(calling(shell(), undoing(2)), DONE)
    agents.run(agents.make(model, checkpoint="step", undo_tool=True), "do it")
    assert model.results()[1].text == "error: 2 calls cannot be undone, only 1"
    assert not rolled_back(agents)


def test_the_oldest_go_first_and_that_is_told(agents: Worlds) -> None:
    agents.with_snapshots()
    calls = [shell(str(number), f"c{number}") for number in range(3)]
    model = Script(calling(*calls, undoing(3)), DONE)
    told: list[Event] = []
    agent = agents.make(model, checkpoint="step", undo_tool=True, max_checkpoints=2)
    agents.run(agent, "do it", on_event=told.append)
    assert [one.snapshot_id for one in told if isinstance(one, CheckpointDropped)] == ["snap-1"]
    assert model.results()[3].text == (
        "error: 3 calls cannot be undone, only 2; 1 earlier checkpoints were dropped, 2 are kept"
    )


def test_what_changes_nothing_has_no_checkpoint(agents: Worlds) -> None:
    agents.with_snapshots()
    calls = [
        ToolCall("a", "read_file", {"path": "/a"}),
        ToolCall("b", "fork", {"commands": ["ls"]}),
        ToolCall("c", "run_shell", {"cmd": "ls"}),
        ToolCall("d", "nothing", {}),
    ]
    agents.run(agents.make(Script(calling(*calls), DONE), checkpoint="step"), "do it")
    assert not agents.fake.seen("POST", f"{ONE}/snapshots")


def test_without_a_checkpoint_nothing_is_done(agents: Worlds) -> None:
    agents.fake.on("POST", f"{ONE}/snapshots", refusal(403, "quota_exceeded"))
    model = Script(calling(shell()), DONE)
    agents.run(agents.make(model, checkpoint="step"), "do it")
    assert model.results()[0].text.startswith("error: no checkpoint could be taken")
    assert not agents.fake.seen("POST", f"{ONE}/exec")


def test_the_caller_undoes_while_it_goes_on(agents: Worlds) -> None:
    agents.with_snapshots()
    model = Script(calling(shell("a", "c1"), shell("b", "c2")), DONE)
    agent = agents.make(model, checkpoint="step")

    def look(event: Event) -> Any:
        if isinstance(event, CallEnded) and event.call.id == "c2":
            return agent.undo(2)
        return None

    agents.run(agent, "do it", on_event=look)
    assert rolled_back(agents) == ["snap-1"]
    results, note = model.seen[1][-2:]
    assert isinstance(results, Results)
    assert isinstance(note, UserText)
    assert note.text.startswith("[The last 2 tool calls were undone (run_shell, run_shell)")


@pytest.mark.parametrize("kind", [CallBegan, CheckpointTaken, CheckpointDropped])
def test_a_call_that_is_carried_out_is_not_undone(agents: Worlds, kind: type[Event]) -> None:
    agents.with_snapshots()
    model = Script(calling(shell("a", "c1"), shell("b", "c2")), DONE)
    options: dict[str, Any] = {"scope": "session", "keep_checkpoints": True, "max_checkpoints": 1}
    agent = agents.make(model, checkpoint="step", **options)

    def look(event: Event) -> Any:
        is_second = getattr(event, "call", shell("b", "c2")) == shell("b", "c2")
        return agent.undo() if isinstance(event, kind) and is_second else None

    with pytest.raises(UndoRefused, match=r"run_shell is being carried out; undo may be called in"):
        agents.run(agent, "do it", on_event=look)
    assert not rolled_back(agents)
    assert len(agents.fake.seen("POST", f"{ONE}/exec")) == 1
    # Nothing is carried out any more, and its checkpoint is still there.
    assert agents.settle(agent.undo) == 1
    assert rolled_back(agents) == ["snap-1" if kind is CallBegan else "snap-2"]


@pytest.mark.parametrize("kind", [TurnBegan, TurnEnded, CallEnded])
def test_what_is_undone_is_told_behind_results(agents: Worlds, kind: type[Event]) -> None:
    agents.with_snapshots()
    model = Script(calling(shell("a", "c1")), calling(shell("b", "c2")), DONE)
    agent = agents.make(model, checkpoint="step")
    told: list[Event] = []

    def look(event: Event) -> Any:
        told.append(event)
        is_second = [type(one) for one in told].count(kind) == 2
        return agent.undo() if isinstance(event, kind) and is_second else None

    result = agents.run(agent, "do it", on_event=look)
    assert rolled_back(agents) == ["snap-2" if kind is CallEnded else "snap-1"]
    kinds = [type(one) for one in result.transcript.messages]
    # Providers refuse a conversation in which something is between calls and their results.
    pairs = list(itertools.pairwise(kinds))
    assert pairs.count((Turn, Results)) == 2
    assert kinds.count(UserText) == 2


def test_an_undo_before_an_exception_is_told_behind_results(agents: Worlds) -> None:
    agents.with_snapshots()
    model = Script(calling(shell("a", "c1")), calling(shell("b", "c2")), DONE)
    agent = agents.make(model, checkpoint="step")

    async def undo_and_fail() -> None:
        await settled(agent.undo())
        raise LookupError

    def look(event: Event) -> Any:
        if not isinstance(event, TurnEnded) or event.step != 2:
            return None
        if agents.is_async:
            return undo_and_fail()
        agent.undo()
        raise LookupError

    with pytest.raises(LookupError):
        agents.run(agent, "do it", on_event=look)
    messages = cast("list[Message]", agent.transcript.messages)
    kinds = [type(one) for one in messages]
    assert kinds == [UserText, Turn, Results, Turn, Results, UserText]


def test_the_caller_undoes_afterwards(agents: Worlds) -> None:
    agents.with_snapshots()
    model = Script(calling(shell()), DONE)
    agent = agents.make(model, checkpoint="step", scope="session", keep_checkpoints=True)
    result = agents.run(agent, "do it")
    assert result.checkpoints == ["snap-1"]
    assert agents.settle(agent.undo) == 1
    with pytest.raises(UndoRefused, match="only 0"):
        agents.settle(agent.undo)
    agents.run(agent, "again", transcript=agent.transcript)
    said = [one.text for one in model.seen[-1] if isinstance(one, UserText)]
    assert said[1].startswith("[The last tool call was undone")
    assert said[2] == "again"
    assert len(agents.fake.seen("POST", CREATE)) == 1
