"""As ``process``, for asyncio."""

from __future__ import annotations

from ._async import AsyncSession
from ._commands import (
    follow_process,
    get_process,
    kill_process,
    read_logs,
    read_output,
    send_stdin,
    signal_process,
    wait_process,
)
from ._follow import OnOutput
from ._handles import ProcessHandle
from .models import ExecResult, Output, ProcessInfo


class AsyncProcess(ProcessHandle[AsyncSession]):
    """As ``Process``, for asyncio."""

    async def info(self) -> ProcessInfo:
        return await self._session.run(get_process(self._sandbox, self.exec_id))

    async def is_running(self) -> bool:
        return (await self.info()).is_running

    async def wait(self, timeout_seconds: float | None = None) -> ExecResult:
        """Waits for its end. After ``timeout_seconds`` raises ``AnswerTimeout``; it goes on."""
        return await self._session.run(wait_process(self._sandbox, self.exec_id, timeout_seconds))

    async def follow(
        self, on_stdout: OnOutput | None = None, on_stderr: OnOutput | None = None
    ) -> ExecResult:
        """Tells its output from the beginning on, as it comes, until its end."""
        follow = follow_process(self._sandbox, self.exec_id, on_stdout, on_stderr)
        return await self._session.run(follow)

    async def logs(self) -> Output:
        """What is kept of its output, as text."""
        return await self._session.run(read_logs(self._sandbox, self.exec_id))

    async def output(
        self, stream: str = "stdout", offset: int = 0, limit: int | None = None
    ) -> bytes:
        """What is kept of one stream from an offset on, as bytes."""
        read = read_output(self._sandbox, self.exec_id, stream, offset, limit)
        return await self._session.run(read)

    async def send_stdin(self, data: str | bytes, *, close: bool = False) -> None:
        """Sends input. The command must have been started with ``stdin_open=True``."""
        content = data.encode() if isinstance(data, str) else data
        send = send_stdin(self._sandbox, self.exec_id, content, self._stdin_offset, close=close)
        self._stdin_offset = await self._session.run(send)

    async def close_stdin(self) -> None:
        await self.send_stdin(b"", close=True)

    async def signal(self, number: int) -> None:
        """Sends a signal to its process group."""
        await self._session.run(signal_process(self._sandbox, self.exec_id, number))

    async def kill(self) -> None:
        """Ends it and everything that it started, and drops its output.

        To keep the output, and to have ``wait`` tell how it ended, send ``signal(9)``.
        """
        await self._session.run(kill_process(self._sandbox, self.exec_id))
