"""A sandbox as the executor of a ``CodeAgent`` of smolagents.

::

    from dayfly import Sandbox
    from dayfly.adapters.smolagents import executor
    from smolagents import CodeAgent, InferenceClientModel

    with Sandbox("code-interpreter", ttl_seconds=3600) as sandbox:
        agent = CodeAgent(tools=[], model=InferenceClientModel(), executor=executor(sandbox))
        agent.run("...")

The code of the agent, and its tools, run in one Python interpreter of the sandbox, which keeps its
variables from step to step. Deleting the sandbox is its owner's.
"""

# mypy: allow-subclassing-any

from __future__ import annotations

import io
import secrets
from collections.abc import Sequence
from typing import Any

from ..errors import SandboxTimeout
from ..execution import Execution
from ..sandbox import Sandbox
from ._framework import framework

_executors = framework("smolagents", "smolagents.remote_executors")
_local = framework("smolagents", "smolagents.local_python_executor")
_monitoring = framework("smolagents", "smolagents.monitoring")
_utils = framework("smolagents", "smolagents.utils")
_images = framework("smolagents", "PIL.Image")

# By a name of its own: mypy takes no attribute of `Any` as a base.
_RemotePythonExecutor: Any = _executors.RemotePythonExecutor

__all__ = ["executor"]

TIMEOUT_SECONDS = 120
# The text of an exception is cut where it is long, at no less than this.
WHOLE_BYTES = 1024
# The interpreter has the exception until the next one.
SAVE = """
with open({path!r}, "w", encoding="utf-8") as file:
    file.write(__import__("sys").last_value.value)
del file
"""


def executor(
    sandbox: Sandbox,
    *,
    packages: Sequence[str] = (),
    timeout_seconds: float = TIMEOUT_SECONDS,
    logger: Any = None,
) -> Any:
    """A ``PythonExecutor`` that runs code in a sandbox, whose template must have contexts.

    - ``packages``: installed with pip first, for which the sandbox needs a network that reaches an
      index. Those that tools name as their requirements are installed as well.
    - ``timeout_seconds``: of each step. What it did until then stays.
    - ``logger``: an ``AgentLogger``; by default one that tells errors only.

    Values come back as JSON and never as pickle: what a sandbox says is not trusted.
    """
    level = _monitoring.LogLevel.ERROR
    return _Executor(
        sandbox, list(packages), timeout_seconds, logger or _monitoring.AgentLogger(level=level)
    )


class _Executor(_RemotePythonExecutor):
    def __init__(
        self, sandbox: Sandbox, packages: list[str], timeout_seconds: float, logger: Any
    ) -> None:
        _RemotePythonExecutor.__init__(self, packages, logger, allow_pickle=False)
        self._sandbox = sandbox
        self._timeout_seconds = timeout_seconds
        self.installed_packages = self.install_packages(packages)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        if additional_imports:
            command = ["python3", "-m", "pip", "install", "--quiet", *additional_imports]
            self._sandbox.exec(command, check=True)
        return additional_imports

    def run_code_raise_errors(self, code: str) -> Any:
        try:
            execution = self._sandbox.run_code(code, timeout_seconds=self._timeout_seconds)
        except SandboxTimeout as error:
            raise _utils.AgentError(str(error), self.logger) from error
        raised = execution.error
        if raised is not None and raised.name == self.FINAL_ANSWER_EXCEPTION:
            value = self._whole(raised.value)
            answer = self._deserialize_final_answer(value, allow_pickle=False)
            return _local.CodeOutput(output=answer, logs=execution.stdout, is_final_answer=True)
        if not execution.ok:
            raise _utils.AgentError(execution.for_model(), self.logger)
        logs = execution.stdout + execution.stderr
        return _local.CodeOutput(output=_shown(execution), logs=logs, is_final_answer=False)

    def _whole(self, value: str) -> str:
        """All of a final answer, which comes as the text of an exception; a long one is cut."""
        if len(value.encode()) < WHOLE_BYTES:
            return value
        path = f"/tmp/.dayfly-answer-{secrets.token_hex(8)}"
        self._sandbox.run_code(SAVE.format(path=path)).raise_for_error()
        whole = self._sandbox.files.read_text(path)
        self._sandbox.files.remove(path)
        return whole

    def cleanup(self) -> None:
        """Nothing: the sandbox is its owner's to delete."""


def _shown(execution: Execution) -> Any:
    """What the code displayed last: a picture, or a text."""
    picture = execution.png or execution.jpeg
    if picture is not None:
        return _images.open(io.BytesIO(picture))
    return next((str(result) for result in reversed(execution.results)), None)
