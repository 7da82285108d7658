"""How much a run may take, and why it ended."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass

from ._conversation import Usage

STEPS_DEFAULT = 50


class StopReason(enum.StrEnum):
    """Why a run ended. A budget is named by itself."""

    DONE = "done"
    """The model had nothing more to call."""
    STEPS = "steps"
    TOKENS = "tokens"
    SECONDS = "seconds"
    COST = "cost"
    OUTPUT_LIMIT = "output_limit"
    """A turn was longer than the model may write."""
    MODEL_REFUSED = "model_refused"
    MODEL_ERROR = "model_error"
    """The provider failed, after the retries of its client."""
    SANDBOX_LOST = "sandbox_lost"
    """The sandbox is gone, or the server cannot be reached."""
    CANCELLED = "cancelled"
    """An exception ended it; only a transcript has this."""


@dataclass(frozen=True)
class Budget:
    """What one run may take; ``None`` is no limit.

    - ``steps``: turns of the model, each with its tool calls.
    - ``tokens``: of input and output together, as the provider counts them. One that reports none
      ends the run, as a budget that cannot be kept is none.
    - ``seconds``: of wall time. Tool calls are ended by it, and a model is not waited for longer.
    - ``cost``: in whatever ``cost_of(usage)`` counts.

    A turn is never cut off: the one that goes over a budget is the last, and its calls are not
    carried out.
    """

    steps: int | None = STEPS_DEFAULT
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    cost_of: Callable[[Usage], float] | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "tokens", "seconds", "cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be greater than 0")
        if self.cost is not None and self.cost_of is None:
            raise ValueError("a budget of cost needs cost_of, which says what a turn costs")


@dataclass(frozen=True)
class Spent:
    """What a run took."""

    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0


class Meter:
    """Counts what a run takes against its budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._begin = time.monotonic()
        self._steps = 0
        self._usage = Usage()
        self._cost = 0.0

    def add(self, usage: Usage) -> None:
        """Takes a turn into account."""
        self._steps += 1
        self._usage = Usage(
            self._usage.input_tokens + usage.input_tokens,
            self._usage.output_tokens + usage.output_tokens,
        )
        if self._budget.cost_of is not None:
            cost = self._budget.cost_of(usage)
            # A sum with NaN in it is never above a budget.
            if not cost >= 0:
                raise ValueError(f"cost_of must give a number from 0, and gave {cost}")
            self._cost += cost

    @property
    def step(self) -> int:
        return self._steps

    def can_count(self, usage: Usage) -> bool:
        """Whether a turn says what the budget is about."""
        is_needed = self._budget.tokens is not None or self._budget.cost is not None
        return usage.total > 0 or not is_needed

    def next_turn(self) -> StopReason | None:
        """Which budget does not allow another turn."""
        if self._budget.steps is not None and self._steps >= self._budget.steps:
            return StopReason.STEPS
        return self.next_call()

    def next_call(self) -> StopReason | None:
        """Which budget does not allow another call."""
        budget = self._budget
        if budget.tokens is not None and self._usage.total >= budget.tokens:
            return StopReason.TOKENS
        left = self.seconds_left()
        if left is not None and left <= 0:
            return StopReason.SECONDS
        if budget.cost is not None and self._cost >= budget.cost:
            return StopReason.COST
        return None

    def seconds_left(self) -> float | None:
        if self._budget.seconds is None:
            return None
        return self._budget.seconds - (time.monotonic() - self._begin)

    def spent(self) -> Spent:
        return Spent(
            self._steps,
            self._usage.input_tokens,
            self._usage.output_tokens,
            time.monotonic() - self._begin,
            self._cost,
        )
