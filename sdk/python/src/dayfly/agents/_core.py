"""What both kinds of agent are: rules, a sandbox, and one run after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .._effects import Ask, Operation, ask
from .._living import delete_snapshot
from .._pulling import Sign
from .._tool_result import ToolTarget
from ..errors import DayflyError
from ..models import SandboxInfo
from ._budget import Meter, StopReason
from ._checkpoints import Checkpoints
from ._conversation import Turn, UserText
from ._events import AgentResult, RunEnded
from ._loop import OnEvent, Rules, Run
from ._place import AgentSandbox
from ._transcript import Transcript

SessionT = TypeVar("SessionT")

# How long snapshots of a sandbox stay that has no TTL, when nobody deletes them.
RETAIN_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Keeping:
    """What becomes of checkpoints: how many there are, and whether they outlive the run."""

    most: int
    is_kept: bool

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError("max_checkpoints is at least 1")


@dataclass(frozen=True)
class Task:
    """What a run is to do, and the conversation that it goes on with."""

    text: str | None
    transcript: Transcript | None

    def begun(self) -> Transcript:
        """The conversation with the task in it."""
        found = Transcript() if self.transcript is None else self.transcript.copy()
        found.stop = None
        found.close_calls()
        if self.text:
            found.messages.append(UserText(self.text))
        if not found.messages:
            raise ValueError("there is no task: give a text, or a transcript to go on with")
        return found


class AgentCore(Generic[SessionT]):
    """An agent without a world: everything but waiting."""

    def __init__(
        self, session: SessionT, rules: Rules, place: AgentSandbox, keeping: Keeping
    ) -> None:
        self._session = session
        self._rules = rules
        self._place = place
        self._keeping = keeping
        self._run: Run | None = None

    @property
    def transcript(self) -> Transcript:
        """That of the run that goes on, or of the last one, also when it was cancelled."""
        return Transcript() if self._run is None else self._run.transcript

    @property
    def sandbox_id(self) -> str | None:
        """The sandbox of the run that goes on, or of the last one."""
        return None if self._run is None else self._run.target.sandbox

    def _conduct(self, task: Task, on_event: OnEvent | None) -> Operation[AgentResult]:
        """A whole run: a sandbox, the loop, and the end of the sandbox, whatever happens."""
        begun, meter = task.begun(), Meter(self._rules.budget)
        info = yield from self._place.enter()
        try:
            result = yield from self._run_in(info, begun, meter, on_event)
        except GeneratorExit:
            raise
        except BaseException:
            yield from self._place.leave(info)
            raise
        yield from self._place.leave(info)
        yield from ask(on_event, RunEnded(result))
        return result

    def _run_in(
        self, info: SandboxInfo, transcript: Transcript, meter: Meter, on_event: OnEvent | None
    ) -> Operation[AgentResult]:
        run = self._run = self._made(info, transcript, meter, on_event)
        transcript.stop = StopReason.CANCELLED.value
        try:
            reason = yield from run.go()
        except GeneratorExit:
            raise
        except BaseException:
            yield from self._clear(run)
            raise
        transcript.stop = reason.value
        yield from self._clear(run)
        if reason is StopReason.SANDBOX_LOST:
            self._place.forget()
        return AgentResult(
            _last_text(transcript),
            reason,
            meter.spent(),
            transcript,
            info.id,
            run.error,
            run.checkpoints.ids(),
        )

    def _made(
        self, info: SandboxInfo, transcript: Transcript, meter: Meter, on_event: OnEvent | None
    ) -> Run:
        retain_seconds = self._place.ttl_seconds or RETAIN_SECONDS
        target = ToolTarget(info.id, memory_mb=info.memory_mb, snapshot_seconds=retain_seconds)
        checkpoints = Checkpoints(self._keeping.most, retain_seconds)
        return Run(self._rules, target, transcript, checkpoints, meter, on_event)

    def _clear(self, run: Run) -> Operation[None]:
        if not self._keeping.is_kept:
            yield from run.checkpoints.clear()
        if self._place.is_over_after_run:
            # Nothing can go back to what the model took; elsewhere their retention ends them.
            while run.target.snapshots:
                with contextlib.suppress(DayflyError):
                    yield from delete_snapshot(run.target.snapshots.pop())

    def _undo(self, steps: int) -> Operation[int]:
        if self._run is None:
            raise DayflyError("nothing was run yet that could be undone")
        return (yield from self._run.undo(steps))


def _last_text(transcript: Transcript) -> str:
    last = next((one for one in reversed(transcript.messages) if isinstance(one, Turn)), None)
    return "" if last is None else last.text


class Abandoned(BaseException):
    """Whoever iterated over the events of a run has stopped."""


def abandon(operation: Generator[Any, Any, Any]) -> Operation[None]:
    """Ends a run that nobody listens to any more, with all that it does at its end."""
    try:
        effect = operation.throw(Abandoned())
        while True:
            if isinstance(effect, Ask) and isinstance(effect.function, Sign):
                effect = operation.send(None)
                continue
            try:
                outcome = yield effect
            except BaseException as error:
                effect = operation.throw(error)
            else:
                effect = operation.send(outcome)
    except (StopIteration, Abandoned):
        return
