"""JavaScript contexts: Node's own REPL, driven over pipes by `programs/javascript.cjs`."""

import json
import os
import shutil

from . import events
from .driver import Outcome, StartFailed
from .process import PipedDriver

PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs", "javascript.cjs"
)


class JavascriptDriver(PipedDriver):
    program = "node"
    # A loop behind an `await` runs where Node looks for no signal.
    may_be_ended_by_interrupt = True

    def words(self, reports_fd):
        node = shutil.which("node")
        if node is None:
            raise StartFailed("there is no node in this guest")
        return [node, PROGRAM, str(reports_fd)]

    def environment(self):
        return {**os.environ, "NODE_DISABLE_COLORS": "1"}

    async def execute(self, code, sink):
        self.execution_count += 1
        self.attend(sink)
        command = json.dumps({"code": code, "number": self.execution_count})
        report = await self.ask(command.encode() + b"\n")
        self.dismiss()
        if report is None:
            return Outcome("died", self.execution_count)
        if "error" in report:
            error = report["error"]
            sink(events.error(error["name"], error["value"], error["traceback"]))
            return Outcome("error", self.execution_count)
        if "data" in report:
            event = events.result(report["data"], is_main=True)
            if event is not None:
                sink(event)
        return Outcome("ok", self.execution_count)
