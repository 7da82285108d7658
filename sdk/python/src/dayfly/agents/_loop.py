"""The loop: a model proposes, the sandbox carries out, the model sees what came of it.

It is written once, as an operation, for blocking code and for asyncio. What tools give goes back
as results of calls, in the form that a provider has for them, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .._effects import Operation, ask
from .._living import get_sandbox
from .._tool_arguments import ArgumentsRefused, fitted, parsed
from .._tool_calls import Selection, call_tool_aloud
from .._tool_definitions import ToolDefinition, agent_tools
from .._tool_result import ToolResult, ToolTarget, failed, failed_by
from ..errors import DayflyError
from ._budget import Budget, Meter, StopReason
from ._checkpoints import Checkpoints, UndoRefused, undone_note
from ._conversation import CallResult, Message, Results, ToolCall, Turn, UserText
from ._events import (
    CallBegan,
    CallEnded,
    CheckpointDropped,
    CheckpointTaken,
    Event,
    TextDelta,
    TurnBegan,
    TurnEnded,
    Undone,
)
from ._models import Model, ModelFailed, ModelRequest
from ._transcript import INTERRUPTED, Transcript

UNDO = "undo"
UNDO_WHEN = (
    "undo may be called in a callback of CallEnded, TurnBegan, TextDelta and TurnEnded, in "
    "before_execution, and after the run"
)
# A sandbox in one of these states does nothing any more.
_OVER = ("failed", "deleting", "deleted")


@dataclass(frozen=True)
class Refusal:
    """What ``before_execution`` gives to refuse a call; the model gets the reason."""

    reason: str


OnEvent = Callable[[Event], Any]
BeforeExecution = Callable[[ToolCall], Any]
Checkpointing = Literal["step"]


@dataclass(frozen=True)
class Rules:
    """How an agent goes about it."""

    model: Model
    selection: Selection
    budget: Budget
    system: str | None
    step_timeout_seconds: float | None
    before_execution: BeforeExecution | None
    checkpoint: Checkpointing | None
    undo_tool: bool

    def extra(self) -> list[ToolDefinition]:
        return [agent_tools()[UNDO]] if self.undo_tool else []


class SandboxLost(Exception):
    """The sandbox is gone; ``__cause__`` says how that showed."""


class Run:
    """One run of an agent in one sandbox."""

    def __init__(
        self,
        rules: Rules,
        target: ToolTarget,
        transcript: Transcript,
        checkpoints: Checkpoints,
        meter: Meter,
        on_event: OnEvent | None,
    ) -> None:
        self.target: ToolTarget = target
        self.transcript: Transcript = transcript
        self.checkpoints: Checkpoints = checkpoints
        self.meter: Meter = meter
        self.error: Exception | None = None
        self._rules = rules
        self._on_event = on_event
        # What the caller undid while calls had no results yet; told behind them.
        self._notes: list[Message] = []
        self._is_going = False
        # The call that is carried out now.
        self._begun: ToolCall | None = None

    def go(self) -> Operation[StopReason]:
        """Goes on until the model is done, a budget is used up, or something is lost."""
        self._is_going = True
        try:
            return (yield from self._go())
        finally:
            self._is_going = False
            self._add_notes()

    def _go(self) -> Operation[StopReason]:
        while True:
            reason = self.meter.next_turn()
            if reason is not None:
                return reason
            try:
                turn = yield from self._turn()
            except ModelFailed as error:
                self.error = error
                is_late = self.meter.next_call() is StopReason.SECONDS
                return StopReason.SECONDS if is_late else StopReason.MODEL_ERROR
            reason = _end_of(turn)
            if reason is not None:
                self._close(turn, reason)
                return reason
            yield from self._carry_out(turn)
            if self.error is not None:
                yield from self._last_word()
                return StopReason.SANDBOX_LOST

    def undo(self, steps: int) -> Operation[int]:
        """Undoes calls for the caller, and has the model know."""
        if self._begun is not None:
            # Its checkpoint would be used up, and the call carried out after that.
            raise UndoRefused(f"{self._begun.name} is being carried out; {UNDO_WHEN}")
        names = yield from self.checkpoints.undo(self.target, steps)
        self._notes.append(UserText(undone_note(names)))
        last = self.transcript.messages[-1]
        if not (self._is_going and isinstance(last, Turn) and last.calls):
            self._add_notes()
        return len(names)

    def _add_notes(self) -> None:
        """Providers want the results of calls right behind them, so notes come after those."""
        if self._notes:
            self.transcript.close_calls()
            self.transcript.messages += self._notes
            self._notes.clear()

    def tell(self, event: Event) -> Operation[None]:
        yield from ask(self._on_event, event)

    def _turn(self) -> Operation[Turn]:
        step = self.meter.step + 1
        yield from self.tell(TurnBegan(step))
        request = ModelRequest(
            self._rules.system,
            self.transcript.messages,
            self._rules.selection,
            self._rules.extra(),
            self.meter.seconds_left,
            lambda text: self.tell(TextDelta(step, text)),
        )
        turn = yield from self._rules.model.turn(request)
        if not self.meter.can_count(turn.usage):
            raise ModelFailed("the model reports no usage, so the budget cannot be kept")
        self.transcript.messages.append(turn)
        self.meter.add(turn.usage)
        yield from self.tell(TurnEnded(step, turn))
        return turn

    def _close(self, turn: Turn, reason: StopReason) -> None:
        """Calls of a turn that is the last have a result all the same: providers want one."""
        if turn.calls:
            text = f"error: this call was not carried out: {reason.value.replace('_', ' ')}"
            results = [CallResult(one.id, one.name, text, True) for one in turn.calls]
            self.transcript.messages.append(Results(results))

    def _carry_out(self, turn: Turn) -> Operation[None]:
        """All calls of a turn, one after the other: they share files and interpreters."""
        results: list[CallResult] = []
        try:
            for call in turn.calls:
                result = yield from self._one(call)
                results.append(
                    CallResult(call.id, call.name, result.text, result.is_error, result.images)
                )
        finally:
            # Also of a run that is cancelled: what is stored of it can be resumed.
            for call in turn.calls[len(results) :]:
                results.append(CallResult(call.id, call.name, INTERRUPTED, True))
            self.transcript.messages.append(Results(results))
            self._add_notes()

    def _last_word(self) -> Operation[None]:
        """Has the model say what it makes of the loss. What it calls then is not carried out."""
        if self.meter.next_turn() is not None:
            return
        try:
            turn = yield from self._turn()
        except ModelFailed:
            # The loss is the better news.
            return
        self._close(turn, StopReason.SANDBOX_LOST)

    def _one(self, call: ToolCall) -> Operation[ToolResult]:
        """What comes of a call, whatever that is."""
        if self.error is None:
            try:
                return (yield from self._begin(call))
            except SandboxLost as error:
                self.error = error
        result = failed(f"the sandbox is gone: {self.error}", "nothing more can be called")
        yield from self.tell(CallEnded(self.meter.step, call, result))
        return result

    def _begin(self, call: ToolCall) -> Operation[ToolResult]:
        step = self.meter.step
        over = self.meter.next_call()
        if over is not None:
            result = failed(f"this call was not carried out: the budget of {over.value} is used up")
            yield from self.tell(CallEnded(step, call, result))
            return result
        refusal = yield from ask(self._rules.before_execution, call)
        if isinstance(refusal, Refusal):
            result = failed(f"this call was refused before it was carried out: {refusal.reason}")
        elif refusal is not None:
            raise TypeError("before_execution gives None, or a Refusal")
        else:
            self._begun = call
            try:
                yield from self.tell(CallBegan(step, call))
                result = yield from self._execute(call)
            finally:
                self._begun = None
        yield from self.tell(CallEnded(step, call, result))
        return result

    def _execute(self, call: ToolCall) -> Operation[ToolResult]:
        if call.name == UNDO and self._rules.undo_tool:
            return (yield from self._undo_for_model(call.arguments))
        try:
            yield from self._keep_moment(call)
        except DayflyError as error:
            yield from self._look(error)
            # Without it the call could not be undone, as the model and the caller expect.
            return failed(f"no checkpoint could be taken, so nothing was done: {error.message}")
        left = [self._rules.step_timeout_seconds, self.meter.seconds_left()]
        self.target.seconds_max = min((one for one in left if one is not None), default=None)
        try:
            return (
                yield from call_tool_aloud(
                    self.target, self._rules.selection, call.name, call.arguments
                )
            )
        except DayflyError as error:
            yield from self._look(error)
            return failed_by(error)

    def _keep_moment(self, call: ToolCall) -> Operation[None]:
        if self._rules.checkpoint is None:
            return
        if not self._rules.selection.changes(call.name, call.arguments):
            return
        made = yield from self.checkpoints.take(self.target, call.name)
        yield from self.tell(CheckpointTaken(self.meter.step, call, made.snapshot_id))
        dropped = yield from self.checkpoints.drop_oldest()
        if dropped is not None:
            yield from self.tell(CheckpointDropped(self.meter.step, dropped.snapshot_id))

    def _undo_for_model(self, arguments: Mapping[str, Any] | str) -> Operation[ToolResult]:
        try:
            steps = fitted(agent_tools()[UNDO].input, parsed(arguments))["steps"]
            names = yield from self.checkpoints.undo(self.target, steps)
        except (ArgumentsRefused, UndoRefused) as refused:
            return failed(str(refused))
        except DayflyError as error:
            yield from self._look(error)
            return failed_by(error)
        yield from self.tell(Undone(self.meter.step, len(names)))
        return ToolResult(
            f"undone, the earliest first: {', '.join(names)}; the sandbox is as it was before",
            structured={"undone": names},
        )

    def _look(self, error: DayflyError) -> Operation[None]:
        """Whether the sandbox is still there, after something failed in it."""
        try:
            info = yield from get_sandbox(self.target.sandbox)
        except DayflyError as gone:
            raise SandboxLost(gone.message) from error
        if info.status in _OVER:
            raise SandboxLost(info.reason or f"the sandbox is {info.status}") from error


def _end_of(turn: Turn) -> StopReason | None:
    """Why a turn is the last, if it is."""
    if turn.is_refused:
        return StopReason.MODEL_REFUSED
    if turn.is_cut:
        return StopReason.OUTPUT_LIMIT
    return None if turn.calls else StopReason.DONE
