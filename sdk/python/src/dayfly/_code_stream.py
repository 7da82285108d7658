"""A run of code that is followed as it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ._effects import Body, Operation, Read, ask
from ._kept import KeptText, omission
from ._sse import Event, EventParser
from ._tools import OnOutput
from ._wire import CALL_SECONDS, Json
from .errors import AnswerLost, SandboxTimeout, error_of_fields
from .execution import Execution, Result, execution_from_wire


class RunCollector:
    """Puts a streamed run together."""

    def __init__(
        self,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        on_result: Callable[[Result], Any] | None = None,
        max_output_bytes: int | None = None,
    ) -> None:
        self._callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        self._on_result = on_result
        self._kept = {
            "stdout": KeptText(max_output_bytes),
            "stderr": KeptText(max_output_bytes),
        }
        self._wire: Json = {"results": []}
        self.is_over = False

    def take(self, event: Event) -> Operation[None]:
        data: Json = json.loads(event.data)
        if event.name in self._kept:
            chunk = str(data.get("chunk", ""))
            self._kept[event.name].add(chunk)
            yield from ask(self._callbacks[event.name], chunk)
        elif event.name == "result":
            found = data.get("data", {})
            self._wire["results"].append(found)
            yield from ask(self._on_result, Result(found))
        elif event.name == "failure":
            self._wire["error"] = data.get("error")
            self._wire["traceback"] = data.get("traceback")
        elif event.name == "dropped":
            self._wire["truncated"] = True
        elif event.name == "restarted":
            self._wire["state_lost"] = True
        elif event.name == "end":
            self._wire.update(data)
            self.is_over = True
        elif event.name == "error":
            raise error_of_fields(data)

    def texts(self) -> tuple[str, str]:
        return self._kept["stdout"].give()[0], self._kept["stderr"].give()[0]

    def finish(self) -> Execution:
        status = self._wire.get("status", "ok")
        stdout, stderr = self.texts()
        if status == "timed_out":
            error = SandboxTimeout(
                "the code ran longer than its limit and was interrupted",
                code="timeout",
                status=504,
            )
            error.stdout, error.stderr = stdout, stderr
            raise error
        if status != "ok":
            self._wire.setdefault("error", status)
        omitted = self._omitted()
        wire = {**self._wire, "stdout": stdout, "stderr": stderr}
        return execution_from_wire(
            {
                **wire,
                "exit_code": 0 if status == "ok" else 1,
                "truncated": bool(omitted) or wire.get("truncated", False),
                "omitted": omitted,
            }
        )

    def _omitted(self) -> list[dict[str, Any]]:
        found = [(name, kept.give()[1]) for name, kept in self._kept.items()]
        # The events of a run are not kept by offset, so nobody can read them again.
        return [omission(name, *cut, is_readable=False) for name, cut in found if cut is not None]


def read_run(body: Body, collector: RunCollector) -> Operation[None]:
    """Reads events until the run is over. A stream that ends before is an error."""
    parser = EventParser()
    try:
        while not collector.is_over:
            piece: bytes = yield Read(body, CALL_SECONDS)
            if not piece:
                raise AnswerLost("the stream ended too early")
            for event in parser.push(piece):
                yield from collector.take(event)
    finally:
        body.close()
