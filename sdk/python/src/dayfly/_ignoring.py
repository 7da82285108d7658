"""``.dockerignore``, as far as that saves sending files: the server decides about the rest.

What is hidden here is hidden by every builder. A pattern that is not understood hides nothing.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    shows: bool


class IgnoreRules:
    """The patterns of a ``.dockerignore``."""

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").splitlines()
        self._rules = [rule for line in lines if (rule := _rule(line)) is not None]
        self.shows_any: bool = any(rule.shows for rule in self._rules)

    def hides(self, path: str) -> bool:
        """The last pattern that matches the path, or a directory that it is in, decides."""
        for rule in reversed(self._rules):
            if rule.pattern.match(path):
                return not rule.shows
        return False


def _rule(line: str) -> _Rule | None:
    text = "" if line.startswith("#") else line.strip()
    shows = text.startswith("!")
    pattern = text.removeprefix("!").strip()
    if not pattern:
        return None
    if any(mark in pattern for mark in "[\\") or ".." in pattern.split("/"):
        # Not understood: all that it could show is shown.
        return _Rule(re.compile(""), shows=True) if shows else None
    cleaned = posixpath.normpath(pattern.lstrip("/") or ".")
    if cleaned == ".":
        return None
    return _Rule(re.compile(f"{_expression(cleaned)}(?:/|$)", re.DOTALL), shows)


def _expression(pattern: str) -> str:
    parts: list[str] = []
    rest = pattern
    while rest:
        if rest.startswith("**/"):
            parts.append("(?:.*/)?")
            rest = rest[3:]
        elif rest.startswith("**"):
            rest = rest[2:]
            is_suffix = not parts and not any(mark in rest for mark in "*?")
            parts.append(".*" if not rest or is_suffix else "(?:.*/)?")
        elif rest.startswith("*"):
            parts.append("[^/]*")
            rest = rest[1:]
        elif rest.startswith("?"):
            parts.append("[^/]")
            rest = rest[1:]
        else:
            parts.append(re.escape(rest[0]))
            rest = rest[1:]
    return "".join(parts)
