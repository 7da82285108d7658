"""Trying several commands from the same moment and keeping the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ._commands import Command, exec_body, run_command
from ._effects import Operation, Together, ask
from ._living import delete_sandbox, promote
from ._making import fork, fork_options
from .errors import DayflyError
from .models import ExecResult, SandboxInfo

S = TypeVar("S")

Score = Callable[[ExecResult], Any]


@dataclass(frozen=True)
class Attempt:
    """One candidate: what it gave and how it was judged. ``error`` when it gave nothing."""

    command: Command
    result: ExecResult | None
    score: float | None
    error: DayflyError | None = None


@dataclass(frozen=True)
class Exploration(Generic[S]):
    """``winner`` is the sandbox of the best attempt, or ``None`` if every one failed."""

    winner: S | None
    best: Attempt | None
    attempts: list[Attempt]


def default_score(result: ExecResult) -> float:
    """Success counts, nothing else does; of several the first is kept."""
    return 1.0 if result.exit_code == 0 else 0.0


def explore(
    sandbox: str,
    candidates: Sequence[Command],
    score: Score | None,
    timeout_seconds: float | None,
    at_once: int,
    ttl_seconds: int | None,
) -> Operation[Exploration[SandboxInfo]]:
    if not candidates:
        raise ValueError("there is nothing to explore")
    options = fork_options(ttl_seconds=ttl_seconds, all_or_nothing=True)
    children = yield from fork(sandbox, len(candidates), options, is_tree=True)
    try:
        attempts = yield from _try_all(children, candidates, score, timeout_seconds, at_once)
        best = _best(attempts)
        if best is None:
            yield from _delete_all(children)
            return Exploration(None, None, attempts)
        # One call that deletes the siblings and nobody else.
        yield from promote(children[best].id, True, None)
    except BaseException as error:
        if not isinstance(error, GeneratorExit):
            yield from _delete_all(children)
        raise
    return Exploration(children[best], attempts[best], attempts)


def _try_all(
    children: list[SandboxInfo],
    candidates: Sequence[Command],
    score: Score | None,
    timeout_seconds: float | None,
    at_once: int,
) -> Operation[list[Attempt]]:
    runs = [
        run_command(child.id, exec_body(candidate, timeout_seconds=timeout_seconds))
        for child, candidate in zip(children, candidates, strict=True)
    ]
    outcomes: list[ExecResult | BaseException] = yield Together(runs, at_once)
    attempts: list[Attempt] = []
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        if isinstance(outcome, DayflyError):
            attempts.append(Attempt(candidate, None, None, outcome))
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            points = float((yield from ask(score or default_score, outcome)))
            attempts.append(Attempt(candidate, outcome, points))
    return attempts


def _best(attempts: list[Attempt]) -> int | None:
    judged = [(one.score, -index) for index, one in enumerate(attempts) if one.score is not None]
    return -max(judged)[1] if judged else None


def _delete_all(children: list[SandboxInfo]) -> Operation[None]:
    for child in children:
        try:
            yield from delete_sandbox(child.id)
        except DayflyError:
            # Its TTL ends it; the others must not wait for that.
            continue
