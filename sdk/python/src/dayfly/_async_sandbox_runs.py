"""As ``_sandbox_runs``, for asyncio."""

from __future__ import annotations

import builtins
from collections.abc import Mapping

from . import _code, _commands, _contexts
from ._async_context import AsyncCodeContext
from ._async_ending import Making, run_and_undo
from ._async_process import AsyncProcess
from ._async_pty import AsyncPty
from ._async_sandbox_parts import AsyncSandboxParts
from ._async_tools import AsyncTools
from ._code import OnResult
from ._commands import Command
from ._handles import context_id
from ._keywords import known_keywords
from ._options import Language, LogWhenFull, RunMode
from ._terminal import terminal
from ._tools import OnOutput, Own
from .execution import Execution
from .models import ContextInfo, ExecResult


class AsyncSandboxRuns(AsyncSandboxParts):
    """Commands and code of a sandbox."""

    @known_keywords
    async def exec(
        self,
        cmd: Command,
        *,
        timeout_seconds: float | None = None,
        env: Own[Mapping[str, str] | None] = None,
        cwd: str | None = None,
        user: Own[str | None] = None,
        stdin: Own[str | bytes | None] = None,
        check: Own[bool] = False,
        on_stdout: Own[OnOutput | None] = None,
        on_stderr: Own[OnOutput | None] = None,
        max_output_bytes: Own[int | None] = None,
        report_changes: Own[bool | None] = None,
        memory_mb: Own[int | None] = None,
        cpu_seconds: Own[float | None] = None,
        max_processes: Own[int | None] = None,
        log_max_bytes: Own[int | None] = None,
        log_when_full: Own[LogWhenFull | None] = None,
    ) -> ExecResult:
        """Runs a command: a text for the shell, or a program with its arguments as a list.

        A status other than 0 is a result like any other. After a lost connection a stream goes on
        where it was, and if it cannot, ``ExecInterrupted`` is raised.

        - ``timeout_seconds``: past it the command and its child processes are killed and
          ``SandboxTimeout`` is raised, with the output until then. There is no limit by default.
        - ``env``, ``cwd``, ``user``, ``stdin``: by default nothing, ``/workspace``, ``agent`` and
          nothing.
        - ``check``: raises ``CommandFailed`` for a status other than 0.
        - ``on_stdout``, ``on_stderr``: get the output as it comes.
        - ``max_output_bytes``: of a longer stream the result has the head and the tail, with a mark
          for what is left out; ``omitted`` names the parts.
        - ``report_changes``: ``changed_files`` lists what changed meanwhile. Not with callbacks.
        - ``memory_mb``, ``cpu_seconds``: over them it is killed, with the reason
          ``limit_exceeded``. ``max_processes``: more cannot be started.
        - ``log_max_bytes``: what the sandbox keeps of each stream, 64 MiB by default;
          ``log_when_full``: ``"drop_oldest"``, or ``"block"``, and the command waits for a reader.
        """
        body = _commands.exec_body(
            cmd,
            timeout_seconds=timeout_seconds,
            env=env,
            cwd=cwd,
            user=user,
            stdin=stdin,
            max_output_bytes=max_output_bytes,
            report_changes=report_changes,
            memory_mb=memory_mb,
            cpu_seconds=cpu_seconds,
            max_processes=max_processes,
            log_max_bytes=log_max_bytes,
            log_when_full=log_when_full,
        )
        run = _commands.run_command(
            self.id,
            body,
            check=check,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            sandbox_memory_mb=self._info.memory_mb,
        )
        return await self._session.run(run)

    @known_keywords
    async def exec_background(
        self,
        cmd: Command,
        *,
        timeout_seconds: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        stdin: str | bytes | None = None,
        stdin_open: bool = False,
        memory_mb: int | None = None,
        cpu_seconds: float | None = None,
        max_processes: int | None = None,
        log_max_bytes: int | None = None,
        log_when_full: LogWhenFull | None = None,
    ) -> AsyncProcess:
        """Starts a command and leaves it running. There is no timeout unless one is given.

        - ``stdin_open``: more input comes by ``Process.send_stdin``.
        - The others mean what they mean for ``exec``.
        """
        body = _commands.exec_body(
            cmd,
            timeout_seconds=timeout_seconds,
            env=env,
            cwd=cwd,
            user=user,
            stdin=stdin,
            stdin_open=True if stdin_open else None,
            memory_mb=memory_mb,
            cpu_seconds=cpu_seconds,
            max_processes=max_processes,
            log_max_bytes=log_max_bytes,
            log_when_full=log_when_full,
        )
        info = await self._session.run(_commands.start_process(self.id, body))
        return AsyncProcess(self._session, self.id, info)

    async def processes(self) -> builtins.list[AsyncProcess]:
        """Commands that run, and those that ran."""
        found = await self._session.run(_commands.list_processes(self.id))
        return [AsyncProcess(self._session, self.id, info) for info in found]

    async def process(self, exec_id: str) -> AsyncProcess:
        """The command of that id."""
        info = await self._session.run(_commands.get_process(self.id, exec_id))
        return AsyncProcess(self._session, self.id, info)

    @known_keywords
    def pty(
        self,
        *,
        cols: int = 80,
        rows: int = 24,
        command: Command | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
    ) -> Making[AsyncPty]:
        """Opens a terminal for a command, by default for a shell that somebody types into.

        ::

            async with sandbox.pty(cols=120, rows=40) as pty:
                await pty.write("ls --color\\n")
                print(await pty.read())
        """
        opened = terminal(cols, rows, command, env, cwd, user)
        return Making(AsyncPty.open(self._session, self.id, opened))

    @known_keywords
    async def run(
        self,
        code: str,
        *,
        mode: RunMode | None = None,
        timeout_seconds: float | None = None,
        max_output_bytes: int | None = None,
        report_changes: bool | None = None,
    ) -> Execution:
        """Runs ``code`` as the template means it.

        A command line in ``base``, ``agent`` and ``code-interpreter``; in ``python-data`` Python
        that keeps its state from call to call. ``mode`` overrides it: ``"shell"``, ``"python"``
        (a fresh interpreter) or ``"python_context"``. The others are as for ``run_code``.
        """
        run = _code.run(self.id, code, mode, timeout_seconds, max_output_bytes, report_changes)
        return await self._session.run(run)

    @known_keywords
    async def run_code(
        self,
        code: str,
        language: Language = "python",
        context: Own[AsyncCodeContext | str | None] = None,
        timeout_seconds: float | None = None,
        *,
        max_output_bytes: Own[int | None] = None,
        report_changes: Own[bool | None] = None,
        on_stdout: Own[OnOutput | None] = None,
        on_stderr: Own[OnOutput | None] = None,
        on_result: Own[OnResult | None] = None,
    ) -> Execution:
        """Runs code in a context, by default in the sandbox's own, which keeps its state.

        In templates without contexts, such as ``base``, each call is a fresh interpreter. Code
        that raises is no error here: see ``Execution.error``. A call that is cancelled, or ended
        by Ctrl-C, interrupts its code and leaves the context free. An interpreter that has ended
        is started again by the next call, whose ``Execution.state_lost`` is set then.

        - ``language``: ``"python"``, ``"bash"`` or ``"javascript"``, each with its own context.
        - ``context``: another one, by handle or by name.
        - ``timeout_seconds``: past it the code is interrupted, the state stays, and
          ``SandboxTimeout`` is raised with the output until then.
        - ``max_output_bytes``, ``report_changes``: as for ``exec``.
        - ``on_stdout``, ``on_stderr``, ``on_result``: get output and displayed results as they
          come.
        """
        wish = _code.CodeWish(
            code,
            timeout_seconds,
            max_output_bytes,
            report_changes,
            on_stdout,
            on_stderr,
            on_result,
        )
        if context is None:
            run = _code.run_in_default(self.id, language, wish, self._contexts)
        else:
            run = _code.run_in(self.id, context_id(context), wish, self._contexts)
        return await run_and_undo(self._session, run)

    @known_keywords
    async def create_context(
        self, language: Language = "python", cwd: str | None = None
    ) -> AsyncCodeContext:
        """A further interpreter, apart from all others."""
        name = _contexts.language_name(language)
        info = await self._session.run(_contexts.create_context(self.id, name, cwd))
        return AsyncCodeContext(self._session, self.id, info, self._contexts)

    async def context(self, name: str) -> AsyncCodeContext:
        """The context of that name: ``"default"`` is the one that ``run_code`` uses.

        Those of other languages are ``"default-bash"`` and ``"default-javascript"``.
        """
        info = await self._session.run(_contexts.find_context(self.id, name))
        return AsyncCodeContext(self._session, self.id, info, self._contexts)

    async def contexts(self) -> builtins.list[ContextInfo]:
        """The contexts that there are, and whether each is ``idle``, ``busy`` or ``dead``."""
        return await self._session.run(_contexts.list_contexts(self.id))

    def tools(self, *names: str) -> AsyncTools:
        """Tools for an agent that uses this sandbox: all of them, or those of these names.

        ``run_code``, ``run_shell``, ``read_file``, ``write_file``, ``edit_file``, ``list_files``,
        ``search_files``, ``fork``, ``snapshot``, ``rollback``, ``expose_port``; and if named
        ``bash`` and ``text_editor``, which are Anthropic's own types.
        """
        return AsyncTools(self._session, self._tool_target(), names)
