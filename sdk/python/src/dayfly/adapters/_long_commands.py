"""Commands with any input and any length, as some frameworks want them.

A request has room for half a megabyte of command and one of input text. What is longer goes the
long way: input as a stream of bytes, arguments through a file.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from .._async_process import AsyncProcess
from .._async_sandbox import AsyncSandbox
from ..errors import Conflict, InvalidRequest, NotFound
from ..models import ExecResult

COMMAND_BYTES_MAX = 256 << 10
INPUT_PIECE_BYTES = 4 << 20
# Standard input stays the command's own. `exec` ends with the status of what it becomes.
FROM_FILE = 'mapfile -d "" -t words <"$0" && /bin/rm -f -- "$0" && exec "${words[@]}"'


async def run_command(
    sandbox: AsyncSandbox,
    command: Sequence[str],
    stdin: str | bytes | None,
    options: Mapping[str, Any],
) -> ExecResult:
    """Runs a program with its arguments to its end, with standard input if there is some."""
    if sum(len(word.encode()) for word in command) > COMMAND_BYTES_MAX:
        command = await _through_file(sandbox, command, options.get("user"))
    if stdin is None:
        return await sandbox.exec(command, **options)
    process = await sandbox.exec_background(command, stdin_open=True, **options)
    await _feed(process, stdin.encode() if isinstance(stdin, str) else stdin)
    return await process.wait()


async def _through_file(
    sandbox: AsyncSandbox, command: Sequence[str], user: str | None
) -> list[str]:
    """The command that runs this one, whose words it finds in a file."""
    path = f"/tmp/.dayfly-command-{secrets.token_hex(8)}"
    words = b"".join(word.encode() + b"\0" for word in command)
    await sandbox.files.write(path, words, mode=0o600, user=user)
    return ["/bin/bash", "-c", FROM_FILE, path]


async def _feed(process: AsyncProcess, data: bytes) -> None:
    """Sends input piece by piece. A command may end without having read all of it."""
    try:
        for start in range(0, len(data), INPUT_PIECE_BYTES):
            await process.send_stdin(data[start : start + INPUT_PIECE_BYTES])
        await process.close_stdin()
    except (Conflict, InvalidRequest, NotFound):
        if await process.is_running():
            raise
