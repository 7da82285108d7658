"""``dayfly.adapters.smolagents`` in the smallest ``CodeAgent``."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from smolagents import CodeAgent, OpenAIModel, tool
from smolagents.utils import AgentError

from dayfly import Sandbox
from dayfly.adapters.smolagents import executor
from stage import MODEL, scripted


@pytest.fixture(scope="module")
def sandbox() -> Generator[Sandbox]:
    with Sandbox("code-interpreter", ttl_seconds=900) as sandbox:
        yield sandbox


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return 2 * number


def code(text: str) -> dict[str, Any]:
    return {"content": [f"Thought: I compute.\n<code>\n{text}\n</code>"]}


def test_an_agent_computes_with_a_tool_and_keeps_its_variables(sandbox: Sandbox) -> None:
    turns = [code("half = double(given)\nprint(half)"), code("final_answer({'sum': half + half})")]
    with scripted(*turns) as model:
        chat = OpenAIModel(model_id=MODEL, api_base=f"{model.address}/v1", api_key="key")
        with CodeAgent([double], chat, executor=executor(sandbox), verbosity_level=0) as agent:
            answer = agent.run("Compute.", additional_args={"given": 10})
    assert answer == {"sum": 40}


def test_an_error_is_told_to_the_model(sandbox: Sandbox) -> None:
    turns = [
        code("1 / 0"),
        {"expect": {"user": {"contains": "ZeroDivisionError"}}, **code("final_answer('none')")},
    ]
    with scripted(*turns) as model:
        chat = OpenAIModel(model_id=MODEL, api_base=f"{model.address}/v1", api_key="key")
        agent = CodeAgent([], chat, executor=executor(sandbox), verbosity_level=0)
        assert agent.run("Compute.") == "none"


def test_a_long_answer_comes_back_whole(sandbox: Sandbox) -> None:
    turns = [code("final_answer('x' * 100_000)")]
    with scripted(*turns) as model:
        chat = OpenAIModel(model_id=MODEL, api_base=f"{model.address}/v1", api_key="key")
        agent = CodeAgent([], chat, executor=executor(sandbox), verbosity_level=0)
        assert agent.run("Compute.") == "x" * 100_000


def test_a_step_has_a_timeout_and_values_have_a_text(sandbox: Sandbox) -> None:
    with pytest.raises(AgentError, match="timeout"):
        executor(sandbox, timeout_seconds=2)("import time; time.sleep(60)")
    run = executor(sandbox)
    assert run("[1, 2]").output == "[1, 2]"
    picture = run("import matplotlib.pyplot as plt; plt.plot([1, 4]); plt.show()").output
    assert picture.format == "PNG"
