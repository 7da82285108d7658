"""Anthropic's Messages API, by the client of the package ``anthropic``."""

from __future__ import annotations

import json
from typing import Any

from .._effects import Operation
from .._tool_calls import Selection
from ._conversation import CallResult, Message, Results, ToolCall, Turn, Usage
from ._models import ClientModel, ModelFailed, ModelRequest, called, dumped, pieces, read

PROVIDER = "anthropic"
MAX_TOKENS = 8192
# Blocks that must be given back as they came; of others only what is needed is kept.
_KEPT_WHOLE = ("thinking", "redacted_thinking")


class AnthropicModel(ClientModel):
    """A model of Anthropic's: ``AnthropicModel(anthropic.Anthropic(), "claude-...")``."""

    def check_tools(self, selection: Selection) -> None:
        return

    def turn(self, request: ModelRequest) -> Operation[Turn]:
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": self.max_tokens or MAX_TOKENS,
            "messages": messages_of(request.messages),
        }
        tools = request.anthropic()
        if tools:
            body["tools"] = tools
        if request.system:
            body["system"] = request.system
        body.update(self.options)
        if not self.stream:
            return read(_turn, (yield from called(request, self.client.messages.create, body)))
        stream = yield from called(request, self.client.messages.create, {**body, "stream": True})
        collected = _Collected()
        yield from pieces(request, stream, collected.take)
        return collected.finish()


def messages_of(messages: list[Message]) -> list[dict[str, Any]]:
    """The conversation as the API wants it: roles alternate, results come first."""
    found: list[dict[str, Any]] = []
    for message in messages:
        role, content = _content(message)
        if not content:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"] += content
        else:
            found.append({"role": role, "content": content})
    return found


def _content(message: Message) -> tuple[str, list[dict[str, Any]]]:
    if isinstance(message, Turn):
        if message.provider == PROVIDER:
            return "assistant", list(message.raw)
        said = [{"type": "text", "text": message.text}] if message.text else []
        return "assistant", [*said, *map(_tool_use, message.calls)]
    if isinstance(message, Results):
        return "user", [_tool_result(one) for one in message.results]
    return "user", [{"type": "text", "text": message.text}] if message.text else []


def _tool_use(call: ToolCall) -> dict[str, Any]:
    # Arguments that are no object cannot be given back; their result says what was wrong.
    arguments = {} if isinstance(call.arguments, str) else dict(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _tool_result(result: CallResult) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": result.text}]
    for image in result.images:
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        content.append({"type": "image", "source": source})
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": content,
        "is_error": result.is_error,
    }


def _turn(reply: Any) -> Turn:
    blocks = [dumped(block) for block in reply.content]
    usage = Usage(_input_tokens(reply.usage), int(reply.usage.output_tokens))
    return _turn_of(blocks, usage, reply.stop_reason)


def _input_tokens(usage: Any) -> int:
    """What was read from a cache, or written to it, was read all the same."""
    cached = getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    return int(usage.input_tokens) + int(cached) + int(written)


def _turn_of(blocks: list[dict[str, Any]], usage: Usage, stop: str | None) -> Turn:
    raw = [kept for block in blocks if (kept := _kept(block)) is not None]
    return Turn(
        text="".join(block["text"] for block in raw if block["type"] == "text"),
        calls=[
            ToolCall(block["id"], block["name"], block["input"])
            for block in raw
            if block["type"] == "tool_use"
        ],
        usage=usage,
        is_cut=stop in ("max_tokens", "model_context_window_exceeded"),
        is_refused=stop == "refusal",
        provider=PROVIDER,
        raw=raw,
    )


def _kept(block: dict[str, Any]) -> dict[str, Any] | None:
    """A block as it is given back; one without text would be refused."""
    kind = block["type"]
    if kind in _KEPT_WHOLE:
        return block
    if kind == "text":
        return {"type": "text", "text": block["text"]} if block["text"] else None
    if kind == "tool_use":
        return {name: block[name] for name in ("type", "id", "name", "input")}
    raise ValueError(f"a block of type {kind!r}")


class _Collected:
    """Puts a streamed turn together."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, str] = {}
        self._input_tokens = 0
        self._output_tokens = 0
        self._stop: str | None = None
        self._is_whole = False

    def take(self, event: Any) -> str:
        """Takes an event of the stream, and gives the text in it."""
        if event.type == "message_start":
            self._input_tokens = _input_tokens(event.message.usage)
        elif event.type == "content_block_start":
            self._blocks[event.index] = dumped(event.content_block)
        elif event.type == "content_block_delta":
            return self._grow(event.index, event.delta)
        elif event.type == "message_delta":
            self._stop = event.delta.stop_reason
            self._output_tokens = int(event.usage.output_tokens)
        elif event.type == "message_stop":
            self._is_whole = True
        return ""

    def _grow(self, index: int, delta: Any) -> str:
        block = self._blocks[index]
        if delta.type == "text_delta":
            block["text"] = block.get("text", "") + delta.text
            return str(delta.text)
        if delta.type == "input_json_delta":
            self._arguments[index] = self._arguments.get(index, "") + delta.partial_json
        elif delta.type == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.thinking
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature
        return ""

    def finish(self) -> Turn:
        if not self._is_whole:
            raise ModelFailed("the stream of the model broke off")
        for index, text in self._arguments.items():
            self._blocks[index]["input"] = _parsed(text)
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        usage = Usage(self._input_tokens, self._output_tokens)
        return read(lambda _: _turn_of(blocks, usage, self._stop), None)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        # Of a turn that was cut within its arguments.
        return {}
