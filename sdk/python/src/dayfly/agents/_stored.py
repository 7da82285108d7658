"""A message of a stored conversation, read field by field: every one has to be of its type.

A provider is sent what stands here, so a wrong type would show as a failure of the provider, or
not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from .._tool_result import ToolImage, is_picture
from ._conversation import CallResult, Message, Results, ToolCall, Turn, Usage, UserText
from ._raw import RawRefused, check_raw

T = TypeVar("T")

_KINDS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
}


class TranscriptRefused(ValueError):
    """What was to be read is not a transcript, or one of another version."""


class Fields:
    """The fields of an object, which are taken one by one; none may be left."""

    def __init__(self, what: str, data: object) -> None:
        if not isinstance(data, Mapping):
            raise TranscriptRefused(f"{what} is not an object")
        self._what = what
        self._left = dict(cast("Mapping[str, Any]", data))

    def take(self, name: str, kind: type[T], default: T | None = None) -> T:
        """A field of a type; without a default it has to be there."""
        value: object = self._left.pop(name, default)
        if value is None and default is None:
            raise TranscriptRefused(f"{self._what} has no {name}")
        # To Python true is a whole number as well.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TranscriptRefused(f"{name} of {self._what} is not {_KINDS[kind]}")
        return value

    def plain(self, name: str) -> Any:
        """A field of any type."""
        return self._left.pop(name, None)

    def each(
        self, name: str, read: Callable[[Any], T], default: list[Any] | None = None
    ) -> list[T]:
        return [read(one) for one in self.take(name, cast("type[list[Any]]", list), default)]

    def end(self) -> None:
        if self._left:
            names = ", ".join(sorted(map(str, self._left)))
            raise TranscriptRefused(f"{self._what} has fields that are not known: {names}")


def message_of(data: Any) -> Message:
    fields = Fields("a message", data)
    kind = fields.take("kind", str)
    if kind == "user":
        message: Message = UserText(fields.take("text", str))
    elif kind == "results":
        message = Results(fields.each("results", _result))
    elif kind == "turn":
        message = _turn(fields)
    else:
        raise TranscriptRefused(f"a message of kind {kind!r} is not known")
    fields.end()
    return message


def _turn(fields: Fields) -> Turn:
    turn = Turn(
        text=fields.take("text", str, ""),
        calls=fields.each("calls", _call),
        usage=_usage(fields.plain("usage")),
        is_cut=fields.take("is_cut", bool, False),
        is_refused=fields.take("is_refused", bool, False),
        provider=fields.take("provider", str, ""),
        raw=fields.plain("raw"),
    )
    try:
        check_raw(turn)
    except RawRefused as refused:
        raise TranscriptRefused(f"raw of a turn of {turn.provider}: {refused}") from None
    return turn


def _call(data: Any) -> ToolCall:
    fields = Fields("a call", data)
    arguments = fields.plain("arguments")
    if not isinstance(arguments, (dict, str)):
        raise TranscriptRefused("arguments of a call are neither an object nor a text")
    found = cast("dict[str, Any] | str", arguments)
    call = ToolCall(fields.take("id", str), fields.take("name", str), found)
    fields.end()
    return call


def _usage(data: Any) -> Usage:
    fields = Fields("usage", data)
    usage = Usage(fields.take("input_tokens", int, 0), fields.take("output_tokens", int, 0))
    fields.end()
    if usage.input_tokens < 0 or usage.output_tokens < 0:
        raise TranscriptRefused("usage is less than nothing")
    return usage


def _result(data: Any) -> CallResult:
    fields = Fields("a result", data)
    result = CallResult(
        call_id=fields.take("call_id", str),
        name=fields.take("name", str),
        text=fields.take("text", str),
        is_error=fields.take("is_error", bool, False),
        images=fields.each("images", _image, []),
    )
    fields.end()
    return result


def _image(data: Any) -> ToolImage:
    fields = Fields("an image", data)
    image = ToolImage(fields.take("media_type", str), fields.take("data", str))
    fields.end()
    if not is_picture(image):
        raise TranscriptRefused("an image is not of a kind that models are shown")
    return image
