"""What the tools are: names, descriptions and schemas, as ``sdk/tools`` has them for all clients.

The package carries a copy of those files; a test holds it to them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, cast

FORMAT = 1


@dataclass(frozen=True)
class ToolDefinition:
    """One tool as a model sees it. ``read_only`` tools change nothing in the sandbox."""

    name: str
    title: str
    description: str
    read_only: bool
    destructive: bool
    idempotent: bool
    input: Mapping[str, Any]

    def anthropic(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.input),
        }

    def openai(self) -> dict[str, Any]:
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.input),
        }
        return {"type": "function", "function": function}

    def openai_responses(self) -> dict[str, Any]:
        # Strict schemas have no optional fields; these have.
        return {"type": "function", **self.openai()["function"], "strict": False}

    def mcp(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": dict(self.input),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
            },
        }


def _load(name: str) -> dict[str, ToolDefinition]:
    text = resources.files("dayfly").joinpath(name).read_text(encoding="utf-8")
    data = cast("dict[str, Any]", json.loads(text))
    if data["version"] != FORMAT:
        raise ValueError(f"{name} has version {data['version']}, not {FORMAT}")
    return {one["name"]: ToolDefinition(**one) for one in data["tools"]}


@functools.cache
def sandbox_tools() -> Mapping[str, ToolDefinition]:
    """The tools of a sandbox, by name."""
    return _load("tools.json")


@functools.cache
def agent_tools() -> Mapping[str, ToolDefinition]:
    """Tools that need a run of an agent, by name."""
    return _load("agent.json")


def chosen(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names that were asked for, each once; all that are known if none was."""
    known = list(known)
    found: list[str] = []
    for name in names:
        if name not in known:
            raise ValueError(f"there is no tool {name!r}; there are: {', '.join(known)}")
        if name not in found:
            found.append(name)
    return found
