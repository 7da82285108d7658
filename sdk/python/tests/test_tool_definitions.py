"""What the tools are: one file for all clients, and what this package makes of it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import dayfly
from dayfly import AsyncTools, Tools
from dayfly._tool_arguments import KNOWN_WORDS
from dayfly._tool_calls import EXECUTORS, Selection
from dayfly._tool_definitions import agent_tools, sandbox_tools

SHARED = Path(__file__).parents[2] / "tools"
PACKAGE = Path(dayfly.__file__).parent


@pytest.mark.parametrize("name", ["tools.json", "agent.json"])
def test_the_copy_in_the_package_is_the_shared_file(name: str) -> None:
    assert (PACKAGE / name).read_bytes() == (SHARED / name).read_bytes(), (
        f"cp sdk/tools/{name} sdk/python/src/dayfly/{name}"
    )


def test_every_tool_can_be_carried_out() -> None:
    assert list(EXECUTORS) == list(sandbox_tools())
    assert list(agent_tools()) == ["undo"]


def words_of(schema: Any) -> Iterator[str]:
    for word, value in cast("dict[str, Any]", schema).items():
        yield word
        if word == "properties":
            for one in value.values():
                yield from words_of(one)
        elif word == "items":
            yield from words_of(value)


def test_the_schemas_use_only_words_that_arguments_are_held_to() -> None:
    for one in (*sandbox_tools().values(), *agent_tools().values()):
        assert set(words_of(one.input)) <= KNOWN_WORDS


@pytest.mark.parametrize("kind", [Tools, AsyncTools])
@pytest.mark.parametrize("name", list(sandbox_tools()))
def test_a_function_has_the_arguments_of_its_tool(kind: type[Any], name: str) -> None:
    definition = sandbox_tools()[name]
    parameters = dict(inspect.signature(getattr(kind, name)).parameters)
    del parameters["self"]
    assert list(parameters) == list(definition.input["properties"])
    for argument, rule in definition.input["properties"].items():
        is_required = argument in definition.input["required"]
        default = parameters[argument].default
        assert default == (inspect.Parameter.empty if is_required else rule.get("default"))
    said = inspect.getdoc(getattr(kind, name)) or ""
    assert said.startswith(definition.description)


def test_shapes() -> None:
    one = Selection.of(("read_file",)).definitions[0]
    schema = one.input
    assert one.anthropic() == {
        "name": "read_file",
        "description": one.description,
        "input_schema": schema,
    }
    function = {"name": "read_file", "description": one.description, "parameters": schema}
    assert one.openai() == {"type": "function", "function": function}
    assert one.openai_responses() == {"type": "function", **function, "strict": False}
    assert one.mcp()["inputSchema"] == schema
    assert one.mcp()["annotations"]["readOnlyHint"] is True
    json.dumps([tool.mcp() for tool in Selection.of(()).plain()])


def test_anthropics_own_types_are_for_anthropic_alone() -> None:
    selection = Selection.of(("bash", "text_editor"))
    assert selection.anthropic() == [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    ]
    with pytest.raises(ValueError, match="bash, text_editor"):
        selection.plain()


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no tool 'run'; there are: run_code"):
        Selection.of(("run",))
