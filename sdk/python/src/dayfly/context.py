"""An interpreter that keeps its state."""

from __future__ import annotations

from ._code import change_context, delete_context, run_in_context, stream_in_context
from ._follow import OnOutput
from ._handles import ContextHandle
from ._sync import Session
from .errors import DayflyError
from .execution import Execution


class CodeContext(ContextHandle[Session]):
    """A stateful interpreter; ``Sandbox.create_context`` makes one.

    ::

        with sandbox.create_context("python") as context:
            context.run_code("x = 41")
            print(context.run_code("x + 1").text)   # 42
    """

    def run_code(
        self,
        code: str,
        timeout_seconds: float | None = None,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
    ) -> Execution:
        """Runs code. Code that raises is no error here: see ``Execution.error``.

        Past ``timeout_seconds`` it is interrupted, ``SandboxTimeout`` is raised, and the state
        stays.
        """
        if on_stdout is None and on_stderr is None:
            run = run_in_context(self._sandbox, self.id, code, timeout_seconds)
        else:
            run = stream_in_context(
                self._sandbox, self.id, code, timeout_seconds, on_stdout, on_stderr
            )
        return self._session.run(run)

    run = run_code

    def interrupt(self) -> None:
        """Ends what runs now and keeps the state."""
        self._session.run(change_context(self._sandbox, self.id, "interrupt"))

    def restart(self) -> None:
        """Forgets the state."""
        self._session.run(change_context(self._sandbox, self.id, "restart"))

    def close(self) -> None:
        self._session.run(delete_context(self._sandbox, self.id))

    def __enter__(self) -> CodeContext:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except DayflyError:
            # What went wrong inside is the better news; the context ends with its sandbox.
            if error is None:
                raise
