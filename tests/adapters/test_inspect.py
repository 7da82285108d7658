"""``dayfly.adapters.inspect`` by Inspect's own self-checks, and in an evaluation."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxUnavailableError
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from dayfly import AsyncSandbox
from dayfly.adapters.inspect import spec

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def shared_env(anyio_backend: str) -> AsyncGenerator[Any]:
    """As Inspect makes it for a sample: found by its name, through the entry point."""
    kind: Any = registry_find_sandboxenv("dayfly")
    environments = await kind.sample_init("self-check", None, {})
    yield environments["default"]
    await kind.sample_cleanup("self-check", None, environments, False)


@pytest.fixture
async def sandbox_env(shared_env: Any) -> Any:
    return shared_env


async def test_an_evaluation_has_a_sandbox_for_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    async def count(_: object, text: str) -> int:
        """In place of a table of tokens, which would be fetched."""
        return len(text) // 4

    monkeypatch.setattr("inspect_ai.model.ModelAPI.count_text_tokens", count)
    call = ModelOutput.for_tool_call("mockllm/model", "bash", {"command": "cat question.txt; hostname"})
    last = ModelOutput.from_content("mockllm/model", "It is 42.")
    samples = [Sample(input="?", target="42", files={"question.txt": f"six times {n}\n"}) for n in (6, 7)]
    task = Task(
        dataset=samples,
        solver=[use_tools(bash(timeout=60)), generate()],
        scorer=includes(),
        sandbox=spec("base", ttl_seconds=600),
    )
    model = get_model("mockllm/model", custom_outputs=[call, last] * 2)
    (log,) = await eval_async(task, model=model, log_format="json", max_samples=1)
    assert log.status == "success", log.error
    assert log.samples is not None
    said = [one.text for sample in log.samples for one in sample.messages if one.role == "tool"]
    assert all(text.startswith("six times") for text in said)
    assert len({text.split()[-1] for text in said}) == 2, "each sample has a host of its own"


async def test_the_connection_names_the_sandbox(sandbox_env: Any) -> None:
    connection = await sandbox_env.connection()
    assert connection.command.startswith("dayfly shell ")


async def test_cleanup_deletes_what_evaluations_left_and_nothing_else(sandbox_env: Any) -> None:
    # The last test: it deletes the sandbox of all others, too.
    kind: Any = type(sandbox_env)
    async with AsyncSandbox.create("base", ttl_seconds=600) as other:
        left = await kind.sample_init("left", "base", {})
        await kind.cli_cleanup(None)
        with pytest.raises(SandboxUnavailableError):
            await left["default"].exec(["true"])
        assert (await other.info()).status == "running"
