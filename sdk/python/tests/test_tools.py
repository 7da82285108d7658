"""Methods of a sandbox, and those of ``sandbox.tools()``, as tools of agent frameworks.

The packages are the real ones.

They are many megabytes, so they have an environment of their own, and are skipped elsewhere::

    python3 -m venv tools
    tools/bin/pip install pytest openai-agents langchain-core pydantic-ai-slim mcp
    tools/bin/pytest tests/test_tools.py
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply
from settled import settled

from dayfly._tool_definitions import sandbox_tools

INSTALL = "pip install openai-agents langchain-core pydantic-ai-slim mcp"
SHOWN = {
    "exec": {"cmd", "timeout_seconds", "cwd"},
    "run_code": {"code", "language", "timeout_seconds"},
}
GIVEN: dict[str, dict[str, Any]] = {
    "exec": {"cmd": "echo hello"},
    "run_code": {"code": "print('hello')"},
}

# For what a tool must be given.
EXAMPLES: dict[str, Any] = {
    "code": "print('hello')",
    "command": "echo hello",
    "path": "/workspace/a",
    "content": "a",
    "old_text": "a",
    "new_text": "b",
    "pattern": "a",
    "commands": ["ls"],
    "snapshot_id": "snap-1",
    "port": 8000,
}


def package(name: str) -> Any:
    if os.environ.get("DAYFLY_REQUIRE_TOOLS") == "1":
        return __import__(name, fromlist=["_"])
    return pytest.importorskip(name, reason=f"needs the real package: {INSTALL}")


async def in_openai_agents(method: Any, name: str) -> tuple[set[str], str]:
    agents = package("agents")
    context = package("agents.tool_context").ToolContext
    tool = agents.function_tool(method)
    text = json.dumps(GIVEN[name])
    given = context(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
    said = await tool.on_invoke_tool(given, text)
    return set(tool.params_json_schema["properties"]), str(said)


async def in_langchain(method: Any, name: str) -> tuple[set[str], str]:
    tool = package("langchain_core.tools").tool(method)
    return set(tool.args), str(await tool.ainvoke(GIVEN[name]))


async def in_pydantic_ai(method: Any, name: str) -> tuple[set[str], str]:
    pydantic_ai = package("pydantic_ai")
    model = package("pydantic_ai.models.test").TestModel()
    tool = pydantic_ai.Tool(method)
    # The model of its tests calls every tool once and tells what they said.
    said = await pydantic_ai.Agent(model, tools=[tool]).run("go")
    return set(tool.function_schema.json_schema["properties"]), str(said.output)


async def in_mcp(method: Any, name: str) -> tuple[set[str], str]:
    server = package("mcp.server.mcpserver").MCPServer("dayfly")
    server.add_tool(method)
    (tool,) = await server.list_tools()
    said = await server.call_tool(name, GIVEN[name])
    return set(tool.input_schema["properties"]), str(said)


Framework = Callable[[Any, str], Awaitable[tuple[set[str], str]]]
FRAMEWORKS: list[Framework] = [in_openai_agents, in_langchain, in_pydantic_ai, in_mcp]


def routes(fake: FakeDaemon) -> None:
    one = f"/v1/sandboxes/{SANDBOX}"
    result: dict[str, Any] = {"stdout": "hello\n", "stderr": "", "exit_code": 0, "results": []}
    context = {"id": "default", "language": "python", "state": "idle"}
    fake.on("POST", f"{one}/exec", Reply(200, result))
    fake.on("POST", f"{one}/repl/sessions", Reply(201, context))
    fake.on("POST", f"{one}/repl/sessions/default/run", Reply(200, result))


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[one.__name__ for one in FRAMEWORKS])
def test_every_one_of_the_tools_is_a_tool(
    fake: FakeDaemon, create: Create, framework: Framework
) -> None:
    routes(fake)

    async def scenario() -> None:
        sandbox = await settled(create())
        for function in sandbox.tools():
            name = function.__name__
            wanted = sandbox_tools()[name].input
            GIVEN[name] = {one: EXAMPLES[one] for one in wanted["required"]}
            shown, _ = await framework(function, name)
            assert shown == set(wanted["properties"]), name
        _, said = await framework(sandbox.tools().run_shell, "run_shell")
        assert "exit code 0" in said

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["exec", "run_code"])
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[one.__name__ for one in FRAMEWORKS])
def test_a_method_is_a_tool(
    fake: FakeDaemon, create: Create, framework: Framework, name: str
) -> None:
    routes(fake)

    async def scenario() -> tuple[set[str], str]:
        sandbox = await settled(create())
        return await framework(getattr(sandbox, name), name)

    shown, said = asyncio.run(scenario())
    assert shown == SHOWN[name], "a model sees what is not for it"
    assert "hello" in said
