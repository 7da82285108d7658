"""Tools about the sandbox as a whole: moments that are kept, and ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _living, _making
from ._effects import Operation
from ._for_model import named
from ._tool_result import ToolResult, ToolTarget

LABEL_CHARACTERS_MAX = 100


def _label(name: str | None) -> str | None:
    """What a model calls a snapshot, as a label for people.

    A plain word would be a name, and unique within the project: the second model that takes a
    snapshot called "before" would be refused, and would read the id of somebody else's.
    """
    return f"by a tool: {name[:LABEL_CHARACTERS_MAX]}" if name else None


def snapshot(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    label = _label(arguments["name"])
    made = yield from _making.take_snapshot(target.sandbox, label, target.snapshot_seconds)
    target.snapshots.append(made.id)
    text = f"snapshot {made.id} was taken; rollback goes back to it"
    return ToolResult(text, structured={"snapshot_id": made.id})


def rollback(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    wanted = arguments["snapshot_id"]
    yield from _living.rollback(target.sandbox, wanted)
    target.contexts.forget()
    return ToolResult(
        f"the sandbox is as it was at snapshot {named(wanted)}; what came after is lost",
        structured={"snapshot_id": wanted},
    )


def expose_port(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    port, minutes = arguments["port"], arguments["minutes"]
    yield from _living.wait_for_port(target.sandbox, port, target.seconds(arguments))
    link = yield from _living.create_link(target.sandbox, port, minutes * 60, False)
    text = f"{link.url} leads to port {port} for {minutes} minutes"
    return ToolResult(text, structured={"url": link.url, "path_url": link.path_url})
