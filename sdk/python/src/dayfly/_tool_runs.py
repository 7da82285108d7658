"""Tools that run something: code, commands, and commands in copies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ._code import CodeWish, run_in_default
from ._commands import exec_body, run_command
from ._contexts import default_of, restart_context
from ._effects import Operation, Together
from ._for_model import MODEL_BYTES, Section, shaped
from ._living import delete_sandboxes
from ._making import fork, fork_options
from ._tool_result import ToolResult, ToolTarget, failed_by, images_of, with_word
from .errors import DayflyError, SandboxTimeout
from .execution import Execution
from .models import ExecResult, SandboxInfo

# Of each stream, so that the server chooses what to leave out: it keeps the lines around errors.
OUTPUT_BYTES = MODEL_BYTES - 1000
COPIES_AT_ONCE = 4
# What copies live longer than their commands, if nobody is left to delete them.
COPIES_GRACE_SECONDS = 300
BASH_SECONDS = 120.0
TIMEOUT_STATUS = 124


def run_code(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    code, language = arguments["code"], arguments["language"]
    return (yield from _run(target, code, language, target.seconds(arguments)))


def run_bash(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    """Anthropic's ``bash``: a shell that keeps its state, and can be started again."""
    if arguments["restart"]:
        context = default_of("bash")
        if context in target.contexts.made:
            yield from restart_context(target.sandbox, context, target.contexts)
        return ToolResult("the shell was started again")
    seconds = target.seconds({"timeout_seconds": BASH_SECONDS})
    return (yield from _run(target, arguments["command"] or "", "bash", seconds))


def _run(target: ToolTarget, code: str, language: str, seconds: float) -> Operation[ToolResult]:
    wish = CodeWish(code, seconds, OUTPUT_BYTES, report_changes=True)
    try:
        execution = yield from run_in_default(target.sandbox, language, wish, target.contexts)
    except SandboxTimeout as error:
        execution = Execution(
            stdout=error.stdout,
            stderr=error.stderr,
            status="timed_out",
            exit_code=TIMEOUT_STATUS,
            duration_ms=round(seconds * 1000),
            hint=error.hint,
        )
    images, hidden = images_of(execution.results)
    text = execution.for_model()
    if hidden:
        text = with_word(text, f"cut: {hidden} images are too large, too many or damaged")
    structured = {
        "status": execution.status,
        "stdout": execution.stdout,
        "stderr": execution.stderr,
        "value": execution.text,
        "duration_ms": execution.duration_ms,
        "changed_files": execution.changed_files,
    }
    is_error = not execution.ok or execution.status != "ok"
    return ToolResult(text, is_error, images, structured)


def run_shell(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    result = yield from _command(
        target.sandbox,
        arguments["command"],
        target.seconds(arguments),
        target.memory_mb,
        cwd=arguments["working_directory"],
    )
    return ToolResult(result.for_model(), not result.ok, structured=_structured(result))


def _command(
    sandbox: str, command: str, seconds: float, memory_mb: int, *, cwd: str | None = None
) -> Operation[ExecResult]:
    """Runs a command; past its timeout it is a result as any other."""
    body = exec_body(
        command,
        timeout_seconds=seconds,
        cwd=cwd,
        max_output_bytes=OUTPUT_BYTES,
        report_changes=True,
    )
    try:
        return (yield from run_command(sandbox, body, sandbox_memory_mb=memory_mb))
    except SandboxTimeout as error:
        return ExecResult(
            error.stdout,
            error.stderr,
            TIMEOUT_STATUS,
            round(seconds * 1000),
            "timeout",
            hint=error.hint,
        )


def _structured(result: ExecResult) -> dict[str, Any]:
    return {
        "exit_code": result.exit_code,
        "reason": result.reason,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "duration_ms": result.duration_ms,
        "changed_files": result.changed_files,
    }


def fork_commands(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    """Each command in a copy of its own; the copies are deleted, whatever happens."""
    commands: list[str] = arguments["commands"]
    seconds = target.seconds(arguments)
    rounds = math.ceil(len(commands) / COPIES_AT_ONCE)
    options = fork_options(ttl_seconds=math.ceil(seconds * rounds) + COPIES_GRACE_SECONDS)
    forked = yield from fork(target.sandbox, len(commands), options, is_tree=False)
    children = [child.id for child in forked.children]
    try:
        tries = [
            _try(child, command, seconds)
            for child, command in zip(forked.children, commands, strict=True)
        ]
        outcomes: list[ExecResult | BaseException] = yield Together(tries, COPIES_AT_ONCE)
    except GeneratorExit:
        raise
    except BaseException:
        yield from delete_sandboxes(children)
        raise
    yield from delete_sandboxes(children)
    return _told(outcomes)


def _try(child: SandboxInfo, command: str, seconds: float) -> Operation[ExecResult]:
    return (yield from _command(child.id, command, seconds, child.memory_mb))


def _told(outcomes: list[ExecResult | BaseException]) -> ToolResult:
    """All that Dayfly says of the copies, then what they printed."""
    said = [f"{len(outcomes)} copies, all of them deleted again"]
    sections: list[Section] = []
    structured: list[dict[str, Any]] = []
    for number, outcome in enumerate(outcomes, 1):
        if isinstance(outcome, DayflyError):
            said.append(f"copy {number}: {failed_by(outcome).text.replace(chr(10), '; ')}")
            structured.append({"error": outcome.message})
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            bare = replace(outcome, stdout="", stderr="").for_model().splitlines()
            is_silent = not (outcome.stdout or outcome.stderr)
            said.append(f"copy {number}: {'; '.join(bare if is_silent else bare[:-1])}")
            structured.append(_structured(outcome))
            sections += [
                Section(f"copy {number} {name}:", f"{name} of copy {number}", text.rstrip("\n"))
                for name, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr))
            ]
    return ToolResult(
        shaped(said, sections, "", MODEL_BYTES).rstrip("\n"),
        structured={"copies": structured},
    )
