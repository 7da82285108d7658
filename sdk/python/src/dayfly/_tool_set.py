"""Methods that every set of tools has, whatever world it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from ._tool_calls import Selection
from ._tool_definitions import sandbox_tools
from ._tool_result import ToolTarget

P = ParamSpec("P")
R = TypeVar("R")
SessionT = TypeVar("SessionT")

CodeLanguage = Literal["python", "javascript"]


def described(function: Callable[P, R]) -> Callable[P, R]:
    """Gives a function the description that a model has of the tool, with its arguments.

    Frameworks make their schema of the signature and take the words from here.
    """
    definition = sandbox_tools()[function.__name__]
    lines = [definition.description, "", "Args:"]
    for name, rule in definition.input["properties"].items():
        lines.append(f"    {name}: {rule['description']}")
    function.__doc__ = "\n".join(lines)
    return function


class ToolSet(Generic[SessionT]):
    """Tools that are bound to a sandbox, and their shapes for those who offer them to a model."""

    def __init__(self, session: SessionT, target: ToolTarget, names: tuple[str, ...]) -> None:
        self._session = session
        self._target = target
        self._selection = Selection.of(names)

    @property
    def names(self) -> list[str]:
        """The names that a model calls."""
        return self._selection.names()

    def anthropic(self) -> list[dict[str, Any]]:
        """``tools`` of a request to Anthropic's Messages API."""
        return self._selection.anthropic()

    def openai(self) -> list[dict[str, Any]]:
        """``tools`` of a request to OpenAI's Chat Completions API, and those that are like it."""
        return [one.openai() for one in self._selection.plain()]

    def openai_responses(self) -> list[dict[str, Any]]:
        """``tools`` of a request to OpenAI's Responses API."""
        return [one.openai_responses() for one in self._selection.plain()]

    def mcp(self) -> list[dict[str, Any]]:
        """``tools`` of a response to MCP's ``tools/list``."""
        return [one.mcp() for one in self._selection.plain()]

    def _functions(self) -> list[Callable[..., Any]]:
        return [getattr(self, one.name) for one in self._selection.definitions]

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' '.join(self.names)}>"


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of the arguments of a function."""
    return {name: value for name, value in arguments.items() if value is not None}
