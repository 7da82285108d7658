"""Models, by what can be asked of them: a client of a provider, or a function."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from .._effects import Ask, Operation, Within
from .._tool_calls import Selection
from .._tool_definitions import ToolDefinition
from ._conversation import Message, Turn


class ModelFailed(Exception):
    """A model could not be asked. ``__cause__`` is what its client raised."""


OnText = Callable[[str], Operation[None]]
# A model of your own: the conversation, and the tools as Anthropic's API has them.
ModelFunction = Callable[[list[Message], list[dict[str, Any]]], Any]


@dataclass(frozen=True)
class ModelRequest:
    """What a model is asked: the conversation so far, and what it can call."""

    system: str | None
    messages: list[Message]
    selection: Selection
    extra: list[ToolDefinition]
    # How long nobody waits for it any more; none without a budget of seconds.
    left: Callable[[], float | None]
    on_text: OnText

    def definitions(self) -> list[ToolDefinition]:
        """The tools, for whoever knows nothing of Anthropic's own types."""
        return [*self.selection.plain(), *self.extra]

    def anthropic(self) -> list[dict[str, Any]]:
        return [*self.selection.anthropic(), *(one.anthropic() for one in self.extra)]


class Model(Protocol):
    """Something that takes a conversation on by one turn."""

    def check(self, selection: Selection, *, is_async: bool) -> None:
        """Refuses what it cannot do, before anything is made."""
        ...

    def turn(self, request: ModelRequest) -> Operation[Turn]: ...


@dataclass(frozen=True)
class FunctionModel:
    """A function as a model; for ``AsyncAgent`` it may be a coroutine function."""

    function: ModelFunction

    def check(self, selection: Selection, *, is_async: bool) -> None:
        if not is_async and inspect.iscoroutinefunction(self.function):
            raise TypeError("a coroutine function is a model for AsyncAgent")

    def turn(self, request: ModelRequest) -> Operation[Turn]:
        turn = yield from asked(request, self.function, list(request.messages), request.anthropic())
        if not isinstance(turn, Turn):
            raise ModelFailed(f"the model gave {type(turn).__name__}, not a Turn")
        return turn


@dataclass(frozen=True)
class ClientModel:
    """What models behind a client of a provider have in common.

    - ``client``: that of the provider's own package; its timeouts and retries count.
    - ``name``: of the model.
    - ``max_tokens``: the most that a turn may write.
    - ``stream``: whether text is told as it comes.
    - ``options``: further fields of the request, such as ``temperature``.
    """

    client: Any = field(repr=False)
    name: str
    max_tokens: int | None = None
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def check(self, selection: Selection, *, is_async: bool) -> None:
        kinds = [kind.__name__ for kind in type(self.client).__mro__]
        if any(name.startswith("Async") for name in kinds) != is_async:
            mine, other = ("AsyncAgent", "Async") if is_async else ("Agent", "synchronous")
            raise TypeError(f"{mine} needs the {other} client, not {kinds[0]}")
        self.check_tools(selection)

    def check_tools(self, selection: Selection) -> None:
        selection.plain()


def asked(request: ModelRequest, function: Callable[..., Any], *arguments: Any) -> Operation[Any]:
    """Asks a client of a provider, or a function that stands for a model.

    A budget of seconds is kept here and not by a timeout of the client, which would try again.
    """
    left = request.left()
    try:
        if left is None:
            return (yield Ask(function, arguments))
        return (yield Within(left, function, arguments))
    except Exception as error:
        raise ModelFailed(f"{type(error).__name__}: {error}") from error


def called(
    request: ModelRequest, function: Callable[..., Any], body: Mapping[str, Any]
) -> Operation[Any]:
    return asked(request, functools.partial(function, **body))


class _End:
    """Stands for the end of a stream."""


END = _End()


def pieces(request: ModelRequest, stream: Any, take: Callable[[Any], str]) -> Operation[None]:
    """Reads a stream of a provider to its end, and tells the text in it."""
    try:
        while True:
            piece = yield from asked(request, _next, stream)
            if piece is END:
                return
            text = _taken(take, piece)
            if text:
                yield from request.on_text(text)
    except GeneratorExit:
        raise
    except BaseException:
        # The connection is not to stay open behind an error or a cancellation.
        with contextlib.suppress(Exception):
            yield Ask(_close, (stream,))
        raise


def _taken(take: Callable[[Any], str], piece: Any) -> str:
    try:
        return take(piece)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFailed(f"the stream has a piece that is not understood: {error}") from error


def read(function: Callable[[Any], Turn], reply: Any) -> Turn:
    """A turn out of what a client gave."""
    try:
        return function(reply)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFailed(f"the response is not understood: {error}") from error


def _next(stream: Any) -> Any:
    if hasattr(stream, "__anext__"):
        return _next_later(stream)
    return next(stream, END)


async def _next_later(stream: Any) -> Any:
    try:
        return await stream.__anext__()
    except StopAsyncIteration:
        return END


def _close(stream: Any) -> Any:
    return stream.close()


def dumped(item: Any) -> dict[str, Any]:
    """An object of a provider's package as plain data."""
    plain: dict[str, Any] = item.model_dump(mode="json", exclude_none=True)
    return plain


def model_of(given: Model | ModelFunction) -> Model:
    """What an agent was given, as a model."""
    if hasattr(given, "turn") and hasattr(given, "check"):
        return cast("Model", given)
    if callable(given):
        return FunctionModel(given)
    raise TypeError(
        "model is AnthropicModel, OpenAIChatModel or OpenAIResponsesModel of a client, "
        f"or a function that gives a Turn; not {type(given).__name__}"
    )
