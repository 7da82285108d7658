"""Anthropic's own tool types, ``bash`` and the text editor: models know them without a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._effects import Operation
from ._files import stat
from ._tool_arguments import ArgumentsRefused, fitted
from ._tool_files import edit_file, insert_text, read_file, write_file
from ._tool_result import ToolResult, ToolTarget
from ._tool_runs import run_bash
from ._tool_search import list_files

BASH = "bash"
EDITOR = "text_editor"
# Under which name a model calls it.
EDITOR_CALL = "str_replace_based_edit_tool"
SHAPES: Mapping[str, dict[str, Any]] = {
    BASH: {"type": "bash_20250124", "name": BASH},
    EDITOR: {"type": "text_editor_20250728", "name": EDITOR_CALL},
}
VIEW_LINES = 2000
VIEW_ENTRIES = 400
_TEXT: dict[str, Any] = {"type": "string"}
_BASH_INPUT: dict[str, Any] = {
    "properties": {"command": _TEXT, "restart": {"type": "boolean", "default": False}},
    "required": [],
}
_RANGE: dict[str, Any] = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
}
_EDITOR_INPUTS: Mapping[str, dict[str, Any]] = {
    "view": {"properties": {"path": _TEXT, "view_range": _RANGE}, "required": ["path"]},
    "create": {
        "properties": {"path": _TEXT, "file_text": _TEXT},
        "required": ["path", "file_text"],
    },
    "str_replace": {
        "properties": {
            "path": _TEXT,
            "old_str": {"type": "string", "minLength": 1},
            "new_str": {"type": "string", "default": ""},
        },
        "required": ["path", "old_str"],
    },
    "insert": {
        "properties": {
            "path": _TEXT,
            "insert_line": {"type": "integer", "minimum": 0},
            "insert_text": _TEXT,
        },
        "required": ["path", "insert_line", "insert_text"],
    },
}


def native_name(called: str) -> str | None:
    """Which of them a model means, by the name that it calls."""
    return {BASH: BASH, EDITOR_CALL: EDITOR}.get(called)


def is_view(arguments: Mapping[str, Any]) -> bool:
    """Whether a call of the editor changes nothing."""
    return arguments.get("command") == "view"


def call_bash(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    given = fitted(_BASH_INPUT, arguments)
    if given["command"] is None and not given["restart"]:
        raise ArgumentsRefused("command is missing")
    return (yield from run_bash(target, given))


def call_editor(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    given = dict(arguments)
    command = given.pop("command", None)
    if not isinstance(command, str) or command not in _EDITOR_INPUTS:
        raise ArgumentsRefused(f"command must be one of {', '.join(_EDITOR_INPUTS)}")
    if command == "insert" and "new_str" in given:
        # As earlier versions of the tool had it.
        given.setdefault("insert_text", given.pop("new_str"))
    given = fitted(_EDITOR_INPUTS[command], given)
    path = given["path"]
    if command == "view":
        return (yield from _view(target, path, given["view_range"]))
    if command == "create":
        return (yield from write_file(target, {"path": path, "content": given["file_text"]}))
    if command == "insert":
        line, text = given["insert_line"], given["insert_text"]
        return (yield from insert_text(target, path, line, text))
    edit = {
        "path": path,
        "old_text": given["old_str"],
        "new_text": given["new_str"],
        "replace_all": False,
    }
    return (yield from edit_file(target, edit))


def _view(target: ToolTarget, path: str, span: list[int] | None) -> Operation[ToolResult]:
    first, most = 1, VIEW_LINES
    if span is not None:
        first, last = span
        if first < 1 or (last != -1 and last < first):
            raise ArgumentsRefused("view_range is the first and the last line, counted from 1")
        most = VIEW_LINES if last == -1 else last - first + 1
    elif (yield from stat(target.sandbox, path, None)).is_dir:
        listing = {"path": path, "depth": 2, "max_entries": VIEW_ENTRIES}
        return (yield from list_files(target, listing))
    return (yield from read_file(target, {"path": path, "first_line": first, "max_lines": most}))
