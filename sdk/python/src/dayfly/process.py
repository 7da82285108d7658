"""A command that runs by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import overload

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
from ._sync import Session
from ._tools import OnOutput
from .models import ExecResult, Output, OutputChunk, ProcessInfo


class Attached:
    """The output of a command as it comes: iterate over it, then ask how the command ended.

    ::

        attached = process.attach()
        for chunk in attached:
            print(chunk.stream, chunk.text)
        print(attached.wait().exit_code)
    """

    def __init__(self, session: Session, attachment: Attachment) -> None:
        self._session = session
        self._attachment = attachment

    def __iter__(self) -> Iterator[OutputChunk]:
        return self

    def __next__(self) -> OutputChunk:
        chunk = self._session.run(self._attachment.next_chunk())
        if chunk is None:
            raise StopIteration
        return chunk

    def wait(self) -> ExecResult:
        """Reads what is left, and gives how the command ended."""
        return self._session.run(self._attachment.finish())

    def close(self) -> None:
        """Stops reading. The command goes on."""
        self._attachment.close()

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Process(ProcessHandle[Session]):
    """A command in the background; ``Sandbox.exec_background`` makes one.

    It belongs to its sandbox, not to this object::

        server = sandbox.exec_background("python3 -m http.server 8000")
        print(server.output())
        server.kill()
    """

    def info(self) -> ProcessInfo:
        """Asks the server how it is now."""
        return self._session.run(get_process(self._sandbox, self.exec_id))

    def is_running(self) -> bool:
        """Whether it still runs. Asks the server."""
        return self.info().is_running

    @known_keywords
    def wait(self, timeout_seconds: float | None = None) -> ExecResult:
        """Waits for its end. After ``timeout_seconds`` raises ``AnswerTimeout``; it goes on."""
        return self._session.run(wait_process(self._sandbox, self.exec_id, timeout_seconds))

    @overload
    def attach(self, *, stdout_offset: int = 0, stderr_offset: int = 0) -> Attached: ...

    @overload
    def attach(
        self,
        on_stdout: OnOutput,
        on_stderr: OnOutput | None = None,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
    ) -> ExecResult: ...

    @overload
    def attach(
        self,
        on_stdout: None = None,
        *,
        on_stderr: OnOutput,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
    ) -> ExecResult: ...

    @known_keywords
    def attach(
        self,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
    ) -> Attached | ExecResult:
        """Its output as it comes: ``for chunk in process.attach()``.

        - ``on_stdout``, ``on_stderr``: get it instead; then this waits for the command's end
          and gives its result.
        - ``stdout_offset``, ``stderr_offset``: where to begin, in bytes; by default at the start.
        """
        if on_stdout is None and on_stderr is None:
            attachment = Attachment(self._sandbox, self.exec_id, stdout_offset, stderr_offset)
            return Attached(self._session, attachment)
        follow = follow_process(
            self._sandbox, self.exec_id, on_stdout, on_stderr, stdout_offset, stderr_offset
        )
        return self._session.run(follow)

    def output(self) -> Output:
        """What is kept of its output, as text."""
        return self._session.run(read_logs(self._sandbox, self.exec_id))

    @known_keywords
    def output_bytes(
        self, stream: StreamName = "stdout", offset: int = 0, limit: int | None = None
    ) -> bytes:
        """What is kept of one stream from an offset on, as bytes."""
        read = read_output(self._sandbox, self.exec_id, stream, offset, limit)
        return self._session.run(read)

    @known_keywords
    def send_stdin(self, data: str | bytes, *, close: bool = False) -> None:
        """Sends input. The command must have been started with ``stdin_open=True``."""
        content = data.encode() if isinstance(data, str) else data
        send = send_stdin(self._sandbox, self.exec_id, content, self._stdin_offset, close=close)
        self._stdin_offset = self._session.run(send)

    def close_stdin(self) -> None:
        """Ends its input."""
        self.send_stdin(b"", close=True)

    def signal(self, number: int) -> None:
        """Sends a signal to its process group."""
        self._session.run(signal_process(self._sandbox, self.exec_id, number))

    def kill(self) -> None:
        """Ends it and its child processes. Its output is kept; repeating is fine."""
        self._session.run(kill_process(self._sandbox, self.exec_id))

    def delete(self) -> None:
        """Ends it and its child processes, and drops its output."""
        self._session.run(delete_process(self._sandbox, self.exec_id))
