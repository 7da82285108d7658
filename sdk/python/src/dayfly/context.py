"""An interpreter that keeps its state."""

from __future__ import annotations

from ._closing import Closing
from ._code import CodeWish, OnResult, run_in
from ._contexts import delete_context, interrupt_context, restart_context
from ._handles import ContextHandle
from ._keywords import known_keywords
from ._sync import Session
from ._tools import OnOutput
from .execution import Execution


class CodeContext(ContextHandle[Session], Closing):
    """A stateful interpreter; ``Sandbox.create_context`` makes one.

    ::

        with sandbox.create_context("python") as context:
            context.run("x = 41")
            print(context.run("x + 1").text)   # 42
    """

    @known_keywords
    def run(
        self,
        code: str,
        timeout_seconds: float | None = None,
        *,
        max_output_bytes: int | None = None,
        report_changes: bool | None = None,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        on_result: OnResult | None = None,
    ) -> Execution:
        """Runs code. Code that raises is no error here: see ``Execution.error``.

        Past ``timeout_seconds`` it is interrupted, ``SandboxTimeout`` is raised, and the state
        stays. ``Sandbox.run_code`` says what the other arguments mean.
        """
        wish = CodeWish(
            code,
            timeout_seconds,
            max_output_bytes,
            report_changes,
            on_stdout,
            on_stderr,
            on_result,
        )
        run = run_in(self._sandbox, self.id, wish, self._known)
        return self._session.run(run)

    run_code = run

    def interrupt(self) -> None:
        """Ends what runs now and keeps the state."""
        self._session.run(interrupt_context(self._sandbox, self.id))

    def restart(self) -> None:
        """Forgets the state."""
        self._session.run(restart_context(self._sandbox, self.id, self._known))

    def delete(self) -> None:
        """Ends it for good."""
        self._session.run(delete_context(self._sandbox, self.id, self._known))

    def close(self) -> None:
        """What the end of ``with`` does: deletes it."""
        self.delete()
