"""``dayfly.adapters.pydantic_ai`` in the smallest agent of pydantic-ai."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from dayfly import AsyncSandbox, Sandbox
from dayfly.adapters.pydantic_ai import toolset
from stage import MODEL, scripted

CHART = "import matplotlib.pyplot as plt; plt.plot([1, 4, 9]); plt.show()"


def chat(model: Any) -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=f"{model.address}/v1", api_key="key")
    return OpenAIChatModel(MODEL, provider=provider)


def test_an_agent_recovers_from_two_failures() -> None:
    turns = [
        {"content": [{"tool": "read_file", "arguments": {"path": "no"}}]},
        {"content": [{"tool": "read_file", "arguments": {"path": "nor this"}}]},
        {
            "expect": {"result": {"contains": "no such file"}},
            "content": [{"tool": "run_shell", "arguments": {"command": "echo $((6*7))"}}],
        },
        {"expect": {"result": {"contains": "stdout:\n42"}}, "content": ["It is 42."]},
    ]
    with scripted(*turns) as model, Sandbox("base", ttl_seconds=600) as sandbox:
        agent = Agent(chat(model), toolsets=[toolset(sandbox.tools("read_file", "run_shell"))])
        assert agent.run_sync("Compute six times seven.").output == "It is 42."


def test_a_chart_is_an_image_for_the_model() -> None:
    async def scenario() -> list[Any]:
        async with AsyncSandbox.create("code-interpreter", ttl_seconds=600) as sandbox:
            tools = toolset(sandbox.tools("run_code"))
            tool = tools.tools["run_code"]
            return await tool.function_schema.call({"code": CHART}, None)

    text, image = asyncio.run(scenario())
    assert text.startswith("ok")
    assert isinstance(image, BinaryContent)
    assert image.data.startswith(b"\x89PNG")
    assert ToolReturnPart("run_code", [text, image], "1").files == [image]
