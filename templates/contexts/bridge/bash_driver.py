"""Bash contexts: one interactive shell without a terminal. What one run sets, the next one sees.

Each run is a file that the shell reads in. The shell is interactive because only then an interrupt
takes it back to its next command instead of ending it.
"""

import os
import secrets

from . import events
from .driver import Outcome
from .limits import REPORTS_AGAIN_MAX
from .process import PipedDriver

OFF = "set +o history; set +H; unset PS1 PS2; PS1= PS2= PROMPT_COMMAND=\n"


class BashDriver(PipedDriver):
    program = "bash"
    # Between two commands the shell may miss one.
    needs_repeated_interrupts = True

    def __init__(self, runtime):
        super().__init__()
        self._directory = os.path.join(runtime, f"bash-{secrets.token_hex(4)}")
        self._reports_fd = None
        self._cwd = None
        # What the shell reports is of this run, or it is of none.
        self._number = 0
        self._reports_again = 0

    def words(self, reports_fd):
        self._reports_fd = reports_fd
        return ["/bin/bash", "--noprofile", "--norc", "--noediting", "-i"]

    def environment(self):
        return {**os.environ, "PS1": "", "PS2": "", "TERM": "dumb"}

    async def start(self, cwd):
        self._cwd = cwd
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        await super().start(cwd)
        await self.ask((OFF + self._end_command()).encode())
        # It complains that it has no terminal.
        self.forget_late()

    def _end_command(self):
        report = f'{{"status":%d,"number":{self._number}}}\\n'
        return f"builtin printf '{report}' \"$?\" >&{self._reports_fd}\n"

    def take_report(self, report):
        if report.get("number") == self._number:
            super().take_report(report)

    def interrupt(self):
        super().interrupt()
        # It may have hit the report itself, so that is asked for again. A second one is of no run.
        if self.is_asked() and self._reports_again < REPORTS_AGAIN_MAX:
            self._reports_again += 1
            self.tell(self._end_command().encode())

    async def execute(self, code, sink):
        self.execution_count += 1
        self._number += 1
        self._reports_again = 0
        cell = os.path.join(self._directory, "cell")
        with open(cell, "w", encoding="utf-8", errors="replace") as file:
            file.write(code)
        self.attend(sink)
        # On a line of its own the report survives an interrupt of the line before.
        command = f". {cell} </dev/null\n" + self._end_command()
        report = await self.ask(command.encode())
        self.dismiss()
        if report is None:
            return self._ended_by_itself(sink)
        status = report.get("status")
        if status == 0:
            return Outcome("ok", self.execution_count)
        sink(events.error("ExitCode", str(status)))
        return Outcome("error", self.execution_count)

    def _ended_by_itself(self, sink):
        if self.exit_status < 0:
            return Outcome("died", self.execution_count)
        # `exit`, or a command that failed under `set -e`: no accident, but the state is gone.
        note = "[the shell ended; a new one takes its place, without its variables]"
        for event in events.stream("stderr", note + "\n"):
            sink(event)
        if self.exit_status == 0:
            return Outcome("ok", self.execution_count, needs_restart=True)
        sink(events.error("ExitCode", str(self.exit_status)))
        return Outcome("error", self.execution_count, needs_restart=True)

    async def close(self):
        await super().close()
        try:
            for name in os.listdir(self._directory):
                os.unlink(os.path.join(self._directory, name))
            os.rmdir(self._directory)
        except OSError:
            pass
