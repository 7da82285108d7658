"""Code: as the template means it, and in contexts that keep their state."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ._effects import Operation, Read, ask
from ._retry import call, open_body
from ._sse import Event, EventParser
from ._wire import (
    CALL_SECONDS,
    STATE_SECONDS,
    Json,
    delete,
    get,
    new_id,
    path_of,
    send_json,
    without_none,
)
from .errors import AnswerLost, ExecInterrupted, SandboxTimeout, Unsupported, error_of_code
from .execution import Execution, execution_from_wire
from .models import ContextInfo, from_wire

# The context that the server itself uses for `run` where it keeps its state.
DEFAULT_CONTEXT = "default"
_LANGUAGES = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "node": "javascript",
    "sh": "bash",
    "shell": "bash",
}
_RUN_MODES = {"python": "python", "bash": "shell"}


def language_name(text: str) -> str:
    return _LANGUAGES.get(text.lower(), text.lower())


def run(
    sandbox: str, code: str, mode: str | None, timeout_seconds: float | None
) -> Operation[Execution]:
    """Runs code as the template declares. Not repeated once sent: it has no id of its own."""
    body = without_none(code=code, mode=mode, timeout_seconds=timeout_seconds)
    timeout = None if timeout_seconds is None else timeout_seconds + CALL_SECONDS
    request = send_json("POST", path_of("sandboxes", sandbox, "run"), body, timeout=timeout)
    return execution_from_wire((yield from call(request)).json())


def run_in_default(
    sandbox: str,
    code: str,
    language: str,
    timeout_seconds: float | None,
    known: set[str],
) -> Operation[Execution]:
    """Runs code in the sandbox's own context of a language, which is made at its first use.

    In a template without contexts it is a fresh interpreter each time.
    """
    language = language_name(language)
    context = DEFAULT_CONTEXT if language == "python" else f"{DEFAULT_CONTEXT}-{language}"
    if context not in known:
        try:
            yield from create_context(sandbox, language, None, context)
        except Unsupported:
            mode = _RUN_MODES.get(language)
            if mode is None:
                raise
            return (yield from run(sandbox, code, mode, timeout_seconds))
        known.add(context)
    return (yield from run_in_context(sandbox, context, code, timeout_seconds))


def create_context(
    sandbox: str, language: str, cwd: str | None, context: str | None = None
) -> Operation[ContextInfo]:
    body = without_none(language=language, cwd=cwd, id=context or new_id("ctx"))
    path = path_of("sandboxes", sandbox, "repl", "sessions")
    # It names itself, so a repeat finds the one that is there.
    request = send_json("POST", path, body, is_repeatable=True, timeout=STATE_SECONDS)
    return from_wire(ContextInfo, (yield from call(request)).json())


def list_contexts(sandbox: str) -> Operation[list[ContextInfo]]:
    answer = yield from call(get(path_of("sandboxes", sandbox, "repl", "sessions")))
    return [from_wire(ContextInfo, item) for item in answer.json()["items"]]


def run_body(code: str, timeout_seconds: float | None) -> Json:
    millis = None if timeout_seconds is None else max(1, round(timeout_seconds * 1000))
    return without_none(code=code, timeout_ms=millis, run_id=new_id("run"))


def run_in_context(
    sandbox: str, context: str, code: str, timeout_seconds: float | None
) -> Operation[Execution]:
    path = path_of("sandboxes", sandbox, "repl", "sessions", context, "run")
    body = run_body(code, timeout_seconds)
    timeout = None if timeout_seconds is None else timeout_seconds + CALL_SECONDS
    # It names its run, so a repeat gives the same results and runs nothing twice.
    request = send_json("POST", path, body, is_repeatable=True, timeout=timeout)
    return execution_from_wire((yield from call(request)).json())


def change_context(sandbox: str, context: str, verb: str) -> Operation[None]:
    """``interrupt`` or ``restart``."""
    path = path_of("sandboxes", sandbox, "repl", "sessions", context, verb)
    yield from call(send_json("POST", path, timeout=STATE_SECONDS))


def delete_context(sandbox: str, context: str) -> Operation[None]:
    yield from call(delete(path_of("sandboxes", sandbox, "repl", "sessions", context)))


class RunCollector:
    """Puts a streamed run together."""

    def __init__(
        self,
        on_stdout: Callable[[str], Any] | None,
        on_stderr: Callable[[str], Any] | None,
    ) -> None:
        self._callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        self._texts = {"stdout": "", "stderr": ""}
        self._wire: Json = {"results": []}
        self.is_over = False

    def take(self, event: Event) -> Operation[None]:
        data: Json = json.loads(event.data)
        if event.name in self._texts:
            chunk = str(data.get("chunk", ""))
            self._texts[event.name] += chunk
            yield from ask(self._callbacks[event.name], chunk)
        elif event.name == "result":
            self._wire["results"].append(data.get("data", {}))
        elif event.name == "failure":
            self._wire["error"] = data.get("error")
            self._wire["traceback"] = data.get("traceback")
        elif event.name == "dropped":
            self._wire["truncated"] = True
        elif event.name == "end":
            self._wire.update(data)
            self.is_over = True
        elif event.name == "error":
            raise error_of_code(str(data.get("code") or "internal"), str(data.get("error", "")))

    def finish(self) -> Execution:
        status = self._wire.get("status", "ok")
        if status == "timed_out":
            error = SandboxTimeout(
                "the code ran longer than its limit and was interrupted",
                code="timeout",
                status=504,
            )
            error.stdout, error.stderr = self._texts["stdout"], self._texts["stderr"]
            raise error
        if status != "ok":
            self._wire.setdefault("error", status)
        return execution_from_wire(
            {**self._wire, **self._texts, "exit_code": 0 if status == "ok" else 1}
        )


def stream_in_context(
    sandbox: str,
    context: str,
    code: str,
    timeout_seconds: float | None,
    on_stdout: Callable[[str], Any] | None,
    on_stderr: Callable[[str], Any] | None,
) -> Operation[Execution]:
    path = path_of("sandboxes", sandbox, "repl", "sessions", context, "run", "stream")
    body = run_body(code, timeout_seconds)
    stream = yield from open_body(send_json("POST", path, body, is_repeatable=True))
    collector = RunCollector(on_stdout, on_stderr)
    parser = EventParser()
    try:
        while not collector.is_over:
            piece: bytes = yield Read(stream, CALL_SECONDS)
            if not piece:
                raise AnswerLost("the stream ended too early")
            for event in parser.push(piece):
                yield from collector.take(event)
    except AnswerLost:
        # The events have no offsets to go on from, but the run has a name: asked for once more
        # without a stream, it gives its whole result and does not run again.
        plain = path_of("sandboxes", sandbox, "repl", "sessions", context, "run")
        request = send_json("POST", plain, body, is_repeatable=True, timeout=None)
        try:
            return execution_from_wire((yield from call(request)).json())
        except AnswerLost as error:
            raise ExecInterrupted(error.message, exec_id=body["run_id"]) from error
    finally:
        stream.close()
    return collector.finish()
