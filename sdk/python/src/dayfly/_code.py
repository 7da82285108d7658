"""Code: as the template means it, and in contexts that keep their state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ._checks import checked_seconds
from ._code_stream import RunCollector, read_run
from ._commands import delete_process, exec_body, run_command
from ._contexts import (
    KnownContexts,
    context_request,
    create_context,
    default_of,
    language_name,
    language_of_default,
    restart_context,
)
from ._effects import Operation, send_once
from ._options import RunMode
from ._retry import call, open_body
from ._tools import OnOutput
from ._wire import CALL_SECONDS, Json, new_id, path_of, send_json, without_none
from .errors import (
    AnswerLost,
    DayflyError,
    ExecInterrupted,
    NotFound,
    SandboxTimeout,
    Unsupported,
)
from .execution import Execution, Result, execution_from_wire
from .models import ExecResult

# To interrupt what nobody waits for any more.
INTERRUPT_SECONDS = 10.0
STATE_LOST = "the interpreter had ended; a new one was started, and the state of before is lost"
NO_LANGUAGE = (
    "python and bash run in every template; others need contexts, as code-interpreter has them"
)
_COMMANDS = {"python": ["python3", "-"], "bash": None}

OnResult = Callable[[Result], Any]


@dataclass(frozen=True)
class CodeWish:
    """Code, and how it is to be run."""

    code: str
    timeout_seconds: float | None = None
    max_output_bytes: int | None = None
    report_changes: bool | None = None
    on_stdout: OnOutput | None = None
    on_stderr: OnOutput | None = None
    on_result: OnResult | None = None

    def __post_init__(self) -> None:
        checked_seconds("timeout_seconds", self.timeout_seconds)
        if self.report_changes and self.is_followed:
            raise ValueError("report_changes is not told with a stream: leave the callbacks away")

    @property
    def is_followed(self) -> bool:
        callbacks = (self.on_stdout, self.on_stderr, self.on_result)
        return any(callback is not None for callback in callbacks)

    def body(self) -> Json:
        """With an id of its own, so that it may be repeated and does not run twice."""
        seconds = self.timeout_seconds
        return without_none(
            code=self.code,
            timeout_ms=None if seconds is None else max(1, round(seconds * 1000)),
            max_output_bytes=self.max_output_bytes,
            report_changes=self.report_changes,
            run_id=new_id("run"),
        )

    def collector(self) -> RunCollector:
        return RunCollector(self.on_stdout, self.on_stderr, self.on_result, self.max_output_bytes)


def run(
    sandbox: str,
    code: str,
    mode: RunMode | None,
    timeout_seconds: float | None,
    max_output_bytes: int | None,
    report_changes: bool | None,
) -> Operation[Execution]:
    """Runs code as the template declares. Not repeated once sent: it has no id of its own."""
    body = without_none(
        code=code,
        mode=mode,
        timeout_seconds=timeout_seconds,
        max_output_bytes=max_output_bytes,
        report_changes=report_changes,
    )
    timeout = None if timeout_seconds is None else timeout_seconds + CALL_SECONDS
    request = send_json("POST", path_of("sandboxes", sandbox, "run"), body, timeout=timeout)
    return execution_from_wire((yield from call(request)).json())


def run_in_default(
    sandbox: str, language: str, wish: CodeWish, known: KnownContexts
) -> Operation[Execution]:
    """Runs code in the sandbox's own context of a language, which is made at its first use.

    In a template without contexts it is a fresh interpreter each time.
    """
    language = language_name(language)
    context = default_of(language)
    if context not in known.made:
        try:
            yield from create_context(sandbox, language, None, context)
        except Unsupported as error:
            if language not in _COMMANDS:
                error.hint = NO_LANGUAGE
                raise
            return (yield from _run_as_command(sandbox, language, wish))
        known.made.add(context)
    try:
        return (yield from run_in_context(sandbox, context, wish, known))
    except NotFound:
        # Deleted by somebody else. Nothing has run, so it may be tried again.
        known.made.discard(context)
        yield from create_context(sandbox, language, None, context)
        known.made.add(context)
        return (yield from run_in_context(sandbox, context, wish, known))


def run_in(
    sandbox: str, context: str, wish: CodeWish, known: KnownContexts
) -> Operation[Execution]:
    """Runs code in a context by its name; those of the sandbox's own are made when needed."""
    language = language_of_default(context)
    if language is not None:
        return (yield from run_in_default(sandbox, language, wish, known))
    return (yield from run_in_context(sandbox, context, wish, known))


