"""Arguments that the server would refuse in words about JSON are refused here, by their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast


def checked_texts(name: str, given: Mapping[str, str] | None) -> dict[str, str] | None:
    """A mapping of texts to texts, such as environment variables or metadata."""
    if given is None:
        return None
    pairs: list[tuple[object, object]] = [*given.items()]
    for key, value in pairs:
        if not isinstance(key, str) or not isinstance(value, str):
            kind = type(value if isinstance(key, str) else key).__name__
            # Values of environment variables are often secrets, and errors are logged.
            told = "" if name == "env" else f": {value!r}"
            raise TypeError(f"{name}[{key!r}] takes str, not {kind}{told}")
    return dict(given)


def checked_seconds(name: str, given: float | None) -> float | None:
    """A time in seconds: a number, never a text such as ``"10m"``."""
    value = cast("object", given)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return given
    raise TypeError(f"{name} is a number of seconds, not {value!r}")
