"""What a run tells while it goes on, and what it gives at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._tool_result import ToolResult
from ._budget import Spent, StopReason
from ._conversation import ToolCall, Turn
from ._transcript import Transcript


@dataclass(frozen=True)
class AgentResult:
    """How a run ended.

    ``text`` is the last that the model said, ``error`` why it failed. ``checkpoints`` are the ids
    of the snapshots that were kept, the latest last.
    """

    text: str
    reason: StopReason
    spent: Spent
    transcript: Transcript
    sandbox_id: str
    error: Exception | None = None
    checkpoints: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        return self.reason is StopReason.DONE


@dataclass(frozen=True)
class TurnBegan:
    """The model is asked."""

    step: int


@dataclass(frozen=True)
class TextDelta:
    """A piece of the model's text as it comes, from a model that streams."""

    step: int
    text: str


@dataclass(frozen=True)
class TurnEnded:
    """The model has said what it wants."""

    step: int
    turn: Turn


@dataclass(frozen=True)
class CallBegan:
    """A tool call is carried out."""

    step: int
    call: ToolCall


@dataclass(frozen=True)
class CallEnded:
    """What came of a tool call, also of one that was refused or not begun."""

    step: int
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True)
class CheckpointTaken:
    """A snapshot was taken before a call."""

    step: int
    call: ToolCall
    snapshot_id: str


@dataclass(frozen=True)
class CheckpointDropped:
    """The oldest checkpoint was deleted: there are as many as may be. What is before cannot be
    undone any more."""

    step: int
    snapshot_id: str


@dataclass(frozen=True)
class Undone:
    """So many tool calls were undone."""

    step: int
    calls: int


@dataclass(frozen=True)
class RunEnded:
    """The last event."""

    result: AgentResult


Event = (
    TurnBegan
    | TextDelta
    | TurnEnded
    | CallBegan
    | CallEnded
    | CheckpointTaken
    | CheckpointDropped
    | Undone
    | RunEnded
)
