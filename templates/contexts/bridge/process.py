"""Interpreters that the bridge talks to over pipes of its own: bash and Node."""

import asyncio
import json
import os

from .driver import Driver, OutputPipe, StartFailed, exit_text, prepare_child


class PipedDriver(Driver):
    """A process with three outputs: what it prints, what it complains about, and what it tells
    the bridge about the code that it runs, one JSON text on a line."""

    program = ""

    def __init__(self):
        super().__init__()
        self.execution_count = 0
        self._stdout = self._stderr = self._reports = None
        self._unfinished = ""
        self._report = None
        self._process = None
        self._commands = None

    def words(self, reports_fd):
        """The command line of the process. It reads commands on its standard input."""
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    async def start(self, cwd):
        self._stdout = OutputPipe(lambda text: self.print("stdout", text))
        self._stderr = OutputPipe(lambda text: self.print("stderr", text))
        self._reports = OutputPipe(self._take_report_text)
        pipes = (self._stdout, self._stderr, self._reports)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.words(self._reports.write_end),
                stdin=asyncio.subprocess.PIPE,
                stdout=self._stdout.write_end,
                stderr=self._stderr.write_end,
                pass_fds=(self._reports.write_end,),
                cwd=cwd,
                env=self.environment(),
                start_new_session=True,
                preexec_fn=prepare_child,
            )
        except OSError as error:
            for pipe in pipes:
                pipe.close()
            raise StartFailed(f"cannot start {self.program}: {error}") from error
        for pipe in pipes:
            pipe.started()
        self.pid = self._process.pid
        asyncio.ensure_future(self._watch())

    async def _watch(self):
        status = await self._process.wait()
        for pipe in (self._stdout, self._stderr, self._reports):
            pipe.drain()
        self.exit_status = status
        self.note_end(exit_text(self.program, status))

    def _take_report_text(self, text):
        lines = (self._unfinished + text).split("\n")
        self._unfinished = lines.pop()
        for line in lines:
            try:
                report = json.loads(line)
            except ValueError:
                # User code found the pipe and wrote to it.
                continue
            if isinstance(report, dict):
                self.take_report(report)

    def take_report(self, report):
        if self.is_asked():
            self._report.set_result(report)

    async def ask(self, command):
        """Writes a command and waits for its report. None if the process ended instead."""
        self._report = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(command)
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError):
            await self.ended
            return None
        await asyncio.wait({self._report, self.ended}, return_when=asyncio.FIRST_COMPLETED)
        # What it wrote before it reported belongs to this run.
        self._stdout.drain()
        self._stderr.drain()
        return self._report.result() if self._report.done() else None

    def is_asked(self):
        return self._report is not None and not self._report.done()

    def tell(self, command):
        """Writes a command behind those that the process has not read yet, and waits for nothing."""
        try:
            self._process.stdin.write(command)
        except (ConnectionError, RuntimeError):
            # Whoever waits for the report hears of the end.
            pass

    async def close(self):
        for pipe in (self._stdout, self._stderr, self._reports):
            if pipe is not None:
                pipe.close()
