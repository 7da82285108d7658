"""Trying several things from the same moment and keeping the best."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ._commands import Command, exec_body, run_command
from ._effects import Operation, Together, ask
from ._living import delete_sandboxes, promote
from ._making import fork, fork_options
from .errors import DayflyError
from .models import ExecResult, SandboxInfo

S = TypeVar("S")

# Judges what a candidate gave: the result of a command, or what a function returned.
Score = Callable[[Any], Any]


@dataclass(frozen=True)
class Attempt:
    """One candidate: what it gave and how it was judged.

    ``candidate`` is the command or the function, ``result`` what it gave. ``error`` says why it
    gave nothing. One with neither a score nor an error was not begun any more: see ``stop_at``.
    """

    candidate: Any
    result: Any = None
    score: float | None = None
    error: BaseException | None = None

    @property
    def command(self) -> Command | None:
        """The candidate, when it is a command."""
        return None if callable(self.candidate) else self.candidate


@dataclass(frozen=True)
class Exploration(Generic[S]):
    """``winner`` is the sandbox of the best attempt, or ``None`` if every one failed."""

    winner: S | None
    best: Attempt | None
    attempts: list[Attempt]


def default_score(result: Any) -> float:
    """Success counts, nothing else does; of several the first is kept.

    A function that gives a number, or whether it succeeded, has judged itself.
    """
    if isinstance(result, ExecResult):
        return 1.0 if result.exit_code == 0 else 0.0
    if isinstance(result, (int, float)):
        return float(result)
    return 1.0


@dataclass(frozen=True)
class ExploreWish(Generic[S]):
    """What is to be tried, and how."""

    candidates: Sequence[Any]
    score: Score | None
    timeout_seconds: float | None
    at_once: int
    ttl_seconds: int | None
    stop_at: float | None
    handle: Callable[[SandboxInfo], S]

    def __post_init__(self) -> None:
        if not self.candidates:
            raise ValueError("there is nothing to explore")
        if isinstance(self.candidates, str):
            # Its letters would be taken for commands.
            raise TypeError("candidates is a list of commands or functions")
        if self.at_once < 1:
            raise ValueError("max_parallel is at least 1")


def explore(sandbox: SandboxInfo, wish: ExploreWish[Any]) -> Operation[Exploration[SandboxInfo]]:
    options = fork_options(ttl_seconds=wish.ttl_seconds)
    forked = yield from fork(sandbox.id, len(wish.candidates), options, is_tree=True)
    children = forked.children
    try:
        attempts = yield from _Trial(wish, children).run()
        best = _best(attempts)
        if best is None:
            yield from delete_sandboxes([child.id for child in children])
            return Exploration(None, None, attempts)
        # One call that deletes the siblings and nobody else.
        yield from promote(children[best].id, True, None)
    except BaseException as error:
        if not isinstance(error, GeneratorExit):
            yield from delete_sandboxes([child.id for child in children])
        raise
    return Exploration(children[best], attempts[best], attempts)


class _Trial:
    """The attempts of one exploration, some of them at once."""

    def __init__(self, wish: ExploreWish[Any], children: list[SandboxInfo]) -> None:
        self._wish = wish
        self._children = children
        self._is_enough = False

    def run(self) -> Operation[list[Attempt]]:
        pairs = zip(self._children, self._wish.candidates, strict=True)
        tries: list[Generator[Any, Any, Attempt]] = [self._one(*pair) for pair in pairs]
        outcomes: list[Attempt | BaseException] = yield Together(tries, self._wish.at_once)
        attempts: list[Attempt] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            attempts.append(outcome)
        return attempts

    def _one(self, child: SandboxInfo, candidate: Any) -> Operation[Attempt]:
        if self._is_enough:
            return Attempt(candidate)
        try:
            result = yield from self._carry_out(child, candidate)
        except DayflyError as error:
            return Attempt(candidate, error=error)
        except Exception as error:
            # A function of the caller's failed as a test may: that is a result of the trial.
            if not callable(candidate):
                raise
            return Attempt(candidate, error=error)
        points = float((yield from ask(self._wish.score or default_score, result)))
        stop_at = self._wish.stop_at
        if stop_at is not None and points >= stop_at:
            self._is_enough = True
        return Attempt(candidate, result, points)

    def _carry_out(self, child: SandboxInfo, candidate: Any) -> Operation[Any]:
        if callable(candidate):
            return (yield from ask(candidate, self._wish.handle(child)))
        body = exec_body(candidate, timeout_seconds=self._wish.timeout_seconds)
        return (yield from run_command(child.id, body, sandbox_memory_mb=child.memory_mb))


def _best(attempts: list[Attempt]) -> int | None:
    judged = [(one.score, -index) for index, one in enumerate(attempts) if one.score is not None]
    return -max(judged)[1] if judged else None
