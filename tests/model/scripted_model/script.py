"""A script: what the model does in each turn, and what it expects of the request before."""
import dataclasses
import json
import pathlib
import re
from dataclasses import dataclass, field

from .schema import value_errors

FORMATS = ("anthropic", "chat", "responses")
SHAPES = pathlib.Path(__file__).parent / "shapes"
FOREVER = "forever"
PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


class ScriptError(Exception):
    """A script that says something that this server does not know, or that cannot be meant."""


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments_text` goes out as it is, even if it is not JSON."""

    tool: str
    arguments_text: str
    fits: bool
    rehearsal: dict | None

    @property
    def arguments(self):
        try:
            return json.loads(self.arguments_text)
        except ValueError:
            return None


@dataclass(frozen=True)
class Turn:
    expect: dict
    pick: dict
    content: list
    stop: str | None
    usage: dict
    error: dict | None
    delay_ms: int
    hold: str | None
    broken: str | None
    times: int | None

    def is_answer(self) -> bool:
        """Whether the client gets all of it, so that it is part of the history from then on."""
        return not (self.error or self.hold or self.broken)


@dataclass(frozen=True)
class Script:
    about: str
    formats: tuple
    history: str
    run: dict
    outcome: dict
    conversations: list = field(default_factory=list)


def shape(name: str) -> dict:
    return json.loads((SHAPES / f"{name}.json").read_text(encoding="utf-8"))


def read_script(value) -> Script:
    """Parses a script. Nothing in it may be unknown."""
    errors = value_errors(value, shape("script"))
    if errors:
        raise ScriptError("; ".join(errors))
    if ("turns" in value) == ("conversations" in value):
        raise ScriptError("a script has either turns or conversations")
    conversations = value.get("conversations") or [value["turns"]]
    return Script(
        about=value["about"],
        formats=tuple(value.get("formats", FORMATS)),
        history=value.get("history", "kept"),
        run=value.get("run", {}),
        outcome=value.get("outcome", {}),
        conversations=[[read_turn(turn) for turn in turns] for turns in conversations],
    )


def load_script(path) -> Script:
    with open(path, encoding="utf-8") as file:
        try:
            return read_script(json.load(file))
        except (ValueError, ScriptError) as error:
            raise ScriptError(f"{path}: {error}") from error


def read_turn(value: dict) -> Turn:
    does = [name for name in ("content", "error", "hold", "break") if name in value]
    if not does or ("error" in value and "content" in value and not value["error"].get("in_stream")):
        raise ScriptError(f"a turn has content, or an error, or it breaks off or is held: {value}")
    if "result" in value.get("expect", {}) and "results" in value["expect"]:
        raise ScriptError(f"a turn expects either one result or several: {value}")
    times = value.get("times", 1)
    return Turn(
        expect=value.get("expect", {}),
        pick=value.get("pick", {}),
        content=[part if isinstance(part, str) else read_call(part) for part in value.get("content", [])],
        stop=value.get("stop"),
        usage=value.get("usage", {}),
        error=value.get("error"),
        delay_ms=value.get("delay_ms", 0),
        hold=value.get("hold"),
        broken=value.get("break"),
        times=None if times == FOREVER else times,
    )


def read_call(value: dict) -> Call:
    if ("arguments" in value) == ("arguments_text" in value):
        raise ScriptError(f"a call has either arguments or arguments_text: {value}")
    # Escapes, because a delta may then end in the middle of one.
    text = value["arguments_text"] if "arguments_text" in value else json.dumps(value["arguments"])
    return Call(value["tool"], text, value.get("fits", True), value.get("rehearsal"))


def fill(turn: Turn, values: dict) -> Turn:
    """The turn with `{{name}}` replaced by what was picked under that name."""

    def replace(text: str, encode) -> str:
        def one(match):
            if match[1] not in values:
                raise ScriptError(f"nothing was picked under the name {match[1]!r}")
            return encode(values[match[1]])

        return PLACEHOLDER.sub(one, text)

    filled = []
    for part in turn.content:
        if isinstance(part, str):
            filled.append(replace(part, str))
        else:
            text = replace(part.arguments_text, lambda value: json.dumps(value)[1:-1])
            filled.append(Call(part.tool, text, part.fits, part.rehearsal))
    return dataclasses.replace(turn, content=filled)
