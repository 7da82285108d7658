"""A conversation that can be stored, resumed and replayed.

The format is JSON with a version. What this program does not know in it is refused, rather than
left out of a conversation that goes on.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ._budget import StopReason
from ._conversation import CallResult, Message, Results, Turn, UserText
from ._stored import Fields, TranscriptRefused, message_of

FORMAT = "dayfly-transcript"
VERSION = 1
INTERRUPTED = "error: whether this call was carried out is not known: the run was interrupted"


@dataclass
class Transcript:
    """All that was said. ``stop`` is why the last run ended, if it has."""

    messages: list[Message] = field(default_factory=list[Message])
    stop: str | None = None

    def to_json(self) -> dict[str, Any]:
        """It as plain data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "stop": self.stop,
            "messages": [_message_to_json(one) for one in self.messages],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Transcript:
        """From what ``to_json`` gave. ``TranscriptRefused`` if anything in it is not known."""
        fields = Fields("a transcript", data)
        if fields.plain("format") != FORMAT or fields.take("version", int) != VERSION:
            raise TranscriptRefused(f"this is not a transcript of version {VERSION}")
        stop = _stop(fields.plain("stop"))
        numbers = itertools.count(1)
        messages = fields.each("messages", lambda one: _message_from_json(next(numbers), one))
        fields.end()
        return cls(messages, stop)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, as a whole or not at all."""
        target = Path(path)
        # A new file under a name that nobody can guess, for its owner alone: tools print secrets.
        opened, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(opened, "w", encoding="utf-8") as file:
                # In ASCII: a model may have said half of a surrogate pair.
                json.dump(self.to_json(), file)
            os.replace(part, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Transcript:
        """Reads what ``save`` wrote.

        Nothing in it is carried out, but the model takes it for what was said and done: a file
        that somebody else wrote can make it believe anything.
        """
        try:
            data: object = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise TranscriptRefused("this is not JSON") from None
        if not isinstance(data, dict):
            raise TranscriptRefused("this is not a transcript")
        return cls.from_json(cast("dict[str, Any]", data))

    def copy(self) -> Transcript:
        return Transcript(list(self.messages), self.stop)

    def turns(self) -> list[Turn]:
        """What the model said, turn by turn."""
        return [one for one in self.messages if isinstance(one, Turn)]

    def replay(self) -> Callable[[list[Message], list[dict[str, Any]]], Turn]:
        """A model that says again what was said: its calls are carried out anew."""
        turns = iter(self.turns())

        def say(messages: list[Message], tools: list[dict[str, Any]]) -> Turn:
            turn = next(turns, None)
            if turn is None:
                raise LookupError("the transcript has no further turn to replay")
            return turn

        return say

    def close_calls(self) -> None:
        """Gives calls without a result one that says so: providers refuse them otherwise."""
        if not self.messages:
            return
        last = self.messages[-1]
        if isinstance(last, Turn) and last.calls:
            self.messages.append(
                Results([CallResult(one.id, one.name, INTERRUPTED, True) for one in last.calls])
            )


def _message_to_json(message: Message) -> dict[str, Any]:
    if isinstance(message, UserText):
        return {"kind": "user", "text": message.text}
    if isinstance(message, Results):
        return {"kind": "results", "results": [_result_to_json(one) for one in message.results]}
    return {
        "kind": "turn",
        "text": message.text,
        "calls": [
            {"id": one.id, "name": one.name, "arguments": one.arguments} for one in message.calls
        ],
        "usage": vars(message.usage),
        "is_cut": message.is_cut,
        "is_refused": message.is_refused,
        "provider": message.provider,
        "raw": message.raw,
    }


def _result_to_json(result: CallResult) -> dict[str, Any]:
    return {**vars(result), "images": [vars(one) for one in result.images]}


def _message_from_json(number: int, data: Any) -> Message:
    try:
        return message_of(data)
    except TranscriptRefused as refused:
        raise TranscriptRefused(f"message {number}: {refused}") from None


def _stop(given: object) -> str | None:
    if given is None or (isinstance(given, str) and given in set(StopReason)):
        return given
    raise TranscriptRefused("stop is no reason that is known")
