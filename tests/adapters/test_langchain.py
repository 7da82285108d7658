"""``dayfly.adapters.langchain`` in the smallest agent of LangChain."""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from dayfly import AsyncSandbox, Sandbox
from dayfly.adapters.langchain import langchain_tools
from stage import MODEL, scripted

CHART = "import matplotlib.pyplot as plt; plt.plot([1, 4, 9]); plt.show()"


def test_an_agent_is_told_of_a_failure_and_goes_on() -> None:
    turns = [
        {"content": [{"tool": "read_file", "arguments": {"path": "no"}}]},
        {
            "expect": {"result": {"contains": "no such file"}},
            "content": [{"tool": "run_shell", "arguments": {"command": "echo $((6*7))"}}],
        },
        {"expect": {"result": {"contains": "stdout:\n42"}}, "content": ["It is 42."]},
    ]
    with scripted(*turns) as model, Sandbox("base", ttl_seconds=600) as sandbox:
        chat = ChatOpenAI(model=MODEL, base_url=f"{model.address}/v1", api_key="key")
        agent = create_agent(chat, tools=langchain_tools(sandbox.tools("read_file", "run_shell")))
        end = agent.invoke({"messages": [{"role": "user", "content": "Compute six times seven."}]})
    said = end["messages"]
    assert said[-1].content == "It is 42."
    assert [one.status for one in said if one.type == "tool"] == ["error", "success"]


def test_a_chart_is_a_block_of_the_message() -> None:
    async def scenario() -> None:
        async with AsyncSandbox.create("code-interpreter", ttl_seconds=600) as sandbox:
            (tool,) = langchain_tools(sandbox.tools("run_code"))
            call = {"name": "run_code", "args": {"code": CHART}, "id": "1", "type": "tool_call"}
            text, image = (await tool.ainvoke(call)).content
            assert text["text"].startswith("ok")
            assert image["mime_type"] == "image/png"

    asyncio.run(scenario())
