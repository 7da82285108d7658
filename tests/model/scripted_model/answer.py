"""A turn of the model on its way out, whichever wire format it takes."""
import json
import re
from dataclasses import dataclass

from .conversation import Refused, ToolCall, tokens
from .schema import schema_errors, value_errors

ESCAPE = re.compile(r"\\u[0-9a-f]{4}")
# Small and of no common measure, so that every kind of token gets cut somewhere.
SIZES = (1, 2, 3, 5, 7, 11, 4, 1)
# A long text goes out in larger pieces after these many.
SMALL_PIECES = 64
LARGE_PIECE = 4093
ESCAPES_CUT = 8


@dataclass(frozen=True)
class Answer:
    """`stem` is unique to the turn: ids of messages and items are made of it."""

    stem: str
    # Texts and ToolCalls.
    content: list
    # None, "length" or "refusal".
    stop: str | None
    input_tokens: int
    output_tokens: int

    def text(self) -> str:
        return "".join(part for part in self.content if isinstance(part, str))

    def calls(self) -> list:
        return [part for part in self.content if isinstance(part, ToolCall)]


def output_tokens(content: list) -> int:
    """Of a call its name and arguments count, as they do for the providers."""
    return tokens("".join(part if isinstance(part, str) else part.tool + part.arguments_text for part in content))


def pieces(text: str) -> list[str]:
    """The text in deltas that end at awkward places: in a word, a JSON token, a JSON escape."""
    places, at = set(), 0
    while at < len(text):
        count = len(places)
        at += SIZES[count % len(SIZES)] if count < SMALL_PIECES else LARGE_PIECE
        places.add(min(at, len(text)))
    for match, _ in zip(ESCAPE.finditer(text), range(ESCAPES_CUT), strict=False):
        places.add(match.start() + 3)
    ends = sorted(places)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def frame(event: str | None, data, is_ascii: bool) -> list[bytes]:
    """One server-sent event in two writes. Where it has a character of several bytes, the cut is in it."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=is_ascii, separators=(",", ":"))
    name = f"event: {event}\n" if event else ""
    whole = f"{name}data: {text}\n\n".encode()
    wide = next((at for at, byte in enumerate(whole) if byte >= 0xC0), None)
    cut = len(whole) // 2 if wide is None else wide + 1
    return [whole[:cut], whole[cut:]]


def check_shape(body, schema: dict) -> None:
    errors = value_errors(body, schema)
    if errors:
        place = errors[0].partition(" ")[0].removeprefix("$").lstrip(".")
        raise Refused("; ".join(errors[:3]).replace("$.", ""), place or None)


def check_tools(schemas: list, is_strict: list) -> dict:
    """The schema of each tool by its name. `schemas` has pairs."""
    tools = dict(schemas)
    if len(tools) != len(schemas):
        raise Refused("two tools have the same name", "tools")
    for (name, schema), strict in zip(schemas, is_strict, strict=True):
        errors = list(schema_errors(schema, name))
        if strict:
            errors += strict_errors(name, schema)
        if errors:
            raise Refused(f"the schema of tool {name} is not valid: {'; '.join(errors[:3])}", "tools")
    return tools


def strict_errors(name: str, schema: dict) -> list[str]:
    """What a provider asks of a schema that it promises to keep."""
    missing = sorted(set(schema.get("properties", {})) - set(schema.get("required", [])))
    return [
        *([f"{name}.required must name every property of a strict tool, not without {missing}"] if missing else []),
        *([] if schema.get("additionalProperties") is False else [f"{name}.additionalProperties must be false"]),
    ]
