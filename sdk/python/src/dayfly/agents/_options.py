"""What an agent is made of, checked before anything is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._handles import SandboxHandle, info_in
from .._tool_calls import Selection
from ._budget import Budget
from ._loop import BeforeExecution, Checkpointing, Rules
from ._models import Model, ModelFunction, model_of
from ._place import AgentSandbox, Given, Scope, made

STEP_TIMEOUT_SECONDS = 600.0


def rules_of(
    model: Model | ModelFunction,
    *,
    tools: Sequence[str] | None,
    budget: Budget | None,
    system: str | None,
    step_timeout_seconds: float | None,
    before_execution: BeforeExecution | None,
    checkpoint: Checkpointing | None,
    undo_tool: bool,
    is_async: bool,
) -> Rules:
    if isinstance(tools, str):
        # Its letters would be taken for names.
        raise TypeError("tools is a list of names")
    if tools is not None and not tools:
        # Without names all of them are meant, which an empty list hardly is.
        raise ValueError("tools has no name; leave it away for all of them")
    if checkpoint not in (None, "step"):
        raise ValueError('checkpoint is "step", or None')
    if undo_tool and checkpoint is None:
        raise ValueError('undo_tool=True needs checkpoint="step"')
    if step_timeout_seconds is not None and step_timeout_seconds <= 0:
        raise ValueError("step_timeout_seconds must be greater than 0")
    found, selection = model_of(model), Selection.of(tuple(tools or ()))
    found.check(selection, is_async=is_async)
    return Rules(
        model=found,
        selection=selection,
        budget=budget or Budget(),
        system=system,
        step_timeout_seconds=step_timeout_seconds,
        before_execution=before_execution,
        checkpoint=checkpoint,
        undo_tool=undo_tool,
    )


def place_of(
    sandbox: SandboxHandle[Any] | None,
    *,
    template: str | None,
    from_snapshot: str | None,
    ttl_seconds: int | None,
    egress_allowlist: Iterable[str] | None,
    scope: Scope | None,
    user: str | None,
) -> AgentSandbox:
    wishes = {
        "template": template,
        "from_snapshot": from_snapshot,
        "ttl_seconds": ttl_seconds,
        "egress_allowlist": egress_allowlist,
        "scope": scope,
        "user": user,
    }
    if sandbox is not None:
        given = [name for name, value in wishes.items() if value is not None]
        if given:
            raise ValueError(f"sandbox= is there already; {', '.join(given)} cannot be changed")
        return AgentSandbox(Given(info_in(sandbox)))
    if isinstance(egress_allowlist, str):
        raise TypeError("egress_allowlist is a list of hosts")
    allowlist = None if egress_allowlist is None else list(egress_allowlist)
    place = made(
        template=template,
        from_snapshot=from_snapshot,
        ttl_seconds=ttl_seconds,
        egress_allowlist=allowlist,
        scope=scope or "task",
        user=user,
    )
    return AgentSandbox(place)
