"""Moments of a sandbox before each tool call, so that any of them can be undone."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from .._effects import Operation
from .._living import delete_snapshot, rollback
from .._making import take_snapshot
from .._tool_result import ToolTarget
from ..errors import DayflyError

CHECKPOINTS_MAX = 20


class UndoRefused(ValueError):
    """There is no moment that far back, or a call is carried out just now."""


@dataclass(frozen=True)
class Checkpoint:
    """The moment before one tool call."""

    snapshot_id: str
    call_name: str


class Checkpoints:
    """The moments of one run, the latest last. Of too many the oldest go first.

    ``retain_seconds`` ends them when nobody is left to delete them.
    """

    def __init__(self, most: int, retain_seconds: int | None) -> None:
        self._most = most
        self._retain_seconds = retain_seconds
        self._kept: list[Checkpoint] = []
        self._dropped = 0

    def ids(self) -> list[str]:
        """The snapshots, the latest last."""
        return [one.snapshot_id for one in self._kept]

    def take(self, target: ToolTarget, call_name: str) -> Operation[Checkpoint]:
        """Keeps this moment."""
        info = yield from take_snapshot(target.sandbox, None, self._retain_seconds)
        made = Checkpoint(info.id, call_name)
        self._kept.append(made)
        return made

    def drop_oldest(self) -> Operation[Checkpoint | None]:
        """Deletes the oldest if there are too many, and says which."""
        if len(self._kept) <= self._most:
            return None
        oldest = self._kept.pop(0)
        self._dropped += 1
        yield from _delete(oldest)
        return oldest

    def undo(self, target: ToolTarget, steps: int) -> Operation[list[str]]:
        """Goes back by so many calls, and gives their names, the earliest first."""
        if steps < 1:
            raise UndoRefused("steps must be at least 1")
        if steps > len(self._kept):
            raise UndoRefused(self._why_not(steps))
        undone = self._kept[-steps:]
        yield from rollback(target.sandbox, undone[0].snapshot_id)
        target.contexts.forget()
        del self._kept[-steps:]
        for one in undone:
            yield from _delete(one)
        return [one.call_name for one in undone]

    def clear(self) -> Operation[None]:
        """Deletes all of them."""
        while self._kept:
            yield from _delete(self._kept.pop())

    def _why_not(self, steps: int) -> str:
        text = f"{steps} calls cannot be undone, only {len(self._kept)}"
        if self._dropped:
            text += f"; {self._dropped} earlier checkpoints were dropped, {self._most} are kept"
        return text


def _delete(checkpoint: Checkpoint) -> Operation[None]:
    # Its retention ends it then.
    with contextlib.suppress(DayflyError):
        yield from delete_snapshot(checkpoint.snapshot_id)


def undone_note(names: list[str]) -> str:
    """What a model is to know when somebody else has undone its calls."""
    calls = "tool call was" if len(names) == 1 else f"{len(names)} tool calls were"
    return (
        f"[The last {calls} undone ({', '.join(names)}): files, running programs, memory and the "
        "state of interpreters are as they were before.]"
    )
