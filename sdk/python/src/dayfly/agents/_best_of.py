"""One agent as a search: several runs from the same moment, of which the best is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .._exploring import Exploration
from ._events import AgentResult

S = TypeVar("S")

# Judges a run by how it ended, and by the sandbox that it left; more is better.
Judge = Callable[[AgentResult, S], Any]


@dataclass(frozen=True)
class Trial:
    """One run, how it was judged, or why it has no result.

    One with neither a score nor an error was not begun any more: see ``stop_at``.
    """

    result: AgentResult | None = None
    score: float | None = None
    error: BaseException | None = None


@dataclass(frozen=True)
class BestOf(Generic[S]):
    """``winner`` is the sandbox of the best run; it is the caller's. ``None`` if all failed."""

    winner: S | None
    best: Trial | None
    trials: list[Trial]


def score_of(trial: Trial) -> float:
    """For ``explore``: a trial has its score."""
    return 0.0 if trial.score is None else trial.score


def best_of(found: Exploration[S]) -> BestOf[S]:
    """What an exploration found, in words of agents."""
    trials = [
        one.result if isinstance(one.result, Trial) else Trial(error=one.error)
        for one in found.attempts
    ]
    best = None if found.best is None else found.best.result
    return BestOf(found.winner, best, trials)


def judged(result: AgentResult, points: Any) -> Trial:
    """A run without a judge counts by whether the model came to its end."""
    return Trial(result, float(result.ok) if points is None else float(points))


def checked_count(count: int) -> int:
    if count < 1:
        raise ValueError("best_of takes at least 1 run")
    return count
