"""What the adapters have in common: how a framework that is not there is reported, and commands
whose two streams come as one.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from ..errors import SandboxTimeout
from ..sandbox import Sandbox

# As in a shell: what `timeout` ends with.
EXIT_TIMED_OUT = 124


def framework(extra: str, module: str) -> Any:
    """A module of a framework, which is there only if its extra is installed.

    It is ``Any`` to a type checker, which has to work without the framework, too. What an adapter
    gives is ``Any`` as well, and thereby fits wherever the framework wants one of its own.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} cannot be imported: pip install 'dayfly[{extra}]' ({error})",
            name=error.name,
        ) from error


@dataclass(frozen=True)
class Merged:
    """How a command ended, and what it printed, in the order in which it did."""

    output: str
    exit_code: int
    truncated: bool = False
    is_timed_out: bool = False


def run_merged(
    sandbox: Sandbox,
    command: str,
    *,
    timeout_seconds: float | None = None,
    cwd: str | None = None,
) -> Merged:
    """Runs a text for the shell with its standard error in its standard output.

    The redirection is a line of its own, so that a here-document or a comment of the command
    cannot swallow it.
    """
    line = f"exec 2>&1\n{command}"
    try:
        result = sandbox.exec(line, timeout_seconds=timeout_seconds, cwd=cwd)
    except SandboxTimeout as error:
        return Merged(error.stdout, EXIT_TIMED_OUT, is_timed_out=True)
    # What the guest says of a command that it could not start is on standard error.
    return Merged(result.stdout + result.stderr, result.exit_code, result.truncated)
