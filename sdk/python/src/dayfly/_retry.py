"""When a request is sent again, and how long that goes on.

- Nothing was sent: any request may be sent again.
- The answer was lost, or the node could not be reached: only what may be repeated without a second
  effect (reads, deletes, and what carries an id or an idempotency key of its own).
- The server refused before anything happened (too many, no room, template still baking): any
  request, after the pause that the server asks for, within a limit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._effects import Body, Open, Operation, Read, Send, Sleep, ask
from ._wire import Answer, Request
from .errors import (
    AnswerLost,
    AnswerTimeout,
    ApiError,
    NoCapacity,
    ServerUnreachable,
    TemplateBaking,
    TooMany,
    error_of_answer,
)

# After a lost connection. Short: a server that restarts is back within a second or two.
LOST_PAUSES = (0.1, 0.4, 1.0)
REFUSAL_PAUSE_DEFAULT = 1.0
REFUSAL_PAUSE_MIN = 0.1
REFUSAL_PAUSE_MAX = 30.0
CAPACITY_SECONDS = 60.0
TEMPLATE_SECONDS = 1800.0


@dataclass(frozen=True)
class Progress:
    """News for whoever watches a create that has to wait. Nothing has been created yet.

    ``reason`` is ``template_baking`` or ``no_capacity``; ``percent`` is how far a bake is.
    """

    reason: str
    percent: int | None
    message: str
    waited_seconds: float


@dataclass(frozen=True)
class Patience:
    """How long refusals that created nothing are waited out."""

    capacity_seconds: float = CAPACITY_SECONDS
    template_seconds: float = TEMPLATE_SECONDS
    on_progress: Callable[[Progress], Any] | None = None
    # Whether a request is sent again after a lost connection.
    repeats_lost: bool = True

    def limit_for(self, error: ApiError) -> float | None:
        if isinstance(error, TemplateBaking):
            return self.template_seconds
        if isinstance(error, (NoCapacity, TooMany)):
            return self.capacity_seconds
        return None


# For a caller that does the repeating itself.
ONCE = Patience(capacity_seconds=0.0, template_seconds=0.0, repeats_lost=False)


def call(request: Request, patience: Patience | None = None) -> Operation[Answer]:
    """Sends a request, again where that is right, and raises what is not a success."""
    attempts = _Attempts(request, patience or Patience())
    while True:
        try:
            answer: Answer = yield Send(request)
            if answer.status < 300:
                return answer
            raise error_of_answer(answer.status, answer.headers, answer.body)
        except (ServerUnreachable, AnswerLost, ApiError) as error:
            yield from attempts.wait_after(error)


def open_body(request: Request, patience: Patience | None = None) -> Operation[Body]:
    """As :func:`call`, for an answer whose body is read as it comes."""
    attempts = _Attempts(request, patience or Patience())
    while True:
        try:
            body: Body = yield Open(request)
            if body.status < 300:
                return body
            content = yield from _read_error(body)
            raise error_of_answer(body.status, body.headers, content)
        except (ServerUnreachable, AnswerLost, ApiError) as error:
            yield from attempts.wait_after(error)


def _read_error(body: Body) -> Operation[bytes]:
    content = b""
    try:
        while len(content) < 1 << 20:
            piece: bytes = yield Read(body, 10.0)
            if not piece:
                break
            content += piece
    except AnswerLost:
        # The status is known; a body that cannot be read does not change it.
        pass
    finally:
        body.close()
    return content


class _Attempts:
    """Counts what a request has been through."""

    def __init__(self, request: Request, patience: Patience) -> None:
        self._request = request
        self._patience = patience
        self._lost = 0
        self._began = time.monotonic()

    def wait_after(self, error: ServerUnreachable | AnswerLost | ApiError) -> Operation[None]:
        """Waits until the next attempt is due, or raises the error when there is none."""
        if isinstance(error, ApiError):
            limit = self._patience.limit_for(error)
            if limit is not None:
                yield from self._wait_out(error, limit)
                return
        if not self._may_repeat(error) or self._lost >= len(LOST_PAUSES):
            raise error
        pause = LOST_PAUSES[self._lost]
        self._lost += 1
        yield Sleep(pause * random.uniform(0.8, 1.3))

    def _may_repeat(self, error: Exception) -> bool:
        if not self._patience.repeats_lost:
            return False
        if not isinstance(self._request.body, bytes) and not self._request.body.seekable():
            return False
        if isinstance(error, ServerUnreachable):
            return True
        if not self._request.is_repeatable or isinstance(error, AnswerTimeout):
            return False
        if isinstance(error, ApiError):
            # Without a code it is a proxy that speaks, while the server restarts.
            return error.code == "node_unavailable" or (
                not error.code and error.status in (502, 503, 504)
            )
        return True

    def _wait_out(self, error: ApiError, limit: float) -> Operation[None]:
        waited = time.monotonic() - self._began
        asked = REFUSAL_PAUSE_DEFAULT if error.retry_after is None else error.retry_after
        pause = min(max(asked, REFUSAL_PAUSE_MIN), REFUSAL_PAUSE_MAX)
        if waited + pause > limit:
            raise error
        progress = Progress(error.code, error.percent, error.message, waited)
        yield from ask(self._patience.on_progress, progress)
        # Only ever later than the server said: many that wait must not come at once.
        yield Sleep(pause * random.uniform(1.0, 1.1))
