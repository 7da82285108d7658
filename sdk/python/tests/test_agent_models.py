"""What is sent to providers and made of what they say, with clients that are stand-ins.

The packages themselves, against a server that speaks their formats, are in test_agent_wire.py.
"""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace as Plain
from typing import Any

import pytest
from agent_worlds import DONE, Script, Worlds, calling, shell

from dayfly import ToolImage
from dayfly.agents import (
    AnthropicModel,
    Budget,
    CallResult,
    Message,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Results,
    StopReason,
    ToolCall,
    Turn,
    UserText,
)
from dayfly.agents._anthropic import messages_of as anthropic_messages
from dayfly.agents._openai_chat import messages_of as chat_messages
from dayfly.agents._openai_responses import items_of

TALK: list[Message] = [
    UserText("do it"),
    Turn("look", [ToolCall("c1", "run_shell", {"command": "é"}), ToolCall("c2", "x", "{")]),
    Results(
        [
            CallResult(
                "c1", "run_shell", "ok\nstdout:\n1", False, [ToolImage("image/png", "aGk=")]
            ),
            CallResult("c2", "x", "error: no", True),
        ]
    ),
    UserText("[undone]"),
    Turn(""),
    UserText("go on"),
]


class Block(Plain):
    """An object of a provider's package, as far as we look at it."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def test_anthropic_messages() -> None:
    user, assistant, results = anthropic_messages(TALK)
    assert user == {"role": "user", "content": [{"type": "text", "text": "do it"}]}
    assert [block["type"] for block in assistant["content"]] == ["text", "tool_use", "tool_use"]
    assert assistant["content"][2]["input"] == {}
    kinds = [block["type"] for block in results["content"]]
    assert kinds == ["tool_result", "tool_result", "text", "text"], "results come first"
    assert results["content"][0]["content"][1]["source"]["data"] == "aGk="
    assert [block["is_error"] for block in results["content"][:2]] == [False, True]


def test_chat_messages() -> None:
    found = chat_messages("be good", TALK)
    roles = ["system", "user", "assistant", "tool", "tool", "user"]
    assert [one["role"] for one in found] == roles
    assert found[2]["tool_calls"][0]["function"]["arguments"] == '{"command": "é"}'
    assert found[2]["tool_calls"][1]["function"]["arguments"] == "{"
    assert found[5]["content"] == "[undone]\n\ngo on", "one side speaks once"
    assert found[3]["content"] == "ok\ncut: 1 images cannot be shown here\nstdout:\n1"


def test_responses_items() -> None:
    found = items_of(TALK)
    assert [one.get("type", one.get("role")) for one in found] == [
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "user",
    ]
    assert found[4]["output"][1]["image_url"] == "data:image/png;base64,aGk="
    assert found[5]["output"] == "error: no"


class Messages:
    """``client.messages``, which gives one reply after the other."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.bodies: list[dict[str, Any]] = []

    def create(self, **body: Any) -> Any:
        self.bodies.append(body)
        return self.replies.pop(0)


class AsyncMessages(Messages):
    async def create(self, **body: Any) -> Any:
        return super().create(**body)


class Client:
    def __init__(self, *replies: Any) -> None:
        self.messages = Messages(*replies)


class AsyncClient:
    def __init__(self, *replies: Any) -> None:
        self.messages = AsyncMessages(*replies)


def client_of(agents: Worlds, *replies: Any) -> Any:
    return (AsyncClient if agents.is_async else Client)(*replies)


def said(*blocks: Block, stop: str = "end_turn") -> Plain:
    return Plain(
        content=list(blocks), stop_reason=stop, usage=Plain(input_tokens=3, output_tokens=4)
    )


def test_thinking_is_given_back_as_it_came(agents: Worlds) -> None:
    thought = Block(type="thinking", thinking="hm", signature="s", extra=None)
    use = Block(type="tool_use", id="c1", name="run_shell", input={"command": "ls"}, caller="x")
    client = client_of(agents, said(thought, use), said(Block(type="text", text="done")))
    model = AnthropicModel(client, "m", options={"temperature": 0})
    result = agents.run(agents.make(model, system="be good"), "do it")
    assert (result.text, result.spent.input_tokens) == ("done", 6)
    first, second = client.messages.bodies
    assert (first["model"], first["system"], first["temperature"]) == ("m", "be good", 0)
    assert first["max_tokens"] == 8192
    assert second["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "c1", "name": "run_shell", "input": {"command": "ls"}},
    ]


def test_a_model_is_not_waited_for_longer_than_the_budget(agents: Worlds) -> None:
    released = threading.Event()

    def hang(messages: Any, tools: Any) -> Turn:
        released.wait(20)
        return DONE

    async def hang_later(messages: Any, tools: Any) -> Turn:
        await asyncio.sleep(20)
        return DONE

    model = hang_later if agents.is_async else hang
    result = agents.run(agents.make(model, budget=Budget(seconds=0.1)), "do it")
    released.set()
    assert result.reason is StopReason.SECONDS
    assert result.spent.seconds < 10
    assert agents.is_deleted()


def test_a_reply_that_is_none_is_a_failure_of_the_model(agents: Worlds) -> None:
    client = client_of(agents, said(Block(type="new_kind")))
    result = agents.run(agents.make(AnthropicModel(client, "m")), "do it")
    assert result.reason is StopReason.MODEL_ERROR
    assert "new_kind" in str(result.error)


@pytest.mark.parametrize("kind", [AnthropicModel, OpenAIChatModel, OpenAIResponsesModel])
def test_the_client_must_fit_the_agent(agents: Worlds, kind: type[Any]) -> None:
    other = (Client if agents.is_async else AsyncClient)()
    with pytest.raises(TypeError, match="client"):
        agents.make(kind(other, "m"))


def test_anthropics_own_tools_need_its_model(agents: Worlds) -> None:
    with pytest.raises(ValueError, match="only Anthropic's"):
        agents.make(OpenAIChatModel(client_of(agents), "m"), tools=["bash"])
    agents.make(AnthropicModel(client_of(agents), "m"), tools=["bash"])


def test_a_function_of_the_wrong_world_or_kind_is_refused(agents: Worlds) -> None:
    with pytest.raises(TypeError, match="model is"):
        agents.make("claude")

    async def later(messages: Any, tools: Any) -> Turn:
        return DONE

    if agents.is_async:
        assert agents.run(agents.make(later), "do it").ok
    else:
        with pytest.raises(TypeError, match="coroutine"):
            agents.make(later)


def test_a_function_that_gives_no_turn_is_a_failure_of_the_model(agents: Worlds) -> None:
    def say(messages: Any, tools: Any) -> str:
        return "done"

    result = agents.run(agents.make(say), "do it")
    assert result.reason is StopReason.MODEL_ERROR
    assert "gave str" in str(result.error)


def test_callbacks_may_be_coroutine_functions(agents: Worlds) -> None:
    if not agents.is_async:
        pytest.skip("only in asyncio")
    told: list[Any] = []

    async def tell(event: Any) -> None:
        await asyncio.sleep(0)
        told.append(event)

    async def look(call: ToolCall) -> None:
        await asyncio.sleep(0)

    agent = agents.make(Script(calling(shell()), DONE), before_execution=look)
    agents.run(agent, "do it", on_event=tell)
    assert len(told) == 7
