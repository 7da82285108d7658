"""Carries a call of a tool out. Whatever a model asks for, what comes of it is a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _tool_files, _tool_native, _tool_runs, _tool_search, _tool_state
from ._deadlines import ended_after
from ._effects import Operation
from ._for_model import named
from ._tool_arguments import ArgumentsRefused, fitted, parsed
from ._tool_definitions import ToolDefinition, chosen, sandbox_tools
from ._tool_result import ToolResult, ToolTarget, failed, failed_by
from .errors import DayflyError

Executor = Callable[[ToolTarget, Mapping[str, Any]], Operation[ToolResult]]


def _in_time(executor: Executor) -> Executor:
    """A tool whose requests have no timeout of their own that a model could ask for."""

    def carry_out(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
        return (yield from ended_after(executor(target, arguments), target.seconds_max))

    return carry_out


EXECUTORS: Mapping[str, Executor] = {
    "run_code": _tool_runs.run_code,
    "run_shell": _tool_runs.run_shell,
    "read_file": _in_time(_tool_files.read_file),
    "write_file": _in_time(_tool_files.write_file),
    "edit_file": _in_time(_tool_files.edit_file),
    "list_files": _in_time(_tool_search.list_files),
    "search_files": _tool_search.search_files,
    "fork": _tool_runs.fork_commands,
    "snapshot": _tool_state.snapshot,
    "rollback": _tool_state.rollback,
    "expose_port": _tool_state.expose_port,
}
_NATIVE: Mapping[str, Executor] = {
    _tool_native.BASH: _tool_native.call_bash,
    _tool_native.EDITOR: _in_time(_tool_native.call_editor),
}
# They make something beside the sandbox, and leave it as it is.
_LEAVE_IT = ("fork", "snapshot", "expose_port")


@dataclass(frozen=True)
class Selection:
    """Which tools a model has."""

    definitions: list[ToolDefinition]
    native: list[str]

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Selection:
        """Those of that names; without names all of ours, and none of Anthropic's own."""
        known = sandbox_tools()
        found = chosen(names or tuple(known), (*known, *_NATIVE))
        ours = [known[name] for name in found if name in known]
        return cls(ours, [name for name in found if name in _NATIVE])

    def called(self, name: str) -> str | None:
        """The tool that a model means; ``None`` if it has no such tool."""
        native = _tool_native.native_name(name)
        if native in self.native:
            return native
        return name if any(one.name == name for one in self.definitions) else None

    def changes(self, name: str, arguments: Mapping[str, Any] | str) -> bool:
        """Whether a call may change the sandbox; one that is refused does not."""
        found = self.called(name)
        if found is None:
            return False
        try:
            given = parsed(arguments)
            if found in _NATIVE:
                return not (found == _tool_native.EDITOR and _tool_native.is_view(given))
            definition = sandbox_tools()[found]
            fitted(definition.input, given)
        except ArgumentsRefused:
            return False
        return not definition.read_only and found not in _LEAVE_IT

    def names(self) -> list[str]:
        """The names that a model calls."""
        native = [_tool_native.SHAPES[name]["name"] for name in self.native]
        return [*(one.name for one in self.definitions), *native]

    def anthropic(self) -> list[dict[str, Any]]:
        native = [dict(_tool_native.SHAPES[name]) for name in self.native]
        return [*(one.anthropic() for one in self.definitions), *native]

    def plain(self) -> list[ToolDefinition]:
        """The definitions, for whoever knows nothing of Anthropic's own types."""
        if self.native:
            names = ", ".join(self.native)
            raise ValueError(f"only Anthropic's models have these tools: {names}")
        return self.definitions


def call_tool(
    target: ToolTarget, selection: Selection, name: str, arguments: Mapping[str, Any] | str
) -> Operation[ToolResult]:
    """What a tool gives. What does not fit, and what the server refuses, is a result as well."""
    try:
        return (yield from call_tool_aloud(target, selection, name, arguments))
    except DayflyError as error:
        return failed_by(error)


def call_tool_aloud(
    target: ToolTarget, selection: Selection, name: str, arguments: Mapping[str, Any] | str
) -> Operation[ToolResult]:
    """As ``call_tool``, but an error of the server is raised: the sandbox may be gone."""
    found = selection.called(name)
    if found is None:
        there = ", ".join(selection.names())
        return failed(f"there is no tool {named(name)}; there are: {there}")
    try:
        given = parsed(arguments)
        if found in _NATIVE:
            return (yield from _NATIVE[found](target, given))
        given = fitted(sandbox_tools()[found].input, given)
        return (yield from EXECUTORS[found](target, given))
    except ArgumentsRefused as refused:
        return failed(str(refused), "correct the arguments and call it again")
