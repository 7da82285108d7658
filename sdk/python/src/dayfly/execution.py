"""What code gave: output, displayed results, and the error that ended it."""

from __future__ import annotations

import base64
import json as json_module
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from .errors import CodeFailed


@dataclass(frozen=True)
class ExecutionError:
    """The error that ended the code: its class, its text and its traceback."""

    name: str
    value: str = ""
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.value}" if self.value else self.name


@dataclass(frozen=True)
class Result:
    """One thing that the code displayed, in every form that it has. Images are bytes."""

    data: Mapping[str, str]

    @property
    def text(self) -> str | None:
        return self.data.get("text/plain")

    @property
    def html(self) -> str | None:
        return self.data.get("text/html")

    @property
    def markdown(self) -> str | None:
        return self.data.get("text/markdown")

    @property
    def latex(self) -> str | None:
        return self.data.get("text/latex")

    @property
    def svg(self) -> str | None:
        return self.data.get("image/svg+xml")

    @property
    def png(self) -> bytes | None:
        return self._bytes("image/png")

    @property
    def jpeg(self) -> bytes | None:
        return self._bytes("image/jpeg")

    @property
    def json(self) -> Any:
        text = self.data.get("application/json")
        return None if text is None else json_module.loads(text)

    @property
    def formats(self) -> list[str]:
        return sorted(self.data)

    def _bytes(self, kind: str) -> bytes | None:
        text = self.data.get(kind)
        return None if text is None else base64.b64decode(text)

    # The names by which notebooks find how to show a value.
    def _repr_html_(self) -> str | None:
        return self.html

    def _repr_png_(self) -> bytes | None:
        return self.png

    def __str__(self) -> str:
        return self.text or f"<{', '.join(self.formats)}>"


@dataclass(frozen=True)
class Execution:
    """What a run of code gave.

    When the code raised, ``stderr`` ends with the traceback, as it would on a terminal, and
    ``error`` has it in parts. ``text``, ``png`` and the other forms are those of the last result
    that has them::

        execution = sandbox.run_code("import math; math.sqrt(2)")
        execution.text          # '1.4142135623730951'
        execution.raise_for_error()
    """

    results: list[Result] = field(default_factory=list[Result])
    stdout: str = ""
    stderr: str = ""
    error: ExecutionError | None = None
    exit_code: int = 0
    status: str = "ok"
    duration_ms: int = 0
    execution_count: int | None = None
    truncated: bool = False
    hint: str | None = None
    changed_files: list[str] | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and self.exit_code == 0

    @property
    def text(self) -> str | None:
        return self._last("text")

    @property
    def html(self) -> str | None:
        return self._last("html")

    @property
    def markdown(self) -> str | None:
        return self._last("markdown")

    @property
    def latex(self) -> str | None:
        return self._last("latex")

    @property
    def svg(self) -> str | None:
        return self._last("svg")

    @property
    def png(self) -> bytes | None:
        return self._last("png")

    @property
    def jpeg(self) -> bytes | None:
        return self._last("jpeg")

    @property
    def json(self) -> Any:
        return self._last("json")

    def _last(self, form: str) -> Any:
        found = (getattr(result, form) for result in reversed(self.results))
        return next((value for value in found if value is not None), None)

    def save_png(self, path: str | PathLike[str]) -> Path:
        """Writes the last PNG to a local file and gives its path."""
        content = self.png
        if content is None:
            raise ValueError("the code displayed no PNG")
        target = Path(path)
        target.write_bytes(content)
        return target

    def raise_for_error(self) -> Execution:
        """Raises ``CodeFailed`` if the code did; otherwise gives this back."""
        if self.error is not None:
            raise CodeFailed(self.error.name, self.error.value, self.error.traceback)
        return self

    def __str__(self) -> str:
        parts = [self.stdout.rstrip("\n"), *map(str, self.results), self.stderr.rstrip("\n")]
        if self.error is not None and not self.error.traceback:
            parts.append(f"[{self.error}]")
        return "\n".join(part for part in parts if part)


def execution_from_wire(data: Mapping[str, Any]) -> Execution:
    line = data.get("error")
    error = None
    if isinstance(line, str):
        error = error_from_line(line, data.get("traceback") or [])
    return Execution(
        results=[Result(one) for one in data.get("results", [])],
        stdout=data.get("stdout", ""),
        stderr=_with_traceback(data.get("stderr", ""), error),
        error=error,
        exit_code=data.get("exit_code", 0),
        status=data.get("status", "ok"),
        duration_ms=data.get("duration_ms", 0),
        execution_count=data.get("execution_count"),
        truncated=data.get("truncated", False),
        hint=data.get("hint"),
        changed_files=data.get("changed_files"),
    )


def _with_traceback(stderr: str, error: ExecutionError | None) -> str:
    """The wire has them apart; who reads `stderr` after a failure wants to see why."""
    if error is None or not error.traceback:
        return stderr
    gap = "\n" if stderr and not stderr.endswith("\n") else ""
    return f"{stderr}{gap}{error.traceback}\n"


def error_from_line(line: str, traceback: list[str]) -> ExecutionError:
    """The wire has the error as one line, ``Name: text``."""
    name, _, value = line.partition(": ")
    return ExecutionError(name, value, "\n".join(traceback))
