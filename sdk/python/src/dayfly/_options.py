"""The values that keyword arguments take, as types: an editor can offer them."""

from __future__ import annotations

from typing import Literal

OnTimeout = Literal["delete", "hibernate"]
"""What happens after ``idle_seconds`` without activity."""

PromiseClass = Literal["reserved", "shared"]
"""How much of its size a sandbox is promised: all of it, or a working set on a host that shares."""

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
