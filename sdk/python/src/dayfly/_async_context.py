"""As ``context``, for asyncio."""

from __future__ import annotations

from ._async import AsyncSession
from ._code import change_context, delete_context, run_in_context, stream_in_context
from ._follow import OnOutput
from ._handles import ContextHandle
from .errors import DayflyError
from .execution import Execution


class AsyncCodeContext(ContextHandle[AsyncSession]):
    """As ``CodeContext``, for asyncio."""

    async def run_code(
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
        return await self._session.run(run)

    run = run_code

    async def interrupt(self) -> None:
        """Ends what runs now and keeps the state."""
        await self._session.run(change_context(self._sandbox, self.id, "interrupt"))

    async def restart(self) -> None:
        """Forgets the state."""
        await self._session.run(change_context(self._sandbox, self.id, "restart"))

    async def close(self) -> None:
        await self._session.run(delete_context(self._sandbox, self.id))

    async def __aenter__(self) -> AsyncCodeContext:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.close()
        except DayflyError:
            # What went wrong inside is the better news; the context ends with its sandbox.
            if error is None:
                raise
