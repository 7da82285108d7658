"""A result as one text for a model: everything once, the reason of a failure last."""

from __future__ import annotations

from collections.abc import Iterable

from ._kept import KeptText

MODEL_BYTES = 16_000
# For the mark that says how much is left out.
MARK_BYTES = 80


def joined(parts: Iterable[str], max_bytes: int) -> str:
    """The parts that say something, one below the other, cut in the middle to fit."""
    if max_bytes < 2 * MARK_BYTES:
        raise ValueError(f"max_bytes is at least {2 * MARK_BYTES}")
    text = "\n".join(part.strip("\n") for part in parts if part.strip("\n"))
    if len(text.encode("utf-8", "replace")) <= max_bytes:
        return text
    # Hints and tracebacks are at the end, and the end is kept.
    kept = KeptText(max_bytes - MARK_BYTES)
    kept.add(text)
    return kept.give()[0]
