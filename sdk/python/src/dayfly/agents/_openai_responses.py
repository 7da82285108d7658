"""OpenAI's Responses API, by the package ``openai``."""

from __future__ import annotations

from typing import Any

from .._effects import Operation
from ._conversation import CallResult, Message, Results, ToolCall, Turn, Usage
from ._models import ClientModel, ModelFailed, ModelRequest, called, dumped, pieces, read
from ._openai_chat import add_user, arguments_of, arguments_text

PROVIDER = "openai-responses"


class OpenAIResponsesModel(ClientModel):
    """A model by the Responses API: ``OpenAIResponsesModel(openai.OpenAI(), "gpt-...")``."""

    def turn(self, request: ModelRequest) -> Operation[Turn]:
        body: dict[str, Any] = {"model": self.name, "input": items_of(request.messages)}
        tools = [one.openai_responses() for one in request.definitions()]
        if tools:
            body["tools"] = tools
        if request.system:
            body["instructions"] = request.system
        if self.max_tokens is not None:
            body["max_output_tokens"] = self.max_tokens
        body.update(self.options)
        if not self.stream:
            return read(_turn, (yield from called(request, self.client.responses.create, body)))
        stream = yield from called(request, self.client.responses.create, {**body, "stream": True})
        collected = _Collected()
        yield from pieces(request, stream, collected.take)
        return collected.finish()


def items_of(messages: list[Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, Results):
            found += [_output(one) for one in message.results]
        elif isinstance(message, Turn):
            found += list(message.raw) if message.provider == PROVIDER else _items(message)
        else:
            add_user(found, message.text)
    return found


def _output(result: CallResult) -> dict[str, Any]:
    output: str | list[dict[str, Any]] = result.text
    if result.images:
        output = [{"type": "input_text", "text": result.text}]
        for image in result.images:
            url = f"data:{image.media_type};base64,{image.data}"
            output.append({"type": "input_image", "image_url": url, "detail": "auto"})
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _items(turn: Turn) -> list[dict[str, Any]]:
    said = [{"role": "assistant", "content": turn.text}] if turn.text else []
    calls = [_function_call(one.id, one.name, arguments_text(one)) for one in turn.calls]
    return [*said, *calls]


def _function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _turn(reply: Any) -> Turn:
    if reply.status == "failed":
        raise _failure(reply.error)
    text, is_refused = "", False
    calls: list[ToolCall] = []
    raw: list[dict[str, Any]] = []
    for item in reply.output:
        if item.type == "message":
            said, refused = _said(item)
            text += said
            is_refused = is_refused or refused
            if said:
                raw.append({"role": "assistant", "content": said})
        elif item.type == "function_call":
            calls.append(ToolCall(item.call_id, item.name, arguments_of(item.arguments)))
            raw.append(_function_call(item.call_id, item.name, item.arguments))
        elif item.type == "reasoning":
            # To be given back as it came, before what it led to.
            raw.append(dumped(item))
        else:
            raise ValueError(f"an item of type {item.type!r}")
    usage = reply.usage
    return Turn(
        text=text,
        calls=calls,
        usage=Usage() if usage is None else Usage(usage.input_tokens, usage.output_tokens),
        is_cut=reply.status == "incomplete",
        is_refused=is_refused,
        provider=PROVIDER,
        raw=raw,
    )


def _said(item: Any) -> tuple[str, bool]:
    """The text of a message, and whether it is a refusal."""
    parts = [(getattr(one, "text", None), getattr(one, "refusal", None)) for one in item.content]
    text = "".join(said or refused or "" for said, refused in parts)
    return text, any(refused for _, refused in parts)


def _failure(error: Any) -> ModelFailed:
    return ModelFailed(f"the model failed: {getattr(error, 'message', 'without a reason')}")


class _Collected:
    """Waits for the last event of a stream, which has the whole turn."""

    def __init__(self) -> None:
        self._reply: Any = None

    def take(self, event: Any) -> str:
        """Takes an event of the stream, and gives the text in it."""
        if event.type == "response.output_text.delta":
            return str(event.delta)
        if event.type in ("response.completed", "response.incomplete"):
            self._reply = event.response
        elif event.type == "response.failed":
            raise _failure(event.response.error)
        elif event.type == "error":
            raise ModelFailed(f"the model failed: {event.message}")
        return ""

    def finish(self) -> Turn:
        if self._reply is None:
            raise ModelFailed("the stream of the model broke off")
        return read(_turn, self._reply)
