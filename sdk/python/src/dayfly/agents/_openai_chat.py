"""OpenAI's Chat Completions API, and servers that speak it, by the package ``openai``."""

from __future__ import annotations

import json
from typing import Any, cast

from .._effects import Operation
from .._tool_result import with_word
from ._conversation import CallResult, Message, Results, ToolCall, Turn, Usage
from ._models import ClientModel, ModelFailed, ModelRequest, called, pieces, read

PROVIDER = "openai-chat"


class OpenAIChatModel(ClientModel):
    """A model by Chat Completions: ``OpenAIChatModel(openai.OpenAI(), "gpt-...")``."""

    def turn(self, request: ModelRequest) -> Operation[Turn]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": messages_of(request.system, request.messages),
        }
        tools = [one.openai() for one in request.definitions()]
        if tools:
            body["tools"] = tools
        if self.max_tokens is not None:
            body["max_completion_tokens"] = self.max_tokens
        body.update(self.options)
        create = self.client.chat.completions.create
        if not self.stream:
            return read(_turn, (yield from called(request, create, body)))
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        stream = yield from called(request, create, {**body, **streamed})
        collected = _Collected()
        yield from pieces(request, stream, collected.take)
        return collected.finish()


def messages_of(system: str | None, messages: list[Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        if isinstance(message, Results):
            found += [_tool_message(one) for one in message.results]
        elif isinstance(message, Turn):
            found += _assistant(message)
        else:
            add_user(found, message.text)
    return found


def add_user(found: list[dict[str, Any]], text: str) -> None:
    """What a user says twice in a row is one message."""
    if found and found[-1].get("role") == "user":
        found[-1]["content"] += f"\n\n{text}"
    elif text:
        found.append({"role": "user", "content": text})


def _tool_message(result: CallResult) -> dict[str, Any]:
    text = result.text
    if result.images:
        # Messages of tools have no pictures in this API.
        text = with_word(text, f"cut: {len(result.images)} images cannot be shown here")
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _assistant(turn: Turn) -> list[dict[str, Any]]:
    if not turn.text and not turn.calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
            }
            for call in turn.calls
        ]
    return [message]


def arguments_text(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def arguments_of(text: str) -> dict[str, Any] | str:
    """Arguments as an object; what is none stays as it is, and the tool refuses it."""
    try:
        value: object = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return cast("dict[str, Any]", value) if isinstance(value, dict) else text


def _turn(reply: Any) -> Turn:
    choice = reply.choices[0]
    message = choice.message
    wanted: list[Any] = message.tool_calls or []
    calls = [
        ToolCall(one.id, one.function.name, arguments_of(one.function.arguments)) for one in wanted
    ]
    refusal = getattr(message, "refusal", None)
    return Turn(
        text=message.content or refusal or "",
        calls=calls,
        usage=_usage(reply.usage),
        is_cut=choice.finish_reason == "length",
        is_refused=bool(refusal) or choice.finish_reason == "content_filter",
        provider=PROVIDER,
    )


def _usage(usage: Any) -> Usage:
    if usage is None:
        return Usage()
    return Usage(int(usage.prompt_tokens), int(usage.completion_tokens))


class _Collected:
    """Puts a streamed turn together."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: dict[int, dict[str, str]] = {}
        self._usage = Usage()
        self._finish: str | None = None
        self._is_refused = False

    def take(self, chunk: Any) -> str:
        """Takes a piece of the stream, and gives the text in it."""
        if getattr(chunk, "usage", None) is not None:
            self._usage = _usage(chunk.usage)
        text = ""
        for choice in chunk.choices:
            refusal = getattr(choice.delta, "refusal", None)
            self._is_refused = self._is_refused or bool(refusal)
            text += choice.delta.content or refusal or ""
            parts: list[Any] = choice.delta.tool_calls or []
            for part in parts:
                self._grow(part)
            self._finish = choice.finish_reason or self._finish
        self._text += text
        return text

    def _grow(self, part: Any) -> None:
        call = self._calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
        call["id"] = part.id or call["id"]
        if part.function is not None:
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""

    def finish(self) -> Turn:
        if self._finish is None:
            raise ModelFailed("the stream of the model broke off")
        calls = [
            ToolCall(one["id"], one["name"], arguments_of(one["arguments"]))
            for _, one in sorted(self._calls.items())
        ]
        return Turn(
            text=self._text,
            calls=calls,
            usage=self._usage,
            is_cut=self._finish == "length",
            is_refused=self._is_refused or self._finish == "content_filter",
            provider=PROVIDER,
        )
