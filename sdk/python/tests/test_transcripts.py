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
        Results([CallResult("c", "n", "x", True, [ToolImage("image/png", "iVBORw0KGgo=")])]),
    ],
    "steps",
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    WHOLE.save(tmp_path / "t.json")
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]
    assert (tmp_path / "t.json").stat().st_mode & 0o777 == 0o600
    assert Transcript.load(tmp_path / "t.json") == WHOLE
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]


def image(media_type: Any, data: Any) -> dict[str, Any]:
    return {"media_type": media_type, "data": data}


def changed(**more: Any) -> dict[str, Any]:
    return {**WHOLE.to_json(), **more}


@pytest.mark.parametrize(
    "data",
    [
        {},
        changed(version=2),
        changed(version=True),
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


TURN = WHOLE.to_json()["messages"][1]
RESULT = WHOLE.to_json()["messages"][2]["results"][0]


WRONG: list[dict[str, Any]] = [
    {"kind": "user", "text": None},
    {"kind": "user", "text": ["x"]},
    {"kind": ["user"], "text": "x"},
    {**TURN, "text": 1},
    {**TURN, "text": None},
    {**TURN, "calls": None},
    {**TURN, "calls": [{"id": 1, "name": "n", "arguments": {}}]},
    {**TURN, "calls": [{"id": "c", "name": None, "arguments": {}}]},
    {**TURN, "calls": [{"id": "c", "name": "n", "arguments": [1]}]},
    {**TURN, "calls": [{"id": "c", "name": "n", "arguments": None}]},
    {**TURN, "usage": {"input_tokens": "1"}},
    {**TURN, "usage": {"input_tokens": True}},
    {**TURN, "usage": {"input_tokens": 1.5}},
    {**TURN, "usage": {"output_tokens": -1}},
    {**TURN, "usage": None},
    {**TURN, "is_cut": 1},
    {**TURN, "is_refused": "no"},
    {**TURN, "provider": None},
    {"kind": "results", "results": [{**RESULT, "call_id": 1}]},
    {"kind": "results", "results": [{**RESULT, "name": {}}]},
    {"kind": "results", "results": [{**RESULT, "text": [{"type": "text", "text": "x"}]}]},
    {"kind": "results", "results": [{**RESULT, "is_error": 0}]},
    {"kind": "results", "results": [{**RESULT, "images": {}}]},
    {"kind": "results", "results": [{**RESULT, "images": [{"media_type": "image/png"}]}]},
    {"kind": "results", "results": [{**RESULT, "images": [image("text/html", "PGI+")]}]},
    {"kind": "results", "results": [{**RESULT, "images": [image("image/png", "aGk=")]}]},
    {"kind": "results", "results": [{**RESULT, "images": [image("image/png", 5)]}]},
]


@pytest.mark.parametrize("message", WRONG)
def test_every_field_is_of_its_type(message: dict[str, Any]) -> None:
    with pytest.raises(TranscriptRefused, match=r"^message 2: "):
        Transcript.from_json(changed(messages=[{"kind": "user", "text": "x"}, message]))


@pytest.mark.parametrize("stop", [1, "for ever", ["steps"], {}])
def test_the_reason_of_the_end_is_one_that_is_known(stop: Any) -> None:
    with pytest.raises(TranscriptRefused, match="stop"):
        Transcript.from_json(changed(stop=stop))


CALL = ToolCall("c", "run_shell", {"command": "ls"})
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s", "a_later_field": 1}
SAID = {"type": "text", "text": "t"}
USED = {"type": "tool_use", "id": "c", "name": "run_shell", "input": {"command": "ls"}}
REASONED: dict[str, Any] = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"}
SPOKE = {"role": "assistant", "content": "t"}
CALLED = {
    "type": "function_call",
    "call_id": "c",
    "name": "run_shell",
    "arguments": '{"command": "ls"}',
}


def raw_turn(provider: str, raw: Any) -> dict[str, Any]:
    turn = Turn("t", [CALL], provider=provider, raw=raw)
    return json.loads(json.dumps(Transcript([turn]).to_json()))


GIVEN: list[tuple[str, Any]] = [
    ("anthropic", [THOUGHT, {"type": "redacted_thinking", "data": "d"}, SAID, USED]),
    ("openai-responses", [REASONED, SPOKE, CALLED]),
    ("openai-chat", None),
    ("a model of the caller's own", {"anything": 1}),
]


@pytest.mark.parametrize(("provider", "raw"), GIVEN)
def test_what_a_provider_gave_is_loaded(provider: str, raw: Any) -> None:
    (turn,) = Transcript.from_json(raw_turn(provider, raw)).turns()
    assert turn.raw == raw


NOT_GIVEN: list[tuple[str, Any]] = [
    ("anthropic", None),
    ("anthropic", {"type": "text"}),
    ("anthropic", ["t"]),
    ("anthropic", [SAID, USED, {"type": "tool_result", "tool_use_id": "c", "content": "x"}]),
    ("anthropic", [SAID, USED, {"type": "image", "source": {}}]),
    ("anthropic", [SAID, USED, {"type": ["text"], "text": ""}]),
    ("anthropic", [SAID, {**USED, "cache_control": {}}]),
    ("anthropic", [SAID, {**USED, "input": "ls"}]),
    ("anthropic", [SAID, USED, {**THOUGHT, "thinking": {}}]),
    ("anthropic", [{**SAID, "text": "something else"}, USED]),
    ("anthropic", [SAID, {**USED, "input": {"command": "rm -rf /"}}]),
    ("anthropic", [SAID]),
    ("openai-responses", [SPOKE, CALLED, {"role": "system", "content": ""}]),
    ("openai-responses", [SPOKE, CALLED, {"role": "developer", "content": ""}]),
    ("openai-responses", [SPOKE, CALLED, {"type": "message", "role": "user", "content": ""}]),
    ("openai-responses", [SPOKE, CALLED, {"type": "function_call_output", "output": ""}]),
    ("openai-responses", [SPOKE, {**CALLED, "arguments": {}}]),
    ("openai-responses", [SPOKE, CALLED, {**REASONED, "summary": "x"}]),
    ("openai-responses", [CALLED]),
    ("openai-chat", [SPOKE]),
]


@pytest.mark.parametrize(("provider", "raw"), NOT_GIVEN)
def test_what_no_model_said_is_refused(provider: str, raw: Any) -> None:
    with pytest.raises(TranscriptRefused, match=f"^message 1: raw of a turn of {provider}: "):
        Transcript.from_json(raw_turn(provider, raw))


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
