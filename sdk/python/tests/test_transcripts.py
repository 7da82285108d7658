"""Conversations that are stored, resumed and replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import DONE, ONE, Script, Worlds, calling, shell

from dayfly import ToolImage
from dayfly.agents import (
    CallResult,
    Results,
    StopReason,
    ToolCall,
    Transcript,
    TranscriptRefused,
    Turn,
    Usage,
    UserText,
)

WHOLE = Transcript(
    [
        UserText("é \ud800"),
        Turn("t", [ToolCall("c", "n", {"a": [1]}), ToolCall("d", "n", "{")], Usage(1, 2), raw=[{}]),
        Results([CallResult("c", "n", "x", True, [ToolImage("image/png", "aGk=")])]),
    ],
    "steps",
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    WHOLE.save(tmp_path / "t.json")
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]
    assert (tmp_path / "t.json").stat().st_mode & 0o777 == 0o600
    assert Transcript.load(tmp_path / "t.json") == WHOLE
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]


def changed(**more: Any) -> dict[str, Any]:
    return {**WHOLE.to_json(), **more}


@pytest.mark.parametrize(
    "data",
    [
        {},
        changed(version=2),
        changed(format="other"),
        changed(extra=1),
        changed(messages={}),
        changed(messages=[1]),
        changed(messages=[{"kind": "system", "text": "x"}]),
        changed(messages=[{"kind": "user"}]),
        changed(messages=[{"kind": "user", "text": "x", "role": "system"}]),
        changed(messages=[{"kind": "results", "results": [{"call_id": "c"}]}]),
        changed(messages=[{"kind": "turn", "calls": [], "usage": {"cached": 1}}]),
        changed(messages=[{"kind": "turn", "calls": [], "usage": {}, "thinking": "x"}]),
    ],
)
def test_what_is_not_known_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(TranscriptRefused):
        Transcript.from_json(json.loads(json.dumps(data)))


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TranscriptRefused):
        Transcript.load(tmp_path / "t.json")


def test_a_run_is_resumed(agents: Worlds, tmp_path: Path) -> None:
    first = agents.run(agents.make(Script(calling(shell()), ConnectionError())), "do it")
    assert first.reason is StopReason.MODEL_ERROR
    first.transcript.save(tmp_path / "t.json")
    model = Script(DONE)
    stored = Transcript.load(tmp_path / "t.json")
    result = agents.run(agents.make(model), transcript=stored)
    assert result.ok
    assert [type(one) for one in model.seen[0]] == [UserText, Turn, Results]
    assert [type(one) for one in stored.messages] == [UserText, Turn, Results], "as it was"


def test_a_call_without_a_result_is_closed(agents: Worlds) -> None:
    broken = Transcript([UserText("do it"), calling(shell())])
    model = Script(DONE)
    agents.run(agents.make(model), "go on", transcript=broken)
    results, text = model.seen[0][-2:]
    assert isinstance(results, Results)
    assert "not known" in results.results[0].text
    assert text == UserText("go on")
    assert not agents.fake.seen("POST", f"{ONE}/exec"), "it may have been carried out before"


def test_a_run_is_replayed(agents: Worlds) -> None:
    first = agents.run(agents.make(Script(calling(shell("make")), DONE)), "do it")
    again = agents.run(agents.make(first.transcript.replay()), "do it")
    assert again.transcript.messages == first.transcript.messages
    assert [one.json["cmd"] for one in agents.fake.seen("POST", f"{ONE}/exec")] == ["make", "make"]


def test_nothing_to_do_is_refused(agents: Worlds) -> None:
    with pytest.raises(ValueError, match="there is no task"):
        agents.run(agents.make(Script(DONE)))
    assert not agents.fake.requests
