"""Keyword arguments that several calls share, and the values that they take, as types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from .network import RuleLike

OnTimeout = Literal["delete", "hibernate"]
"""What happens after ``idle_seconds`` without activity."""

Status = Literal[
    "creating",
    "running",
    "pausing",
    "paused",
    "resuming",
    "hibernating",
    "hibernated",
    "waking",
    "deleting",
    "deleted",
    "failed",
    "unavailable",
]
"""What a sandbox is doing. A later server may know more."""

RunMode = Literal["shell", "python", "python_context"]
"""What ``Sandbox.run`` takes its text for."""

Language = Literal["python", "bash", "javascript", "py", "python3", "js", "node", "sh", "shell"]
"""A language of contexts, by any of its names."""

LogWhenFull = Literal["drop_oldest", "block"]
"""What happens to output beyond ``log_max_bytes``."""

NetworkMode = Literal["deny", "allowlist", "observe", "public"]
"""What a sandbox may reach."""

StreamName = Literal["stdout", "stderr"]
"""One of the two output streams of a command."""


class ForkOptions(TypedDict, total=False):
    """What children of a fork have of their own. The network may only be narrower."""

    ttl_seconds: int | None
    persistent: bool | None
    metadata: Mapping[str, str] | None
    idle_seconds: int | None
    on_timeout: OnTimeout | None
    network: NetworkMode | Mapping[str, Any] | None
    egress_allowlist: Iterable[RuleLike] | None
    reseed_user_space: bool | None
    all_or_nothing: bool | None
