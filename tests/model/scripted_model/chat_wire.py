"""Chat Completions of OpenAI: `POST /v1/chat/completions`."""
import time

from .answer import Answer, check_shape, check_tools, pieces
from .conversation import Conversation, Heard, Refused, Said, ToolCall, ToolResult, check_turns
from .openai_errors import STATUSES, error, has_key, models
from .script import shape

__all__ = ["CALL_PREFIX", "NAME", "STATUSES", "error", "error_events", "events", "has_key", "models", "read", "whole"]
NAME = "chat"
CALL_PREFIX = "call_"
SHAPE = shape("chat")


def read(body, input_tokens: int) -> Conversation:
    check_shape(body, SHAPE)
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Refused("stream_options is only allowed with stream", "stream_options")
    functions = [tool["function"] for tool in body.get("tools", [])]
    empty = {"type": "object", "properties": {}}
    tools = check_tools(
        [(function["name"], function.get("parameters", empty)) for function in functions],
        [function.get("strict") for function in functions],
    )
    check_choice(body.get("tool_choice"), tools)
    if "parallel_tool_calls" in body and not tools:
        raise Refused("parallel_tool_calls is only allowed with tools", "parallel_tool_calls")
    system, turns = read_messages(body["messages"])
    check_turns(turns, tools)
    return Conversation(
        model=body["model"],
        system=system,
        tools=tools,
        turns=turns,
        is_stream=bool(body.get("stream")),
        input_tokens=input_tokens,
        request={"include_usage": bool((body.get("stream_options") or {}).get("include_usage"))},
    )


def check_choice(choice, tools: dict) -> None:
    if choice is None:
        return
    if not tools:
        raise Refused("tool_choice is only allowed with tools", "tool_choice")
    if isinstance(choice, dict) and choice["function"]["name"] not in tools:
        raise Refused("tool_choice names a tool that is not among the tools", "tool_choice")


def read_messages(messages: list):
    """The system's text, and the turns: messages of tools that follow each other are one."""
    system, turns, before = [], [], None
    for index, message in enumerate(messages):
        role, place = message["role"], f"messages[{index}]"
        text = text_of(message.get("content"))
        if role in ("system", "developer"):
            if turns:
                raise Refused("a message of the system must come before all others", place)
            system.append(text)
        elif role == "assistant":
            turns.append(read_assistant(message, text, place))
        elif role == "tool":
            if before not in ("assistant", "tool"):
                raise Refused("a message of role tool must follow a message with tool_calls", place)
            if before == "assistant":
                turns.append(Heard())
            turns[-1].results.append(ToolResult(message["tool_call_id"], text, None, None))
        elif before == "tool":
            turns[-1].text = text
        else:
            turns.append(Heard(text))
        before = role
    return "\n".join(system), turns


def read_assistant(message: dict, text: str, place: str) -> Said:
    calls = message.get("tool_calls", [])
    if not calls and not text and not message.get("refusal"):
        raise Refused("a message of the assistant has content or tool_calls", place)
    return Said(
        text or message.get("refusal") or "",
        [ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls],
    )


def text_of(content) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part["text"] for part in content)


def usage(answer: Answer) -> dict:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def finish_reason(answer: Answer) -> str:
    if answer.stop == "length":
        return "length"
    return "tool_calls" if answer.calls() else "stop"


def head(answer: Answer, conversation: Conversation, kind: str) -> dict:
    return {
        "id": f"chatcmpl-{answer.stem}",
        "object": kind,
        "created": int(time.time()),
        "model": conversation.model,
        "service_tier": "default",
        "system_fingerprint": "fp_script",
    }


def whole(answer: Answer, conversation: Conversation) -> dict:
    is_refusal = answer.stop == "refusal"
    text = answer.text() or None
    message = {
        "role": "assistant",
        "content": None if is_refusal else text,
        "refusal": text if is_refusal else None,
        "annotations": [],
    }
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments_text}}
        for call in answer.calls()
    ]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(answer)}
    return head(answer, conversation, "chat.completion") | {"choices": [choice], "usage": usage(answer)}


def events(answer: Answer, conversation: Conversation) -> list:
    deltas = [{"role": "assistant", "content": None if not answer.text() else "", "refusal": None}]
    name = "refusal" if answer.stop == "refusal" else "content"
    deltas += [{name: piece} for piece in pieces(answer.text())]
    for index, call in enumerate(answer.calls()):
        function = {"name": call.tool, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces(call.arguments_text)
        ]
    reasons = [None] * len(deltas) + [finish_reason(answer)]
    base = head(answer, conversation, "chat.completion.chunk")
    # With usage asked for, every chunk has the field and the last one the count.
    count = {"usage": None} if conversation.request["include_usage"] else {}
    chunks = [
        base | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]} | count
        for delta, reason in zip([*deltas, {}], reasons, strict=True)
    ]
    if count:
        chunks.append(base | {"choices": [], "usage": usage(answer)})
    return [(None, chunk) for chunk in chunks] + [(None, "[DONE]")]


def error_events(status: int, message: str, first: int, response: dict) -> list:
    return [(None, error(status, message, None, ""))]
