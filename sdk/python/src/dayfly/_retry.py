"""When a request is sent again, and how long that goes on.

- Nothing was sent: any request may be sent again.
- The answer was lost, or the node could not be reached: only what may be repeated without a second
  effect (reads, deletes, and what carries an id or an idempotency key of its own).
- The server refused before anything happened (too many, no room, template still baking): any
  request, after the pause that the server asks for, within a limit of its own for each reason. What
  makes something also waits for a node that is starting, as it does once after a first bake.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._effects import Body, Know, Open, Operation, Read, Send, Sleep, ask
from ._explaining import explain
from ._facts import ClientFacts
from ._wire import Answer, Request
from .errors import (
    AnswerLost,
    AnswerTimeout,
    ApiError,
    NoCapacity,
    NodeUnavailable,
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
# The first start of a node looks for an accelerator, which takes seconds, on a busy host more.
NODE_SECONDS = 30.0
# Between two lines about one create that waits.
TELL_SECONDS = 15.0


@dataclass(frozen=True)
class Progress:
    """News for whoever watches a create that has to wait. Nothing has been created yet.

    ``reason`` is the code of the refusal: ``template_baking``, ``no_capacity``, ``too_many``,
    ``rate_limited`` or ``node_unavailable``. ``percent`` is how far a bake is.
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
    node_seconds: float | None = None
    on_progress: Callable[[Progress], Any] | None = None
    # Whether the log tells of it: a create may take minutes, and somebody should know.
    is_logged: bool = False
    # Whether a request is sent again after a lost connection.
    repeats_lost: bool = True

    def limit_for(self, error: ApiError, request: Request) -> float | None:
        if isinstance(error, TemplateBaking):
            return self.template_seconds
        if isinstance(error, (NoCapacity, TooMany)):
            return self.capacity_seconds
        if isinstance(error, NodeUnavailable) and "Idempotency-Key" in request.headers:
            # Only what makes something. Others have somebody who waits for a quick answer.
            return NODE_SECONDS if self.node_seconds is None else self.node_seconds
        return None


# For a caller that does the repeating itself.
ONCE = Patience(
    capacity_seconds=0.0, template_seconds=0.0, node_seconds=0.0, repeats_lost=False
)


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
        # The reason of the last refusal, and how long was waited when it began.
        self._reason = ""
        self._reason_began = 0.0
        self._told_at: float | None = None

    def wait_after(self, error: ServerUnreachable | AnswerLost | ApiError) -> Operation[None]:
        """Waits until the next attempt is due, or raises the error when there is none."""
        facts: ClientFacts = yield Know()
        pause = self._pause_after(error, facts)
        if pause is None:
            if isinstance(error, ApiError):
                yield from explain(error, facts)
            raise error
        if isinstance(error, ApiError) and self._is_waited_out(error):
            yield from self._tell(error, facts)
        yield Sleep(pause)

    def _is_waited_out(self, error: ApiError) -> bool:
        return self._patience.limit_for(error, self._request) is not None

    def _pause_after(self, error: Exception, facts: ClientFacts) -> float | None:
        if isinstance(error, ApiError):
            limit = self._patience.limit_for(error, self._request)
            if limit is not None:
                return self._refusal_pause(error, limit)
        if not self._may_repeat(error) or self._lost >= facts.max_retries:
            return None
        pause = LOST_PAUSES[min(self._lost, len(LOST_PAUSES) - 1)]
        self._lost += 1
        return pause * random.uniform(0.8, 1.3)

    def _may_repeat(self, error: Exception) -> bool:
        if not self._patience.repeats_lost:
            return False
        if not isinstance(self._request.body, bytes) and not self._request.body.seekable():
            return False
        if isinstance(error, ServerUnreachable):
            return error.may_pass
        if not self._request.is_repeatable or isinstance(error, AnswerTimeout):
            return False
        if isinstance(error, ApiError):
            # Without a code it is a proxy that speaks, while the server restarts.
            return error.code == "node_unavailable" or (
                not error.code and error.status in (502, 503, 504)
            )
        return True

    def _refusal_pause(self, error: ApiError, limit: float) -> float | None:
        """Each reason has its limit: who has waited for a bake also waits for a node."""
        waited = time.monotonic() - self._began
        if error.code != self._reason:
            self._reason, self._reason_began = error.code, waited
        asked = REFUSAL_PAUSE_DEFAULT if error.retry_after is None else error.retry_after
        pause = min(max(asked, REFUSAL_PAUSE_MIN), REFUSAL_PAUSE_MAX)
        # Taking turns, reasons do not go on for ever.
        longest = max(TEMPLATE_SECONDS, self._patience.template_seconds)
        if waited - self._reason_began + pause > limit or waited + pause > longest:
            return None
        # Only ever later than the server said: many that wait must not come at once.
        return pause * random.uniform(1.0, 1.1)

    def _tell(self, error: ApiError, facts: ClientFacts) -> Operation[None]:
        waited = time.monotonic() - self._began
        if self._patience.is_logged:
            self._log(error, facts, waited)
        progress = Progress(error.code, error.percent, error.message, waited)
        yield from ask(self._patience.on_progress, progress)

    def _log(self, error: ApiError, facts: ClientFacts, waited: float) -> None:
        if self._told_at is not None and waited - self._told_at < TELL_SECONDS:
            return
        self._told_at = waited
        percent = "" if error.percent is None else f" ({error.percent}%)"
        facts.logger.warning("a create waits: %s%s", error.message, percent)
