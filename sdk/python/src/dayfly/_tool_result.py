"""What a tool gave, and the sandbox that it works on."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ._contexts import KnownContexts
from ._for_model import IMAGES, one_line
from .errors import DayflyError
from .execution import Result

# Providers take pictures up to some megabytes, and a model little more than a few at once.
IMAGE_CHARACTERS_MAX = 5_000_000
IMAGES_MAX = 8
# A model may ask for any number; a day is as good as for ever.
CALL_SECONDS_MAX = 24 * 3600.0


@dataclass(frozen=True)
class ToolImage:
    """A picture: its kind, such as ``image/png``, and its bytes in base 64."""

    media_type: str
    data: str = field(repr=False)


@dataclass(frozen=True)
class ToolResult:
    """What a tool gave: a text for the model, and whether it failed.

    ``structured`` has the same for programs. As a text it is ``text``.
    """

    text: str
    is_error: bool = False
    images: list[ToolImage] = field(default_factory=list[ToolImage])
    structured: Any = None

    def __str__(self) -> str:
        return self.text


@dataclass
class ToolTarget:
    """The sandbox that tools work on."""

    sandbox: str
    contexts: KnownContexts = field(default_factory=KnownContexts)
    memory_mb: int = 0
    # No call of a tool takes longer, whatever the model asks for.
    seconds_max: float | None = None
    # How long snapshots stay that a model takes; for ever if nobody says so.
    snapshot_seconds: int | None = None
    # Those that were taken, by id.
    snapshots: list[str] = field(default_factory=list[str])

    def seconds(self, arguments: Mapping[str, Any]) -> float:
        """The timeout of a call."""
        wanted = min(float(arguments["timeout_seconds"]), CALL_SECONDS_MAX)
        return wanted if self.seconds_max is None else max(0.1, min(wanted, self.seconds_max))


def failed(why: str, hint: str | None = None) -> ToolResult:
    """A result that says what went wrong."""
    text = f"error: {one_line(why)}"
    return ToolResult(f"{text}\nhint: {one_line(hint)}" if hint else text, is_error=True)


def failed_by(error: DayflyError) -> ToolResult:
    return failed(error.message, error.hint)


def images_of(results: Iterable[Result]) -> tuple[list[ToolImage], int]:
    """The pictures of what was displayed, and how many are not shown."""
    found = [
        ToolImage(kind, one.data[kind])
        for one in results
        if (kind := next((kind for kind in IMAGES if kind in one.data), None)) is not None
    ]
    fitting = [one for one in found if is_picture(one)][:IMAGES_MAX]
    return fitting, len(found) - len(fitting)


def is_picture(image: ToolImage) -> bool:
    """Whether it is what it says, and not too large: a guest may display anything, and one that
    is no picture has a provider refuse the whole conversation."""
    signature = IMAGES.get(image.media_type)
    if signature is None or len(image.data) > IMAGE_CHARACTERS_MAX:
        return False
    try:
        content = base64.b64decode(image.data, validate=True)
    except ValueError:
        return False
    return signature.match(content) is not None


def with_word(text: str, word: str) -> str:
    """A text with one more line behind its first, among what Dayfly says."""
    first, gap, rest = text.partition("\n")
    return f"{first}\n{word}{gap}{rest}"
