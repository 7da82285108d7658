"""As ``context``, for asyncio."""

from __future__ import annotations

from ._async import AsyncSession
from ._async_ending import run_and_undo
from ._closing import AsyncClosing
from ._code import CodeWish, OnResult, run_in
from ._contexts import delete_context, interrupt_context, restart_context
from ._handles import ContextHandle
from ._keywords import known_keywords
from ._tools import OnOutput
from .execution import Execution


class AsyncCodeContext(ContextHandle[AsyncSession], AsyncClosing):
    """As ``CodeContext``, for asyncio."""

    @known_keywords
    async def run(
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
        return await run_and_undo(self._session, run)

    run_code = run

    async def interrupt(self) -> None:
        """Ends what runs now and keeps the state."""
        await self._session.run(interrupt_context(self._sandbox, self.id))

    async def restart(self) -> None:
        """Forgets the state."""
        await self._session.run(restart_context(self._sandbox, self.id, self._known))

    async def delete(self) -> None:
        """Ends it for good."""
        await self._session.run(delete_context(self._sandbox, self.id, self._known))

    async def close(self) -> None:
        """What the end of ``with`` does: deletes it."""
        await self.delete()
