"""A command that is followed to its end, whatever happens to the connection.

The guest keeps output by offset, so a lost connection costs nothing but time: the follower attaches
again where it was. A stream that stops without an ``exit`` event is never taken for a success.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any, TypeVar

from ._effects import Body, Operation, Read, Sleep, ask
from ._hints import GONE, worded
from ._kept import KeptText, omission
from ._retry import ONCE, call, open_body
from ._sse import Event, EventParser
from ._tools import OnOutput
from ._wire import Json, Request, get, path_of, with_query
from .errors import (
    AnswerLost,
    ApiError,
    DayflyError,
    ExecInterrupted,
    GuestUnavailable,
    NodeUnavailable,
    NotFound,
    SandboxTimeout,
    ServerUnreachable,
    TooMany,
    error_of_fields,
)
from .models import ExecResult

# The server sends a comment after 10 s without output.
SILENCE_SECONDS = 45.0
# A daemon that restarts is back within two seconds; one that is dead is told of within five. One
# that answers, but cannot yet, is alive and waited for longer.
REATTACH_SECONDS = 4.0
REATTACH_ALIVE_SECONDS = 30.0
REATTACH_PAUSE_FIRST = 0.1
REATTACH_PAUSE_MAX = 0.5
REPLACEMENT = "\ufffd"

T = TypeVar("T")

# What the server says when the command may well go on: attaching again finds out.
_PASSING = (NodeUnavailable, GuestUnavailable, TooMany)


class _Stream:
    """One output stream: what came, and where the guest's log goes on behind it.

    Offsets count bytes, events carry text. Text without replacement characters says how many bytes
    it was. From the first replacement character on that is not known any more: then the stream is
    read again from the last sure offset, and what was seen already is skipped by its characters.
    """

    def __init__(self, name: str, offset: int = 0, limit: int | None = None) -> None:
        self._name = name
        self._begin = offset
        self._kept = KeptText(limit)
        self._gaps: list[dict[str, Any]] = []
        self.offset = offset
        self._unsure_characters = 0
        self._skip = 0

    def begin_again(self) -> None:
        self._skip = self._unsure_characters

    def take(self, chunk: str) -> str:
        """Takes a chunk and gives the part of it that is new."""
        if self._skip:
            skipped = min(self._skip, len(chunk))
            self._skip -= skipped
            chunk = chunk[skipped:]
        if not chunk:
            return ""
        length = self._kept.add(chunk)
        if self._unsure_characters or REPLACEMENT in chunk:
            self._unsure_characters += len(chunk)
        else:
            self.offset += length
        return chunk

    def jump(self, offset: int, length: int) -> None:
        """The guest has dropped so many bytes from this offset on."""
        self._gaps.append(omission(self._name, offset, length, is_readable=False))
        self.offset, self._unsure_characters, self._skip = offset + length, 0, 0

    @property
    def length(self) -> int:
        """How long the stream was, as far as it was seen."""
        return max(self.offset, self._begin + self._kept.total)

    def give(self) -> tuple[str, list[dict[str, Any]]]:
        """The text that is kept, and what is left out of it."""
        text, left_out = self._kept.give()
        if left_out is None:
            return text, self._gaps
        offset, length = left_out
        # What the guest dropped before it is not counted in what came.
        before = sum(gap["bytes"] for gap in self._gaps if gap["offset"] <= offset)
        cut = omission(self._name, self._begin + before + offset, length, is_readable=True)
        return text, [*self._gaps, cut]


class Follower:
    """State of one followed command."""

    def __init__(
        self,
        sandbox: str,
        exec_id: str,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        max_output_bytes: int | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._exec_id = exec_id
        self._streams = {
            "stdout": _Stream("stdout", stdout_offset, max_output_bytes),
            "stderr": _Stream("stderr", stderr_offset, max_output_bytes),
        }
        self._callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        self._was_started = False
        self._result: ExecResult | None = None

    def follow(self, start: Request | None) -> Operation[ExecResult]:
        """Starts the command, or attaches to it, and follows it to its end."""
        self._was_started = start is None
        lost_at: float | None = None
        pause = REATTACH_PAUSE_FIRST
        is_first = True
        while True:
            try:
                if start is not None and not self._was_started:
                    # May be sent again: it names its exec, which starts once.
                    body = yield from open_body(start)
                else:
                    body = yield from self._attach(is_first)
                is_first = False
                came = yield from self._read(body)
                loss: DayflyError = AnswerLost("the stream ended without an exit status")
                if came:
                    lost_at, pause = None, REATTACH_PAUSE_FIRST
            except (AnswerLost, ServerUnreachable, *_PASSING) as error:
                if is_first and isinstance(error, (ApiError, ServerUnreachable)):
                    raise
                loss = error
            if self._result is not None:
                return self._result
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            is_alive = isinstance(loss, _PASSING)
            if now + pause - lost_at > (REATTACH_ALIVE_SECONDS if is_alive else REATTACH_SECONDS):
                raise self._interrupted(loss)
            is_first = False
            # Many that wait must not come at once.
            yield Sleep(pause * random.uniform(0.8, 1.0))
            pause = min(pause * 2, REATTACH_PAUSE_MAX)

    def _attach(self, is_first: bool) -> Operation[Body]:
        path = path_of("sandboxes", self._sandbox)
        if not is_first:
            # A sandbox that was put to sleep is left asleep: somebody wanted it so.
            status = (yield from self._known(call(get(path), ONCE))).json().get("status")
            if status in ("hibernated", "hibernating"):
                raise self._interrupted(AnswerLost("the sandbox sleeps"))
        for stream in self._streams.values():
            stream.begin_again()
        address = with_query(
            path_of("sandboxes", self._sandbox, "processes", self._exec_id, "attach"),
            stdout_offset=self._streams["stdout"].offset,
            stderr_offset=self._streams["stderr"].offset,
        )
        if is_first:
            return (yield from open_body(get(address)))
        return (yield from self._known(open_body(get(address), ONCE)))

    def _known(self, operation: Operation[T]) -> Operation[T]:
        """Of a command that was started, a refusal says only that its end is not known."""
        try:
            return (yield from operation)
        except _PASSING:
            raise
        except ApiError as error:
            raise self._interrupted(error) from error

    def _read(self, body: Body) -> Operation[bool]:
        """Reads events until the end of the command or of the body. Says whether any came."""
        parser = EventParser()
        came = False
        try:
            while self._result is None:
                try:
                    piece: bytes = yield Read(body, SILENCE_SECONDS)
                except AnswerLost:
                    break
                if not piece:
                    break
                for event in parser.push(piece):
                    came = True
                    yield from self._take(event)
        finally:
            # Reads the end of the body in the good case, so that the connection can be kept.
            if self._result is None:
                body.close()
        if self._result is not None:
            yield from _drain(body)
        return came

    def _take(self, event: Event) -> Operation[None]:
        data: Json = json.loads(event.data)
        if event.name in self._streams:
            chunk = self._streams[event.name].take(str(data.get("chunk", "")))
            if chunk:
                yield from ask(self._callbacks[event.name], chunk)
        elif event.name == "started":
            self._was_started = True
        elif event.name == "gap":
            stream = self._streams.get(str(data.get("stream")))
            if stream is not None:
                stream.jump(int(data.get("offset", 0)), int(data.get("bytes", 0)))
        elif event.name == "exit":
            self._result = self._finish(data)
        elif event.name == "error":
            raise self._told(data)

    def _told(self, data: Json) -> DayflyError:
        error = error_of_fields(data)
        if isinstance(error, SandboxTimeout):
            error.exec_id = self._exec_id
            error.stdout, error.stderr = self._texts()
            return error
        if isinstance(error, _PASSING):
            return error
        return self._interrupted(error)

    def _finish(self, data: Json) -> ExecResult:
        stdout, stdout_omitted = self._streams["stdout"].give()
        stderr, stderr_omitted = self._streams["stderr"].give()
        omitted = [*stdout_omitted, *stderr_omitted]
        return ExecResult(
            stdout=stdout,
            stderr=stderr,
            exit_code=int(data["exit_code"]),
            duration_ms=int(data.get("duration_ms", 0)),
            reason=str(data.get("reason", "exited")),
            signal=data.get("signal"),
            truncated=bool(omitted),
            hint=worded(data),
            exec_id=self._exec_id,
            limits_hit=list(data.get("limits_hit", [])),
            omitted=omitted,
            stdout_bytes=self._streams["stdout"].length,
            stderr_bytes=self._streams["stderr"].length,
        )

    def _texts(self) -> tuple[str, str]:
        return self._streams["stdout"].give()[0], self._streams["stderr"].give()[0]

    def _interrupted(self, cause: DayflyError) -> ExecInterrupted:
        stdout, stderr = self._texts()
        return ExecInterrupted(
            f"the command was lost sight of: {cause.message}",
            exec_id=self._exec_id,
            stdout=stdout,
            stderr=stderr,
            hint=GONE if isinstance(cause, NotFound) else None,
        )


def _drain(body: Body) -> Operation[None]:
    try:
        piece: bytes = yield Read(body, 0.2)
        while piece:
            piece = yield Read(body, 0.2)
    except AnswerLost:
        body.close()
