"""``dayfly.adapters.openai_agents`` in the smallest ``SandboxAgent``, and its sessions."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner
from agents.sandbox import LocalSnapshotSpec, Manifest, SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Shell
from agents.sandbox.errors import ExecTimeoutError, WorkspaceReadNotFoundError
from openai import AsyncOpenAI

from dayfly import NotFound, Sandbox
from dayfly.adapters.openai_agents import sandbox_client
from stage import MODEL, scripted

MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


@pytest.mark.parametrize("wire", list(MODELS))
def test_an_agent_runs_a_command(wire: str) -> None:
    turns = [
        {"content": [{"tool": "exec_command", "arguments": {"cmd": "echo $((6*7)); pwd"}}]},
        {"expect": {"result": {"contains": ["42", "/workspace"]}}, "content": ["It is 42."]},
    ]

    async def scenario(address: str) -> Any:
        client = AsyncOpenAI(base_url=f"{address}/v1", api_key="key")
        agent = SandboxAgent(name="worker", model=MODELS[wire](MODEL, client), capabilities=[Shell()])
        sandbox = SandboxRunConfig(client=sandbox_client("base", ttl_seconds=600))
        config = RunConfig(sandbox=sandbox, tracing_disabled=True)
        return await Runner.run(agent, "Compute six times seven.", run_config=config)

    with scripted(*turns, wire=wire) as model:
        assert asyncio.run(scenario(model.address)).final_output == "It is 42."


def test_a_session_has_files_commands_and_an_end() -> None:
    async def scenario() -> str:
        client = sandbox_client("base", ttl_seconds=600)
        session = await client.create(manifest=Manifest(), options=None)
        async with session:
            await session.write(Path("a/b.bin"), io.BytesIO(b"\x00\xff"))
            assert (await session.read(Path("a/b.bin"))).read() == b"\x00\xff"
            assert [one.path for one in await session.ls("a")] == ["/workspace/a/b.bin"]
            assert (await session.exec("whoami", user="root")).stdout == b"root\n"
            assert (await session.exec("exit 3")).exit_code == 3
            with pytest.raises(WorkspaceReadNotFoundError):
                await session.read(Path("nothing"))
            with pytest.raises(ExecTimeoutError):
                await session.exec("sleep 30", timeout=1)
            assert await session.running()
        assert not await session.running()
        await client.delete(session)
        return session.state.sandbox_id

    with pytest.raises(NotFound):
        Sandbox.connect(asyncio.run(scenario()))


def test_a_session_is_resumed_with_its_sandbox_or_from_its_snapshot(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = sandbox_client("base", ttl_seconds=600)
        kept = LocalSnapshotSpec(base_path=tmp_path)
        first = await client.create(manifest=Manifest(), snapshot=kept, options=None)
        await first.start()
        await first.write(Path("kept.txt"), io.BytesIO(b"kept"))
        state = client.deserialize_session_state(client.serialize_session_state(first.state))

        again = await client.resume(state)
        await again.start()
        assert again.state.sandbox_id == first.state.sandbox_id
        assert (await again.read(Path("kept.txt"))).read() == b"kept"
        await again.aclose()

        state = client.deserialize_session_state(client.serialize_session_state(again.state))
        async with await client.resume(state) as third:
            assert third.state.sandbox_id != first.state.sandbox_id
            assert (await third.read(Path("kept.txt"))).read() == b"kept"

    asyncio.run(scenario())
