"""A conversation in words of no provider: what was asked, what a model said, what tools gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._tool_result import ToolImage


@dataclass(frozen=True)
class ToolCall:
    """A call that a model wants. Arguments that are not JSON stay the text that they are."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Usage:
    """Tokens, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class UserText:
    """What the user, or the program in the user's name, says."""

    text: str


@dataclass(frozen=True)
class Turn:
    """What a model said in one turn; a callable of your own gives one.

    ``is_cut``: it ran into the limit of its output. ``is_refused``: it, or its provider, will not.
    ``raw`` is the turn as ``provider`` wants to see it again.
    """

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    usage: Usage = field(default_factory=Usage)
    is_cut: bool = False
    is_refused: bool = False
    provider: str = ""
    raw: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class CallResult:
    """What came of one call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: list[ToolImage] = field(default_factory=list[ToolImage])


@dataclass(frozen=True)
class Results:
    """What came of the calls of a turn, in their order."""

    results: list[CallResult]


Message = UserText | Turn | Results
