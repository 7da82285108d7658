"""Operations that end in time, whatever they consist of."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, TypeVar

from ._effects import Effect, Open, Operation, Read, Send, Sleep
from .errors import AnswerTimeout

T = TypeVar("T")


def ended_after(operation: Operation[T], seconds: float | None) -> Operation[T]:
    """Carries an operation out, of which no request, read or pause goes on after so long.

    Only for one that has nothing to clean up: there is no time left for that. It is
    ``AnswerTimeout`` then, and whether the last request was carried out is not known.
    """
    if seconds is None:
        return (yield from operation)
    deadline = time.monotonic() + seconds
    try:
        return (yield from _limited(operation, deadline))
    except AnswerTimeout as error:
        if time.monotonic() < deadline:
            raise
        raise AnswerTimeout(f"this took longer than {seconds:.1f} s") from error


def _limited(operation: Operation[T], deadline: float) -> Operation[T]:
    try:
        effect = next(operation)
        while True:
            try:
                done: Any = yield _in_time(effect, deadline)
            except GeneratorExit:
                operation.close()
                raise
            except BaseException as error:
                effect = operation.throw(error)
            else:
                effect = operation.send(done)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


def _in_time(effect: Effect, deadline: float) -> Effect:
    """An effect that ends in time; other effects than these take none."""
    left = deadline - time.monotonic()
    if isinstance(effect, (Send, Open, Read, Sleep)) and left <= 0:
        raise AnswerTimeout("there is no time left")
    if isinstance(effect, (Send, Open)):
        return replace(effect, request=replace(effect.request, seconds_max=left))
    if isinstance(effect, Read):
        return Read(effect.body, left if effect.timeout is None else min(effect.timeout, left))
    if isinstance(effect, Sleep):
        return Sleep(min(effect.seconds, left))
    return effect
