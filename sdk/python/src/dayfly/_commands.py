"""Commands and the processes that they become."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ._checks import checked_seconds, checked_texts
from ._effects import Operation
from ._follow import Follower
from ._hints import GONE, memory_hint, worded
from ._options import LogWhenFull, StreamName
from ._pulling import Pulled, Sign
from ._retry import ONCE, call
from ._tools import OnOutput
from ._wire import (
    CALL_SECONDS,
    STATE_SECONDS,
    Json,
    Request,
    delete,
    get,
    get_waiting,
    new_id,
    path_of,
    send_json,
    with_query,
    without_none,
)
from .errors import AnswerTimeout, DayflyError, GuestUnavailable, NotFound, SandboxTimeout
from .models import ExecResult, Output, OutputChunk, ProcessInfo, from_wire

Command = str | Sequence[str]

# The server waits at most this long for the end of a process.
WAIT_SECONDS = 25
OUTPUT_BYTES = 8 << 20


def exec_body(
    cmd: Command,
    *,
    timeout_seconds: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    user: str | None = None,
    stdin: str | bytes | None = None,
    stdin_open: bool | None = None,
    max_output_bytes: int | None = None,
    report_changes: bool | None = None,
    memory_mb: int | None = None,
    cpu_seconds: float | None = None,
    max_processes: int | None = None,
    log_max_bytes: int | None = None,
    log_when_full: LogWhenFull | None = None,
) -> Json:
    """The body of an exec, with an id of our own so that it may be repeated."""
    if isinstance(stdin, bytes):
        # The field is text; bytes that are not have their way through a file or `send_stdin`.
        stdin = stdin.decode("utf-8")
    return without_none(
        cmd=cmd if isinstance(cmd, str) else list(cmd),
        timeout_seconds=checked_seconds("timeout_seconds", timeout_seconds),
        env=checked_texts("env", env),
        cwd=cwd,
        user=user,
        stdin=stdin,
        exec_id=new_id("ex"),
        stdin_open=stdin_open,
        max_output_bytes=max_output_bytes,
        report_changes=report_changes,
        memory_mb=memory_mb,
        cpu_seconds=cpu_seconds,
        max_processes=max_processes,
        log_max_bytes=log_max_bytes,
        log_when_full=log_when_full,
    )


def run_command(
    sandbox: str,
    body: Json,
    *,
    check: bool = False,
    on_stdout: OnOutput | None = None,
    on_stderr: OnOutput | None = None,
    sandbox_memory_mb: int = 0,
) -> Operation[ExecResult]:
    """Runs a command to its end; with callbacks its output is told as it comes."""
    if on_stdout is None and on_stderr is None:
        result = yield from _plain(sandbox, body)
    else:
        request = send_json(
            "POST", path_of("sandboxes", sandbox, "exec", "stream"), body, is_repeatable=True
        )
        if body.get("report_changes"):
            raise ValueError("report_changes is not told with a stream: leave the callbacks away")
        follower = Follower(
            sandbox,
            body["exec_id"],
            on_stdout,
            on_stderr,
            max_output_bytes=body.get("max_output_bytes"),
        )
        result = yield from follower.follow(request)
    hint = result.hint or memory_hint(
        result.reason, result.limits_hit, body.get("memory_mb"), sandbox_memory_mb
    )
    result = replace(result, hint=hint)
    return result.check() if check else result


def _plain(sandbox: str, body: Json) -> Operation[ExecResult]:
    limit = body.get("timeout_seconds")
    request = send_json(
        "POST",
        path_of("sandboxes", sandbox, "exec"),
        body,
        is_repeatable=True,
        # Without a limit a command may take as long as its sandbox lives; a dead connection is
        # noticed by the keep-alive of its socket.
        timeout=None if limit is None else limit + CALL_SECONDS,
    )
    try:
        answer = yield from call(request)
    except SandboxTimeout as error:
        error.exec_id = body["exec_id"]
        yield from _add_output(sandbox, error)
        raise
    except GuestUnavailable as error:
        yield from _say_if_gone(sandbox, error)
        raise
    found: Json = answer.json()
    return from_wire(ExecResult, {**found, "hint": worded(found)})


def _add_output(sandbox: str, error: SandboxTimeout) -> Operation[None]:
    """What a command said before its time was up is what one wants to see then."""
    try:
        output = yield from read_logs(sandbox, error.exec_id or "")
    except DayflyError:
        return
    error.stdout, error.stderr = output.stdout, output.stderr


def _say_if_gone(sandbox: str, error: GuestUnavailable) -> Operation[None]:
    """Of a sandbox that was deleted under a command nothing is kept, whatever the hint says."""
    try:
        yield from call(get(path_of("sandboxes", sandbox)), ONCE)
    except NotFound:
        error.hint = GONE
    except DayflyError:
        return


def start_process(sandbox: str, body: Json) -> Operation[ProcessInfo]:
    body = {**body, "background": True}
    path = path_of("sandboxes", sandbox, "exec")
    request = send_json("POST", path, body, is_repeatable=True, timeout=STATE_SECONDS)
    return from_wire(ProcessInfo, (yield from call(request)).json())


def list_processes(sandbox: str) -> Operation[list[ProcessInfo]]:
    answer = yield from call(get(path_of("sandboxes", sandbox, "processes")))
    return [from_wire(ProcessInfo, item) for item in answer.json()["items"]]


def get_process(
    sandbox: str, exec_id: str, wait_seconds: int | None = None
) -> Operation[ProcessInfo]:
    path = path_of("sandboxes", sandbox, "processes", exec_id)
    answer = yield from call(get_waiting(path, wait_seconds))
    return from_wire(ProcessInfo, answer.json())


def wait_process(
    sandbox: str, exec_id: str, timeout_seconds: float | None
) -> Operation[ExecResult]:
    """Waits for the end. When the wait is over first, the process goes on."""
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    while True:
        rest = WAIT_SECONDS if deadline is None else deadline - time.monotonic()
        # The server counts whole seconds; a shorter rest is asked for without waiting.
        seconds = max(0, min(WAIT_SECONDS, int(rest + 0.999)))
        process = yield from get_process(sandbox, exec_id, seconds or None)
        if not process.is_running:
            break
        if deadline is not None and time.monotonic() >= deadline:
            raise AnswerTimeout(
                f"{exec_id} still runs after {timeout_seconds:g} s",
                hint="kill() ends it; wait() may be called again",
            )
    output = yield from read_logs(sandbox, exec_id)
    if process.reason == "timed_out":
        error = SandboxTimeout("the command ran longer than its limit", code="timeout", status=504)
        error.exec_id, error.stdout, error.stderr = exec_id, output.stdout, output.stderr
        raise error
    extents = (process.stdout, process.stderr)
    return ExecResult(
        stdout=output.stdout,
        stderr=output.stderr,
        exit_code=-1 if process.exit_code is None else process.exit_code,
        duration_ms=process.duration_ms,
        reason=process.reason or "exited",
        signal=process.signal,
        truncated=any(extent.get("start", 0) > 0 for extent in extents),
        exec_id=exec_id,
        limits_hit=process.limits_hit,
        stdout_bytes=process.stdout.get("end", 0),
        stderr_bytes=process.stderr.get("end", 0),
    )


def read_logs(sandbox: str, exec_id: str) -> Operation[Output]:
    stdout = yield from read_output(sandbox, exec_id, "stdout", 0, None)
    stderr = yield from read_output(sandbox, exec_id, "stderr", 0, None)
    return Output(stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def read_output(
    sandbox: str, exec_id: str, stream: StreamName, offset: int, limit: int | None
) -> Operation[bytes]:
    """What is kept of a stream from an offset on, up to what there is now."""
    pieces: list[bytes] = []
    while limit is None or limit > 0:
        size = OUTPUT_BYTES if limit is None else min(limit, OUTPUT_BYTES)
        address = with_query(
            path_of("sandboxes", sandbox, "processes", exec_id, "output"),
            stream=stream,
            offset=offset,
            limit=size,
        )
        answer = yield from call(get(address))
        if not answer.body:
            break
        pieces.append(answer.body)
        # It begins later than asked for where the guest has dropped the oldest bytes.
        offset = int(answer.headers.get("dayfly-offset", offset)) + len(answer.body)
        limit = None if limit is None else limit - len(answer.body)
    return b"".join(pieces)


def send_stdin(
    sandbox: str, exec_id: str, data: bytes, offset: int, *, close: bool
) -> Operation[int]:
    """Sends input that begins at an offset. Gives the offset behind what the guest has taken."""
    address = with_query(
        path_of("sandboxes", sandbox, "processes", exec_id, "stdin"),
        offset=offset,
        close=True if close else None,
    )
    # With an offset, what the guest has taken already is left out of a repeat.
    headers = {"Content-Type": "application/octet-stream"}
    request = Request("POST", address, headers, data, None, is_repeatable=True)
    return int((yield from call(request)).json()["stdin_bytes"])


def signal_process(sandbox: str, exec_id: str, signal: int) -> Operation[None]:
    path = path_of("sandboxes", sandbox, "processes", exec_id, "signal")
    yield from call(send_json("POST", path, {"signal": signal}))


def kill_process(sandbox: str, exec_id: str) -> Operation[None]:
    """Ends a command and all that it started. One that has ended already is as good as killed."""
    try:
        yield from signal_process(sandbox, exec_id, 9)
    except NotFound:
        if (yield from get_process(sandbox, exec_id)).is_running:
            raise


def delete_process(sandbox: str, exec_id: str) -> Operation[None]:
    yield from call(delete(path_of("sandboxes", sandbox, "processes", exec_id)))


class Attachment(Pulled[ExecResult]):
    """A command whose output is followed from an offset on."""

    def __init__(self, sandbox: str, exec_id: str, stdout_offset: int, stderr_offset: int) -> None:
        super().__init__()
        follower = Follower(
            sandbox,
            exec_id,
            Sign("stdout"),
            Sign("stderr"),
            stdout_offset=stdout_offset,
            stderr_offset=stderr_offset,
        )
        self.begin(follower.follow(None))

    def next_chunk(self) -> Operation[OutputChunk | None]:
        said = yield from self.next()
        return None if said is None else OutputChunk(*said)

    def finish(self) -> Operation[ExecResult]:
        """Reads what is left, and gives how the command ended."""
        while (yield from self.next()) is not None:
            pass
        if self.result is None:
            raise DayflyError("the output was closed before the command ended")
        return self.result


def follow_process(
    sandbox: str,
    exec_id: str,
    on_stdout: OnOutput | None,
    on_stderr: OnOutput | None,
    stdout_offset: int,
    stderr_offset: int,
) -> Operation[ExecResult]:
    follower = Follower(
        sandbox,
        exec_id,
        on_stdout,
        on_stderr,
        stdout_offset=stdout_offset,
        stderr_offset=stderr_offset,
    )
    return (yield from follower.follow(None))
