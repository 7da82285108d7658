"""A result as one text for a model: what Dayfly says first, then the output, marked as such.

Whatever a command prints stands behind the mark ``stdout:``, ``stderr:`` or ``result``, so that
nothing of it can be taken for words of Dayfly's. A name that a guest chose and that has to stand
before the mark is quoted, unless it is one plain word. ``sdk/tools/texts.json`` has the rule as
cases, and every client is held to them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._kept import KeptText

MODEL_BYTES = 16_000
MODEL_BYTES_MIN = 160
NAMES_MAX = 20
NAME_CHARACTERS_MAX = 200
# Of a hint, in which a guest may have chosen some words.
SAID_CHARACTERS_MAX = 1000
# What providers take, with what their bytes begin. Other kinds are a guest's own words.
IMAGES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
NOTHING = "nothing was printed"
# What the server says of silence; it would be there twice.
_SILENT = ("printed nothing",)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._\-+/@~]+")
# Control and format characters, halves of surrogate pairs, separators of lines and paragraphs:
# what is not seen, or moves what is.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Section:
    """A part of the output: the line that marks it, its name in what is said of it, its text."""

    mark: str
    name: str
    text: str


def named(text: str, characters: int = NAME_CHARACTERS_MAX) -> str:
    """A name that a guest chose, for what Dayfly says: quoted unless it is one plain word."""
    if len(text) <= characters and _PLAIN_NAME.fullmatch(text):
        return text
    return quoted(text, characters)


def quoted(text: str, characters: int = NAME_CHARACTERS_MAX) -> str:
    """A text of a guest's as a JSON string, which cannot end by itself. The ``…`` of a long one is
    outside the quotes, because it is ours."""
    seen = "".join("\ufffd" if _is_unseen(one) else one for one in text[:characters])
    more = "…" if len(text) > characters else ""
    return json.dumps(seen, ensure_ascii=False) + more


def _is_unseen(character: str) -> bool:
    # Below DEL JSON has an escape for it.
    return character >= "\x7f" and unicodedata.category(character) in _UNSEEN


def one_line(text: str, characters: int = SAID_CHARACTERS_MAX) -> str:
    """A sentence for what Dayfly says, some words of which others chose: it stays one line."""
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
    return [f"changed files: {_listed([named(name) for name in files[:NAMES_MAX]], len(files))}"]


def pictures(kinds: Sequence[str]) -> str:
    """The kinds of pictures that there are of a result. Those that nobody knows are quoted."""
    shown = [kind if kind in IMAGES else quoted(kind) for kind in kinds[:NAMES_MAX]]
    return _listed(shown, len(kinds))


def _listed(names: list[str], count: int) -> str:
    more = count - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def hinted(hint: str | None, *, is_silent: bool) -> list[str]:
    """The line with the server's advice, unless it says no more than that nothing was printed."""
    if not hint or (is_silent and any(words in hint for words in _SILENT)):
        return []
    return [f"hint: {one_line(hint)}"]


def left_out(omitted: Iterable[Mapping[str, Any]], *, is_truncated: bool) -> list[str]:
    """What the server left out of each stream already."""
    lost: dict[str, int] = {}
    for part in omitted:
        name = named(str(part.get("stream", "output")))
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
