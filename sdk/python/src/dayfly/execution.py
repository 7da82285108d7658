"""What code gave: output, displayed results, and the error that ended it."""

from __future__ import annotations

import base64
import json as json_module
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from ._for_model import (
    MODEL_BYTES,
    NOTHING,
    Section,
    changed,
    hinted,
    left_out,
    named,
    pictures,
    seconds,
    shaped,
    stream,
)
from ._hints import worded
from .errors import CodeFailed

T = TypeVar("T")

SILENT = "nothing was printed; print what you want to see, or end with an expression"
# What a value is shown as that has no plain text.
_TEXTS = ("text/plain", "text/markdown", "application/json", "text/latex", "text/html")


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

    When the code raised, ``stderr`` has what the program printed there and ends with the traceback,
    as on a terminal. ``error.traceback`` is the same text once more: show one of them, or
    ``for_model()``, which has everything once. ``text``, ``png`` and the other forms are those of
    the last result that has them::

        execution = sandbox.run_code("import math; math.sqrt(2)")
        execution.text          # '1.4142135623730951'
        execution.raise_for_error()

    ``state_lost`` says that the interpreter had ended before, and the code ran in a new one.
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
    omitted: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    state_lost: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None and self.exit_code == 0

    @property
    def text(self) -> str | None:
        return _last(result.text for result in reversed(self.results))

    @property
    def html(self) -> str | None:
        return _last(result.html for result in reversed(self.results))

    @property
    def markdown(self) -> str | None:
        return _last(result.markdown for result in reversed(self.results))

    @property
    def latex(self) -> str | None:
        return _last(result.latex for result in reversed(self.results))

    @property
    def svg(self) -> str | None:
        return _last(result.svg for result in reversed(self.results))

    @property
    def png(self) -> bytes | None:
        return _last(result.png for result in reversed(self.results))

    @property
    def jpeg(self) -> bytes | None:
        return _last(result.jpeg for result in reversed(self.results))

    @property
    def json(self) -> Any:
        return _last(result.json for result in reversed(self.results))

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

    def for_model(self, max_bytes: int = MODEL_BYTES) -> str:
        """Everything as one text: what Dayfly says of it first, then output and results.

        Of longer output than ``max_bytes`` the head and the tail are given, and a line before all
        output says how much is left out. Images are not part of it, only that there are some.
        """
        sections = [
            stream("stdout", self.stdout),
            stream("stderr", self.stderr),
            *map(_section, self.results),
        ]
        is_silent = not self.results and not any(one.text for one in sections)
        hint = self.hint
        if hint is None and self.state_lost:
            hint = "the interpreter was started again, its state is lost"
        said = [
            self._end(),
            *changed(self.changed_files),
            *hinted(hint, is_silent=is_silent),
            *left_out(self.omitted, is_truncated=self.truncated),
        ]
        return shaped(said, sections, SILENT if self.status == "ok" else NOTHING, max_bytes)

    def _end(self) -> str:
        """How it ended, in one line."""
        duration = seconds(self.duration_ms)
        if self.status == "timed_out":
            return f"timeout after {duration}, the code was interrupted"
        if self.status == "interrupted":
            return f"interrupted after {duration}"
        if self.status == "died":
            return f"the interpreter ended after {duration}, its state is lost"
        if self.error is not None:
            return f"error {named(self.error.name)}, {duration}"
        return f"{named(self.status)}, {duration}"

    def __str__(self) -> str:
        """What a person would have seen: output, results, the error with its traceback."""
        parts = [self.stdout.rstrip("\n"), *map(str, self.results), self.stderr.rstrip("\n")]
        if self.error is not None and not self.error.traceback:
            parts.append(f"[{self.error}]")
        return "\n".join(part for part in parts if part)


def _section(result: Result) -> Section:
    """A result as a part of a text for a model, which says what pictures there are of it."""
    kinds = [kind for kind in result.formats if kind.startswith("image/")]
    text = next((result.data[kind] for kind in _TEXTS if kind in result.data), "").rstrip("\n")
    mark = f"result (with {pictures(kinds)})" if kinds else "result"
    return Section(f"{mark}:" if text else mark, "a result", text)


def _last(found: Iterable[T | None]) -> T | None:
    return next((value for value in found if value is not None), None)


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
        hint=worded(data),
        changed_files=data.get("changed_files"),
        omitted=data.get("omitted", []),
        state_lost=bool(data.get("state_lost", False)),
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
