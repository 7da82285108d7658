"""A sandbox as the environment of mini-SWE-agent (``mini-swe-agent``).

In its configuration::

    environment:
      environment_class: dayfly.adapters.mini_swe.DayflyEnvironment
      template: base
      egress_allowlist: ["pypi.org", "files.pythonhosted.org"]
      timeout: 60

or ``DefaultAgent(model, DayflyEnvironment(template="base"), ...)``. The sandbox is deleted by
``cleanup()``, with the object, and at the end of the program; its TTL ends it otherwise.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import DayflyError
from ..sandbox import Sandbox
from ._framework import framework, run_merged

_exceptions = framework("mini-swe", "minisweagent.exceptions")
_serialize = framework("mini-swe", "minisweagent.utils.serialize")

__all__ = ["DayflyEnvironment", "DayflyEnvironmentConfig"]

SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
FACTS = {"system": "-s", "node": "-n", "release": "-r", "version": "-v", "machine": "-m"}


@dataclass(frozen=True)
class DayflyEnvironmentConfig:
    """What an environment is made of. ``timeout`` is in seconds, and of each command."""

    template: str = "base"
    cwd: str = "/workspace"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 30
    ttl_seconds: int = 4 * 3600
    egress_allowlist: Sequence[str] = ()


class DayflyEnvironment:
    """A sandbox in which mini-SWE-agent runs its commands, each in a shell of its own.

    The arguments are the fields of ``DayflyEnvironmentConfig``; others are refused.
    """

    def __init__(self, **options: Any) -> None:
        self.config: DayflyEnvironmentConfig = DayflyEnvironmentConfig(**options)
        self.sandbox: Sandbox = Sandbox(
            self.config.template,
            ttl_seconds=self.config.ttl_seconds,
            env=self.config.env or None,
            egress_allowlist=self.config.egress_allowlist or None,
        )
        # Also at the end of the program, where __del__ is not certain to be called.
        self._ending = weakref.finalize(self, _delete, self.sandbox)
        self._facts: dict[str, str] | None = None

    def execute(
        self, action: Mapping[str, Any], cwd: str = "", *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Runs a command. What goes wrong is in ``exception_info``, not an exception."""
        limit = timeout or self.config.timeout
        command = str(action.get("command", ""))
        try:
            result = run_merged(
                self.sandbox, command, cwd=cwd or self.config.cwd, timeout_seconds=limit
            )
        except DayflyError as error:
            return _failure("", error)
        if result.is_timed_out:
            said = f"the command was ended after its timeout of {limit:g} seconds"
            return _failure(result.output, TimeoutError(said))
        output = {"output": result.output, "returncode": result.exit_code, "exception_info": ""}
        _raise_if_submitted(result.output, result.exit_code)
        return output

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """The configuration, and what the sandbox says it is, for the prompts."""
        if self._facts is None:
            flags = list(FACTS.values())
            lines = self.sandbox.exec(
                " && ".join(f"uname {flag}" for flag in flags), check=True
            ).stdout.splitlines()
            self._facts = dict(zip(FACTS, lines, strict=True))
        merged: dict[str, Any] = _serialize.recursive_merge(
            asdict(self.config), self._facts, kwargs
        )
        return merged

    def serialize(self) -> dict[str, Any]:
        """What a trajectory says of the environment."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        config = {"environment": asdict(self.config), "environment_type": kind}
        return {"info": {"config": config}}

    def cleanup(self) -> None:
        """Deletes the sandbox. Repeating that is fine."""
        self._ending()


def _delete(sandbox: Sandbox) -> None:
    try:
        sandbox.delete()
    except DayflyError:
        # Nobody is left to be told, and the TTL ends it.
        return


def _failure(output: str, error: Exception) -> dict[str, Any]:
    return {
        "output": output,
        "returncode": -1,
        "exception_info": f"An error occurred while executing the command: {error}",
        "extra": {"exception_type": type(error).__name__, "exception": str(error)},
    }


def _raise_if_submitted(output: str, exit_code: int) -> None:
    """The framework's own sign for the end of a task."""
    lines = output.lstrip().splitlines(keepends=True)
    if not lines or lines[0].strip() != SUBMIT or exit_code != 0:
        return
    submission = "".join(lines[1:])
    raise _exceptions.Submitted(
        {
            "role": "exit",
            "content": submission,
            "extra": {"exit_status": "Submitted", "submission": submission},
        }
    )