def run_in_context(
    sandbox: str, context: str, wish: CodeWish, known: KnownContexts
) -> Operation[Execution]:
    """Runs code. One that is cancelled is interrupted, so that the context is free again."""
    is_lost = context in known.dead
    if is_lost:
        yield from restart_context(sandbox, context, known)
    body = wish.body()
    perform = _followed if wish.is_followed else _plain
    with known.running(context, body["run_id"]):
        try:
            execution = yield from perform(sandbox, context, wish, body)
        except (Exception, GeneratorExit, SystemExit):
            raise
        except BaseException:
            # KeyboardInterrupt, or the cancellation of an asyncio task. A run that waits behind
            # another one cannot be taken back, and the other one is not ours to end.
            if known.is_first(context, body["run_id"]):
                yield from _interrupt(sandbox, context)
            raise
    if execution.status == "died":
        known.dead.add(context)
    if is_lost:
        hint = STATE_LOST if execution.hint is None else f"{STATE_LOST}; {execution.hint}"
        execution = replace(execution, state_lost=True, hint=hint)
    return execution


def _interrupt(sandbox: str, context: str) -> Operation[None]:
    request = context_request(sandbox, context, "interrupt")
    try:
        yield from send_once(replace(request, timeout=INTERRUPT_SECONDS))
    except DayflyError:
        # Its time limit, or the end of the sandbox, ends it.
        return


def _path(sandbox: str, context: str, *verbs: str) -> str:
    return path_of("sandboxes", sandbox, "repl", "sessions", context, "run", *verbs)


def _plain(sandbox: str, context: str, wish: CodeWish, body: Json) -> Operation[Execution]:
    limit = wish.timeout_seconds
    timeout = None if limit is None else limit + CALL_SECONDS
    # It names its run, so a repeat gives the same results and runs nothing twice.
    request = send_json("POST", _path(sandbox, context), body, is_repeatable=True, timeout=timeout)
    try:
        return execution_from_wire((yield from call(request)).json())
    except SandboxTimeout as error:
        yield from _add_output(sandbox, context, wish, body, error)
        raise


def _add_output(
    sandbox: str, context: str, wish: CodeWish, body: Json, error: SandboxTimeout
) -> Operation[None]:
    """What code said before its time was up is what one wants to see then.

    The run has a name: asked for once more, as a stream, it tells what it has said.
    """
    collector = wish.collector()
    try:
        request = send_json("POST", _path(sandbox, context, "stream"), body, is_repeatable=True)
        yield from read_run((yield from open_body(request)), collector)
    except DayflyError:
        # What came until then is better than nothing.
        pass
    error.stdout, error.stderr = collector.texts()


def _followed(sandbox: str, context: str, wish: CodeWish, body: Json) -> Operation[Execution]:
    request = send_json("POST", _path(sandbox, context, "stream"), body, is_repeatable=True)
    collector = wish.collector()
    try:
        yield from read_run((yield from open_body(request)), collector)
    except AnswerLost:
        # The events have no offsets to go on from, but the run has a name: asked for once more
        # without a stream, it gives its whole result and does not run again.
        request = send_json("POST", _path(sandbox, context), body, is_repeatable=True, timeout=None)
        try:
            return execution_from_wire((yield from call(request)).json())
        except AnswerLost as error:
            stdout, stderr = collector.texts()
            raise ExecInterrupted(
                error.message,
                exec_id=body["run_id"],
                stdout=stdout,
                stderr=stderr,
                hint=f"the code may still run in context {context}; interrupt() ends it",
            ) from error
    return collector.finish()


def _run_as_command(sandbox: str, language: str, wish: CodeWish) -> Operation[Execution]:
    """A fresh interpreter for a template without contexts, as the server's `run` has it."""
    words = _COMMANDS[language]
    body = exec_body(
        wish.code if words is None else words,
        stdin=None if words is None else wish.code,
        timeout_seconds=wish.timeout_seconds,
        max_output_bytes=wish.max_output_bytes,
        report_changes=wish.report_changes,
    )
    try:
        result = yield from run_command(
            sandbox, body, on_stdout=wish.on_stdout, on_stderr=wish.on_stderr
        )
    except (Exception, GeneratorExit, SystemExit):
        raise
    except BaseException:
        # As in a context: code that nobody waits for is ended.
        with contextlib.suppress(DayflyError):
            yield from delete_process(sandbox, body["exec_id"])
        raise
    return _execution_of(result)


def _execution_of(result: ExecResult) -> Execution:
    return execution_from_wire(
        without_none(
            stdout=result.stdout,
            stderr=result.stderr,
            error=None if result.ok else f"exit status {result.exit_code}",
            exit_code=result.exit_code,
            status="ok" if result.ok else "error",
            duration_ms=result.duration_ms,
            truncated=result.truncated,
            omitted=result.omitted,
            hint=result.hint,
            changed_files=result.changed_files,
        )
    )
