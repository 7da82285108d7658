"""A result as one text for a model: what Dayfly says first, then the output, marked as such.

Whatever a command prints stands behind the mark ``stdout:``, ``stderr:`` or ``result``, so that
nothing of it can be taken for words of Dayfly's. ``sdk/tools/texts.json`` has the rule as cases,
and every client is held to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._kept import KeptText

MODEL_BYTES = 16_000
MODEL_BYTES_MIN = 160
CHANGED_FILES_MAX = 20
# Of a name or a hint that the guest may have chosen.
SAID_CHARACTERS_MAX = 1000
NOTHING = "nothing was printed"
# What the server says of silence; it would be there twice.
_SILENT = ("printed nothing",)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Section:
    """A part of the output: the line that marks it, its name in what is said of it, its text."""

    mark: str
    name: str
    text: str


def one_line(text: str, characters: int = SAID_CHARACTERS_MAX) -> str:
    """A text that a guest may have chosen, for what Dayfly says: it cannot begin a line there."""
    text = _CONTROL.sub("?", text)
    return text if len(text) <= characters else text[: characters - 3] + "..."


def seconds(duration_ms: int) -> str:
    """Cut, not rounded: a timeout of 30 s never reads as less than it was."""
    return f"{duration_ms // 1000}.{duration_ms % 1000 // 100} s"


def stream(name: str, text: str) -> Section:
    return Section(f"{name}:", name, text.rstrip("\n"))


def changed(files: Sequence[str] | None) -> list[str]:
    """The line that names the files that changed."""
    if not files:
        return []
    names = [one_line(name, 200) for name in files[:CHANGED_FILES_MAX]]
    more = len(files) - len(names)
    return [f"changed files: {', '.join(names)}" + (f" and {more} more" if more > 0 else "")]


def hinted(hint: str | None, *, is_silent: bool) -> list[str]:
    """The line with the server's advice, unless it says no more than that nothing was printed."""
    if not hint or (is_silent and any(words in hint for words in _SILENT)):
        return []
    return [f"hint: {one_line(hint)}"]


def left_out(omitted: Iterable[Mapping[str, Any]], *, is_truncated: bool) -> list[str]:
    """What the server left out of each stream already."""
    lost: dict[str, int] = {}
    for part in omitted:
        name = one_line(str(part.get("stream", "output")), 20)
        lost[name] = lost.get(name, 0) + int(part.get("bytes", 0))
    if not lost and is_truncated:
        return ["cut: more was printed than is shown"]
    return [_cut(name, count) for name, count in lost.items()]


def shaped(said: list[str], sections: list[Section], nothing: str, max_bytes: int) -> str:
    """What Dayfly says, then the sections, of which long ones keep their two ends."""
    if max_bytes < MODEL_BYTES_MIN:
        raise ValueError(f"max_bytes is at least {MODEL_BYTES_MIN}")
    sections = [one for one in sections if one.text or one.mark.startswith("result (")]
    said = list(said)
    sizes = [len(one.text.encode("utf-8", "replace")) for one in sections]
    share = max_bytes // max(1, len(sections))
    shown: list[str] = []
    for section, size in zip(sections, sizes, strict=True):
        text = section.text
        if sum(sizes) > max_bytes and size > share:
            kept = KeptText(share)
            kept.add(text)
            text, gap = kept.give()
            said += [] if gap is None else [_cut(section.name, gap[1])]
        shown += [section.mark, text] if text else [section.mark]
    return "\n".join([*said, *(shown or [nothing])])


def _cut(name: str, count: int) -> str:
    return f"cut: {count} bytes of {name} are left out"
