"""As ``process``, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import overload

from ._async import AsyncSession
from ._commands import (
    Attachment,
    delete_process,
    follow_process,
    get_process,
    kill_process,
    read_logs,
    read_output,
    send_stdin,
    signal_process,
    wait_process,
)
from ._handles import ProcessHandle
from ._keywords import known_keywords
from ._options import StreamName
from ._tools import OnOutput
from .models import ExecResult, Output, OutputChunk, ProcessInfo


class AsyncAttached:
    """As ``Attached``, for ``async for``."""

    def __init__(self, session: AsyncSession, attachment: Attachment) -> None:
        self._session = session
        self._attachment = attachment

    def __aiter__(self) -> AsyncIterator[OutputChunk]:
        return self

    async def __anext__(self) -> OutputChunk:
        chunk = await self._session.run(self._attachment.next_chunk())
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def wait(self) -> ExecResult:
        """Reads what is left, and gives how the command ended."""
        return await self._session.run(self._attachment.finish())

    def close(self) -> None:
        """Stops reading. The command goes on."""
        self._attachment.close()

    async def __aenter__(self) -> AsyncAttached:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncProcess(ProcessHandle[AsyncSession]):
    """As ``Process``, for asyncio."""

    async def info(self) -> ProcessInfo:
        """Asks the server how it is now."""
        return await self._session.run(get_process(self._sandbox, self.exec_id))

    async def is_running(self) -> bool:
        """Whether it still runs. Asks the server."""
        return (await self.info()).is_running

    @known_keywords
    async def wait(self, timeout_seconds: float | None = None) -> ExecResult:
        """Waits for its end. After ``timeout_seconds`` raises ``AnswerTimeout``; it goes on."""
        return await self._session.run(wait_process(self._sandbox, self.exec_id, timeout_seconds))

    @overload
    def attach(self, *, stdout_offset: int = 0, stderr_offset: int = 0) -> AsyncAttached: ...

    @overload
    def attach(
        self,
        on_stdout: OnOutput,
        on_stderr: OnOutput | None = None,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
    ) -> Awaitable[ExecResult]: ...

    @overload
    def attach(
        self,
        on_stdout: None = None,
        *,
        on_stderr: OnOutput,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
    ) -> Awaitable[ExecResult]: ...

    @known_keywords
    def attach(
        self,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
    ) -> AsyncAttached | Awaitable[ExecResult]:
        """Its output as it comes: ``async for chunk in process.attach()``.

        - ``on_stdout``, ``on_stderr``: get it instead; then it is to be awaited, and gives the
          result when the command has ended.
        - ``stdout_offset``, ``stderr_offset``: where to begin, in bytes; by default at the start.
        """
        if on_stdout is None and on_stderr is None:
            attachment = Attachment(self._sandbox, self.exec_id, stdout_offset, stderr_offset)
            return AsyncAttached(self._session, attachment)
        follow = follow_process(
            self._sandbox, self.exec_id, on_stdout, on_stderr, stdout_offset, stderr_offset
        )
        return self._session.run(follow)

    async def output(self) -> Output:
        """What is kept of its output, as text."""
        return await self._session.run(read_logs(self._sandbox, self.exec_id))

    @known_keywords
    async def output_bytes(
        self, stream: StreamName = "stdout", offset: int = 0, limit: int | None = None
    ) -> bytes:
        """What is kept of one stream from an offset on, as bytes."""
        read = read_output(self._sandbox, self.exec_id, stream, offset, limit)
        return await self._session.run(read)

    @known_keywords
    async def send_stdin(self, data: str | bytes, *, close: bool = False) -> None:
        """Sends input. The command must have been started with ``stdin_open=True``."""
        content = data.encode() if isinstance(data, str) else data
        send = send_stdin(self._sandbox, self.exec_id, content, self._stdin_offset, close=close)
        self._stdin_offset = await self._session.run(send)

    async def close_stdin(self) -> None:
        """Ends its input."""
        await self.send_stdin(b"", close=True)

    async def signal(self, number: int) -> None:
        """Sends a signal to its process group."""
        await self._session.run(signal_process(self._sandbox, self.exec_id, number))

    async def kill(self) -> None:
        """Ends it and its child processes. Its output is kept; repeating is fine."""
        await self._session.run(kill_process(self._sandbox, self.exec_id))

    async def delete(self) -> None:
        """Ends it and its child processes, and drops its output."""
        await self._session.run(delete_process(self._sandbox, self.exec_id))
