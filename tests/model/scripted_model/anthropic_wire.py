"""Messages of Anthropic: `POST /v1/messages` and `/v1/messages/count_tokens`."""
import json

from .answer import Answer, check_shape, check_tools, pieces
from .conversation import Conversation, Heard, Refused, Said, ToolCall, ToolResult, check_turns
from .script import shape

NAME = "anthropic"
CALL_PREFIX = "toolu_01"
# The one that the published packages send. Older ones take fields that this one refuses.
VERSIONS = ("2026-10-21",)
SHAPE = shape("anthropic")
STATUSES = {}
COUNT_FIELDS = ("messages", "model", "system", "tool_choice", "tools", "cache_control")
COUNT_SHAPE = {
    **SHAPE,
    "properties": {name: SHAPE["properties"][name] for name in COUNT_FIELDS},
    "required": ["messages", "model"],
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
# What Anthropic says that its own tools take.
NATIVE_SCHEMAS = {
    "bash": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "restart": {"type": "boolean"}},
        "additionalProperties": False,
    },
    "str_replace_based_edit_tool": {
        "type": "object",
        "properties": {
            "command": {"enum": ["view", "create", "str_replace", "insert"]},
            "path": {"type": "string"},
            "file_text": {"type": "string"},
            "old_str": {"type": "string"},
            "new_str": {"type": "string"},
            "insert_line": {"type": "integer", "minimum": 0},
            "insert_text": {"type": "string"},
            "view_range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        },
        "required": ["command", "path"],
        "additionalProperties": False,
    },
}


def read(body, input_tokens: int, is_count: bool = False) -> Conversation:
    check_shape(body, COUNT_SHAPE if is_count else SHAPE)
    tools = read_tools(body.get("tools", []))
    choice = body.get("tool_choice", {})
    if choice and (not tools or choice.get("name", next(iter(tools), None)) not in tools):
        raise Refused("tool_choice names a tool that is not among the tools", "tool_choice")
    turns = [read_message(message) for message in body["messages"]]
    check_turns(turns, tools)
    system = body.get("system", "")
    return Conversation(
        model=body["model"],
        system=system if isinstance(system, str) else "\n".join(block["text"] for block in system),
        tools=tools,
        turns=turns,
        is_stream=body.get("stream", False),
        input_tokens=input_tokens,
    )


def read_tools(tools: list) -> dict:
    schemas = [(tool["name"], tool.get("input_schema") or NATIVE_SCHEMAS[tool["name"]]) for tool in tools]
    return check_tools(schemas, [tool.get("strict", False) and "input_schema" in tool for tool in tools])


def read_message(message: dict):
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if message["role"] == "assistant":
        uses = [block for block in blocks if block["type"] == "tool_use"]
        return Said(text, [ToolCall(use["id"], use["name"], json.dumps(use["input"])) for use in uses])
    kinds = [block["type"] == "tool_result" for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        raise Refused("tool_result blocks must come first in the content of a message", "messages")
    return Heard(text, [read_result(block) for block, is_result in zip(blocks, kinds, strict=True) if is_result])


def read_result(block: dict) -> ToolResult:
    content = block.get("content", "")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    is_error = block.get("is_error", False)
    if is_error and any(part["type"] == "image" for part in parts):
        raise Refused("a tool_result with is_error must hold text alone", "messages")
    return ToolResult(
        call_id=block["tool_use_id"],
        text="".join(part["text"] for part in parts if part["type"] == "text"),
        is_error=is_error,
        images=sum(part["type"] == "image" for part in parts),
    )


def usage(answer: Answer, written: int) -> dict:
    return {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": written,
        "service_tier": "standard",
    }


def stop_reason(answer: Answer) -> str:
    named = {"length": "max_tokens", "refusal": "refusal"}
    return named.get(answer.stop) or ("tool_use" if answer.calls() else "end_turn")


def block_of(part) -> dict:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    try:
        given = json.loads(part.arguments_text)
    except ValueError:
        given = {}
    return {"type": "tool_use", "id": part.id, "name": part.tool, "input": given}


def whole(answer: Answer, conversation: Conversation) -> dict:
    return {
        "id": f"msg_01{answer.stem}",
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": [block_of(part) for part in answer.content],
        "stop_reason": stop_reason(answer),
        "stop_sequence": None,
        "usage": usage(answer, answer.output_tokens),
    }


def events(answer: Answer, conversation: Conversation) -> list:
    """Pairs of a name and its data. The first counts hardly any output, the last all of it."""
    start = whole(answer, conversation) | {"content": [], "stop_reason": None, "usage": usage(answer, 1)}
    made = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, part in enumerate(answer.content):
        made += block_events(index, part)
    made.append({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(answer), "stop_sequence": None},
        "usage": {"output_tokens": answer.output_tokens},
    })
    made.append({"type": "message_stop"})
    return [(event["type"], event) for event in made]


def block_events(index: int, part) -> list:
    is_text = isinstance(part, str)
    empty = block_of(part) | ({"text": ""} if is_text else {"input": {}})
    deltas = [
        {"type": "text_delta", "text": piece} if is_text else {"type": "input_json_delta", "partial_json": piece}
        for piece in ([] if is_text else [""]) + pieces(part if is_text else part.arguments_text)
    ]
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def error(status: int, message: str, param: str | None, request_id: str) -> dict:
    text = f"{param}: {message}" if param else message
    return {"type": "error", "error": {"type": ERROR_TYPES[status], "message": text}, "request_id": request_id}


def error_events(status: int, message: str, first: int, response: dict) -> list:
    return [("error", {"type": "error", "error": {"type": ERROR_TYPES[status], "message": message}})]


def has_key(headers) -> bool:
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    return key.strip() not in ("", "wrong")


def models(names: list) -> dict:
    data = [
        {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active"}
        for name in names
    ]
    return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
