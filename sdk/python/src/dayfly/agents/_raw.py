"""What a provider wants to see again of a turn, checked before it is sent from a stored one.

``raw`` goes to the provider as it is. So only kinds are taken that a model says, and never one that
speaks for the user, the system or a tool; and they say the same as the turn, which is what people
and programs read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from ._anthropic import PROVIDER as ANTHROPIC
from ._conversation import ToolCall, Turn
from ._openai_chat import PROVIDER as OPENAI_CHAT
from ._openai_chat import arguments_of
from ._openai_responses import PROVIDER as OPENAI_RESPONSES


class RawRefused(ValueError):
    """It is not what the provider gave."""


Item = Mapping[str, Any]
# What an item says, and what it calls.
Said = tuple[str, ToolCall | None]


def check_raw(turn: Turn) -> None:
    """Refuses what is not of the known kinds, or says other things than the turn does."""
    if turn.provider == OPENAI_CHAT:
        if turn.raw is not None:
            raise RawRefused("there is none of this provider")
        return
    read = _READERS.get(turn.provider)
    if read is None:
        # Of a model of the caller's own. No model of ours sends it.
        return
    raw: object = turn.raw
    if not isinstance(raw, list):
        raise RawRefused("it is not a list")
    said = [_read(read, one) for one in cast("list[object]", raw)]
    text = "".join(one for one, _ in said)
    calls = [call for _, call in said if call is not None]
    if text != turn.text or calls != turn.calls:
        raise RawRefused("it says other things than text and calls")


def _read(read: Callable[[Item], Said], item: object) -> Said:
    if not isinstance(item, dict):
        raise RawRefused("an item is not an object")
    return read(cast("dict[str, Any]", item))


def _anthropic_block(block: Item) -> Said:
    kind = block.get("type")
    if kind == "text":
        _check(block, {"type": str, "text": str})
        return block["text"], None
    if kind == "tool_use":
        _check(block, {"type": str, "id": str, "name": str, "input": dict})
        return "", ToolCall(block["id"], block["name"], block["input"])
    if kind == "thinking":
        _check_kept(block, {"thinking": str, "signature": str})
    elif kind == "redacted_thinking":
        _check_kept(block, {"data": str})
    else:
        raise RawRefused(f"a block of type {kind!r} is not known")
    return "", None


def _responses_item(item: Item) -> Said:
    if "role" in item:
        _check(item, {"role": str, "content": str})
        if item["role"] != "assistant":
            raise RawRefused(f"the model does not speak as {item['role']!r}")
        return item["content"], None
    kind = item.get("type")
    if kind == "function_call":
        _check(item, {"type": str, "call_id": str, "name": str, "arguments": str})
        return "", ToolCall(item["call_id"], item["name"], arguments_of(item["arguments"]))
    if kind != "reasoning":
        raise RawRefused(f"an item of type {kind!r} is not known")
    _check_kept(item, {"id": str, "summary": list, "encrypted_content": str})
    return "", None


def _check(item: Item, kinds: Mapping[str, type]) -> None:
    """Of an item that is ours: these fields, and no others."""
    if set(item) != set(kinds):
        raise RawRefused(f"an item has not the fields {', '.join(kinds)}")
    _check_kept(item, kinds)


def _check_kept(item: Item, kinds: Mapping[str, type]) -> None:
    """Of an item that is given back as it came: the provider may have more fields by now."""
    for name, kind in kinds.items():
        if name in item and not isinstance(item[name], kind):
            raise RawRefused(f"{name} of an item is of another type")


_READERS: Mapping[str, Callable[[Item], Said]] = {
    ANTHROPIC: _anthropic_block,
    OPENAI_RESPONSES: _responses_item,
}
