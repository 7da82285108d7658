"""Tools that read and change text files.

A guest's files are hostile: they may be huge, of one line, no text at all. Every read is bounded,
and what cannot be shown or changed safely is refused in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _files
from ._effects import Operation
from ._for_model import MODEL_BYTES, named
from ._tool_result import ToolResult, ToolTarget, failed
from .errors import ApiError

CHUNK_BYTES = 1 << 20
# How far into a file its lines are looked for.
READ_BYTES_MAX = 32 << 20
EDIT_BYTES_MAX = 4 << 20
LINE_CHARACTERS_MAX = 2000
USE_SHELL = "look at it with run_shell or run_code"
_EDIT_SIZE = f"{EDIT_BYTES_MAX >> 20} MiB"
_BY_PROGRAM = "change it with run_shell or run_code"


class NotText(Exception):
    """The file has bytes that no text has."""


def read_file(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    path, first, most = arguments["path"], arguments["first_line"], arguments["max_lines"]
    try:
        found = yield from _lines(target.sandbox, path, first + most)
    except NotText:
        return _not_text(path)
    if found.is_over and not found.lines:
        return ToolResult("the file is empty", structured={"content": "", "lines": 0})
    if len(found.lines) < first:
        if found.is_over:
            return failed(f"{named(path)} has {len(found.lines)} lines")
        return failed(f"line {first} of {named(path)} is too far into the file", USE_SHELL)
    return _numbered(found, first, found.lines[first - 1 : first - 1 + most])


@dataclass(frozen=True)
class _Lines:
    """The first lines of a file. ``is_over``: there are no more."""

    lines: list[str]
    is_over: bool
    is_damaged: bool
    has_crlf: bool


def _lines(sandbox: str, path: str, wanted: int) -> Operation[_Lines]:
    """At least as many lines as wanted, one more if there is one, or all that there are."""
    content = bytearray()
    is_over = False
    while not is_over and content.count(b"\n") < wanted and len(content) < READ_BYTES_MAX:
        piece = yield from _piece(sandbox, path, len(content), CHUNK_BYTES)
        if b"\0" in piece:
            raise NotText
        content += piece
        is_over = len(piece) < CHUNK_BYTES
    text = content.decode("utf-8", "replace")
    is_damaged = "\ufffd" in text
    lines = text.split("\n")
    if lines[-1] == "" or not is_over:
        # Behind the last line end there is no line; and one that was cut is none yet.
        lines.pop()
    has_crlf = bool(lines) and all(line.endswith("\r") for line in lines[:-1] or lines)
    return _Lines([line.removesuffix("\r") for line in lines], is_over, is_damaged, has_crlf)


def _piece(sandbox: str, path: str, offset: int, length: int) -> Operation[bytes]:
    try:
        return (yield from _files.read(sandbox, path, None, offset, length))
    except ApiError as error:
        if error.code == "range_not_satisfiable":
            # Behind its end, or of an empty one.
            return b""
        raise


def _numbered(found: _Lines, first: int, lines: list[str]) -> ToolResult:
    shown: list[str] = []
    room, cut = MODEL_BYTES, 0
    for number, line in enumerate(lines, first):
        if len(line) > LINE_CHARACTERS_MAX:
            over = len(line) - LINE_CHARACTERS_MAX
            line = f"{line[:LINE_CHARACTERS_MAX]}[... {over} characters left out ...]"
            cut += 1
        numbered = f"{number}\t{line}"
        room -= len(numbered.encode()) + 1
        if room < 0 and shown:
            break
        shown.append(numbered)
    last = first + len(shown) - 1
    said = [f"lines {first}-{last}"]
    if found.is_over:
        said[0] += f" of {len(found.lines)}"
    if not found.is_over or last < len(found.lines):
        said[0] += f"; first_line={last + 1} reads on"
    if cut:
        said.append(f"cut: {cut} lines are longer than {LINE_CHARACTERS_MAX} characters")
    if found.has_crlf:
        said.append("line ends: CRLF")
    if found.is_damaged:
        said.append("the file is not UTF-8: bytes that are no character are shown as \ufffd")
    text = "\n".join([*said, "content:", *shown])
    return ToolResult(text, structured={"first_line": first, "last_line": last})


def _not_text(path: str) -> ToolResult:
    return failed(f"{named(path)} is not a text file", USE_SHELL)


def write_file(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    path, content = arguments["path"], arguments["content"].encode()
    count = yield from _files.write(target.sandbox, path, content, None)
    return ToolResult(f"wrote {count} bytes to {named(path)}", structured={"bytes": count})


def edit_file(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    path = arguments["path"]
    old, new = arguments["old_text"], arguments["new_text"]
    content = yield from _whole(target.sandbox, path)
    if isinstance(content, ToolResult):
        return content
    if "\r\n" in content and "\r" not in old and "\n" not in content.replace("\r\n", ""):
        # A model writes plain line ends; the file keeps its own.
        old = old.replace("\n", "\r\n")
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = content.count(old)
    if count == 0:
        return failed(
            f"the old text is not in {named(path)}; nothing was changed",
            "read_file shows the file; the numbers of lines are not part of it",
        )
    if count > 1 and not arguments["replace_all"]:
        return failed(
            f"the old text is {count} times in {named(path)}; nothing was changed",
            "take more of the text around it, or set replace_all",
        )
    growth = len(new.encode()) - len(old.encode())
    if len(content.encode()) + count * growth > EDIT_BYTES_MAX:
        # Before it is made: a few bytes that are replaced everywhere can become more than there is.
        why = f"{named(path)} would be larger than {_EDIT_SIZE}; nothing was changed"
        return failed(why, _BY_PROGRAM)
    changed = content.replace(old, new).encode()
    yield from _files.write(target.sandbox, path, changed, None)
    places = "1 place" if count == 1 else f"{count} places"
    return ToolResult(f"replaced {places} in {named(path)}", structured={"replaced": count})


def insert_text(target: ToolTarget, path: str, line: int, text: str) -> Operation[ToolResult]:
    """Puts a text behind a line; behind line 0 is the beginning."""
    content = yield from _whole(target.sandbox, path)
    if isinstance(content, ToolResult):
        return content
    # Not splitlines(), which also splits at form feeds and the like.
    lines = [one for one in re.split(r"(?<=\n)", content) if one]
    if not 0 <= line <= len(lines):
        return failed(f"{named(path)} has {len(lines)} lines; insert_line is 0 to {len(lines)}")
    end = "\r\n" if "\r\n" in content else "\n"
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += end
    if not text.endswith("\n"):
        text += "\n"
    lines.insert(line, text.replace("\r\n", "\n").replace("\n", end))
    yield from _files.write(target.sandbox, path, "".join(lines).encode(), None)
    return ToolResult(f"inserted behind line {line} of {named(path)}")


def _whole(sandbox: str, path: str) -> Operation[str | ToolResult]:
    """All of a text file that may be changed, or why it may not."""
    content = yield from _piece(sandbox, path, 0, EDIT_BYTES_MAX + 1)
    if len(content) > EDIT_BYTES_MAX:
        return failed(f"{named(path)} is larger than {_EDIT_SIZE}", _BY_PROGRAM)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        # Writing it back would destroy what was not understood.
        return _not_text(path)
    return _not_text(path) if "\0" in text else text
