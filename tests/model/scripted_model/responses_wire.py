"""Responses of OpenAI: `POST /v1/responses`."""
import time

from .answer import Answer, check_shape, check_tools, pieces
from .conversation import Conversation, Heard, Refused, Said, ToolCall, ToolResult, check_turns
from .openai_errors import ERROR_TYPES, STATUSES, error, has_key, models
from .script import shape

__all__ = ["CALL_PREFIX", "NAME", "STATUSES", "error", "error_events", "events", "has_key", "models", "read", "whole"]
NAME = "responses"
CALL_PREFIX = "call_"
SHAPE = shape("responses")


def read(body, input_tokens: int, stored: dict) -> Conversation:
    """`stored` has the items of earlier responses by their id, as the provider keeps them."""
    check_shape(body, SHAPE)
    declared = body.get("tools", [])
    tools = check_tools(
        [(tool["name"], tool["parameters"]) for tool in declared], [tool["strict"] for tool in declared]
    )
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["name"] not in tools:
        raise Refused("tool_choice names a tool that is not among the tools", "tool_choice")
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    previous = body.get("previous_response_id")
    if previous is not None:
        if previous not in stored:
            raise Refused(f"Previous response with id '{previous}' not found.", "previous_response_id")
        items = stored[previous] + items
    system, turns = read_items(items)
    check_turns(turns, tools)
    return Conversation(
        model=body["model"],
        system="\n".join([*([body["instructions"]] if body.get("instructions") else []), *system]),
        tools=tools,
        turns=turns,
        is_stream=bool(body.get("stream")),
        input_tokens=input_tokens,
        request={"body": body, "items": items},
    )


def read_items(items: list):
    system, turns, before = [], [], None
    for index, item in enumerate(items):
        kind, role, place = item.get("type", "message"), item.get("role"), f"input[{index}]"
        if role in ("system", "developer"):
            if turns:
                raise Refused("a message of the system must come before all others", place)
            system.append(text_of(item["content"]))
        elif kind == "function_call" or role == "assistant":
            add_said(turns, item)
        elif kind == "function_call_output":
            if before == "user":
                raise Refused("a function_call_output must follow the function calls", place)
            add_output(turns, item)
        elif before == "user":
            raise Refused("two messages of the user follow each other", place)
        elif turns and isinstance(turns[-1], Heard):
            turns[-1].text = text_of(item["content"])
        else:
            turns.append(Heard(text_of(item["content"])))
        before = role
    return system, turns


def add_said(turns: list, item: dict) -> None:
    """Items of the model that follow each other are one turn: between two, somebody else speaks."""
    if not turns or not isinstance(turns[-1], Said):
        turns.append(Said())
    if item.get("type") == "function_call":
        turns[-1].calls.append(ToolCall(item["call_id"], item["name"], item["arguments"]))
    else:
        turns[-1].text += text_of(item["content"])


def add_output(turns: list, item: dict) -> None:
    output = item["output"]
    if not turns or not isinstance(turns[-1], Heard):
        turns.append(Heard())
    images = 0 if isinstance(output, str) else sum(part["type"] == "input_image" for part in output)
    turns[-1].results.append(ToolResult(item["call_id"], text_of(output), None, images))


def text_of(content) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content)


def usage(answer: Answer) -> dict:
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def output_items(answer: Answer) -> list:
    status = "incomplete" if answer.stop == "length" else "completed"
    items = []
    for index, part in enumerate(answer.content):
        if isinstance(part, str):
            items.append({
                "type": "message",
                "id": f"msg_{answer.stem}i{index}",
                "status": status,
                "role": "assistant",
                "content": [text_part(answer, part)],
            })
        else:
            items.append({
                "type": "function_call",
                "id": f"fc_{answer.stem}i{index}",
                "call_id": part.id,
                "name": part.tool,
                "arguments": part.arguments_text,
                "status": status,
            })
    return items


def text_part(answer: Answer, text: str) -> dict:
    if answer.stop == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def response_id(answer: Answer) -> str:
    return f"resp_{answer.stem}"


def whole(answer: Answer, conversation: Conversation) -> dict:
    body = conversation.request["body"]
    is_cut = answer.stop == "length"
    return {
        "id": response_id(answer),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": conversation.model,
        "output": output_items(answer),
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": usage(answer),
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
    }


def events(answer: Answer, conversation: Conversation) -> list:
    response = whole(answer, conversation)
    begun = response | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    made = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    for index, item in enumerate(response["output"]):
        made += call_events(index, item) if item["type"] == "function_call" else message_events(index, item)
    made.append({"type": f"response.{response['status']}", "response": response})
    return numbered(made)


def numbered(made: list, first: int = 0) -> list:
    return [(event["type"], event | {"sequence_number": first + number}) for number, event in enumerate(made)]


def message_events(index: int, item: dict) -> list:
    part = item["content"][0]
    name = "refusal" if part["type"] == "refusal" else "text"
    stem = "response.refusal" if name == "refusal" else "response.output_text"
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    extra = {} if name == "refusal" else {"logprobs": []}
    begun = {"status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item | begun | {"content": []}},
        {"type": "response.content_part.added", **place, "part": part | {name: ""}},
        *({"type": f"{stem}.delta", **place, "delta": piece, **extra} for piece in pieces(part[name])),
        {"type": f"{stem}.done", **place, name: part[name], **extra},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def call_events(index: int, item: dict) -> list:
    place = {"item_id": item["id"], "output_index": index}
    stem = "response.function_call_arguments"
    begun = {"status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item | begun | {"arguments": ""}},
        *({"type": f"{stem}.delta", **place, "delta": piece} for piece in pieces(item["arguments"])),
        {"type": f"{stem}.done", **place, "arguments": item["arguments"], "name": item["name"]},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def error_events(status: int, message: str, first: int, response: dict) -> list:
    """A failure of the model is an event of the response, any other is an event `error`."""
    kind, code = ERROR_TYPES[status]
    if status != 500:
        return numbered([{"type": "error", "code": code or kind, "message": message, "param": None}], first)
    failed = response | {"status": "failed", "output": [], "usage": None}
    failed["error"] = {"code": "server_error", "message": message}
    return numbered([{"type": "response.failed", "response": failed}], first)
