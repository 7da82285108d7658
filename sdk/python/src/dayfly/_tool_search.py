"""Tools that look for files, and for text in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ._commands import exec_body, run_command
from ._effects import Operation
from ._files import name_path
from ._for_model import MODEL_BYTES, NOTHING, named, shaped, stream
from ._retry import call
from ._tool_result import ToolResult, ToolTarget, failed
from ._wire import get, path_of, with_query
from .errors import ApiError, SandboxTimeout
from .models import FileEntry, from_wire

SEARCH_SECONDS = 60.0
SEARCH_BYTES_MAX = 512 << 10
LINE_CHARACTERS_MAX = 400
# A name in a list is there to be called with, so more of it is shown than elsewhere.
PATH_CHARACTERS_MAX = 1000
# What is behind the name of a file and a zero byte: the number of the line, and the line.
_BEHIND_NAME = re.compile(r"(\d{1,9}):([^\n]*)\n?")
# Nothing that a model wrote is read by the shell: it is handed on as arguments. Bytes are counted,
# not lines: a name with line ends would be taken for several matches.
_SEARCH = 'most=$1; shift; grep "$@" | head -c "$most"'


def list_files(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    path, most = arguments["path"], arguments["max_entries"]
    depth = arguments["depth"]
    address = with_query(
        path_of("sandboxes", target.sandbox, "fs", "dir"),
        path=path,
        depth=depth if depth > 1 else None,
        limit=most,
    )
    try:
        page = (yield from call(get(address))).json()
    except ApiError as error:
        name_path(error, target.sandbox, path)
        raise
    entries = [from_wire(FileEntry, entry) for entry in page["entries"]]
    if not entries:
        return ToolResult("the directory is empty", structured={"entries": []})
    said = f"{len(entries)} entries"
    lines, dropped = _fitting([_entry(one) for one in entries])
    if dropped or page.get("has_more"):
        said = f"the first {len(lines)} entries; there are more"
    names = [one.name for one in entries[: len(lines)]]
    return ToolResult("\n".join([said, "files:", *lines]), structured={"entries": names})


def _entry(entry: FileEntry) -> str:
    name = named(entry.name, PATH_CHARACTERS_MAX)
    if entry.is_symlink:
        return f"{name} (link)"
    return f"{name}/" if entry.is_dir else f"{name} ({entry.size} bytes)"


def search_files(target: ToolTarget, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    most = arguments["max_matches"]
    seconds = target.seconds({"timeout_seconds": SEARCH_SECONDS})
    body = exec_body(
        ["sh", "-c", _SEARCH, "sh", str(SEARCH_BYTES_MAX), *_grep(arguments)],
        timeout_seconds=seconds,
        env={"LC_ALL": "C.UTF-8"},
        max_output_bytes=SEARCH_BYTES_MAX,
    )
    try:
        result = yield from run_command(target.sandbox, body)
    except SandboxTimeout:
        return failed(f"the search took longer than {seconds:g} s", "narrow path or name")
    matches = _matches(result.stdout, most + 1)
    if not matches:
        if result.stderr.strip():
            # Of a pattern that is wrong, or a path that is not there; in words of the guest's.
            sections = [stream("stderr", result.stderr)]
            text = shaped(["error: the search failed"], sections, NOTHING, MODEL_BYTES)
            return ToolResult(text, is_error=True)
        return ToolResult("no matches", structured={"matches": []})
    is_more = len(matches) > most
    lines, dropped = _fitting([_match(*one) for one in matches[:most]])
    said = f"{len(lines)} matches"
    if is_more or dropped or len(result.stdout.encode()) >= SEARCH_BYTES_MAX:
        said = f"the first {len(lines)} matches; there are more"
    found = [{"path": path, "line": number} for path, number, _ in matches[: len(lines)]]
    return ToolResult("\n".join([said, "matches:", *lines]), structured={"matches": found})


def _grep(arguments: Mapping[str, Any]) -> list[str]:
    options = ["-rnEIZH", "--color=never"]
    if arguments["ignore_case"]:
        options.append("-i")
    if arguments["name"] is not None:
        options.append(f"--include={arguments['name']}")
    return [*options, "-e", arguments["pattern"], "--", arguments["path"]]


def _matches(text: str, most: int) -> list[tuple[str, int, str]]:
    """Path, number and line of each match, in one pass: the guest may print whatever it likes.

    A name may have line ends, so it goes up to the zero byte. What reads otherwise ends the list.
    """
    found: list[tuple[str, int, str]] = []
    place = 0
    while len(found) < most and (end := text.find("\0", place)) >= 0:
        behind = _BEHIND_NAME.match(text, end + 1)
        if behind is None:
            break
        found.append((text[place:end], int(behind[1]), behind[2]))
        place = behind.end()
    return found


def _match(path: str, number: int, line: str) -> str:
    line = line.removesuffix("\r")
    if len(line) > LINE_CHARACTERS_MAX:
        line = f"{line[:LINE_CHARACTERS_MAX]}[...]"
    return f"{named(path.removeprefix('./'), PATH_CHARACTERS_MAX)}:{number}:{line}"


def _fitting(lines: list[str]) -> tuple[list[str], int]:
    """As many lines as a model is shown, and how many are not."""
    room = MODEL_BYTES
    for index, line in enumerate(lines):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            return lines[:index], len(lines) - index
    return lines, 0
