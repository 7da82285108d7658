"""Server-sent events: bytes go in, events come out, however the bytes are cut."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ProtocolError

# The server's own limit is 64 KiB.
EVENT_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class Event:
    name: str
    data: str
    # Of this event, or of the last one before it that had one.
    id: str = ""


class EventParser:
    """Follows the WHATWG grammar; an event without its blank line at the end is not an event."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_after_return = False
        self._is_past_first_line = False
        self._name = ""
        self._data: list[str] = []
        self._id = ""
        self._held = 0

    def push(self, piece: bytes) -> list[Event]:
        events: list[Event] = []
        if self._is_after_return and piece:
            # A line feed after a carriage return belongs to it.
            piece = piece.removeprefix(b"\n")
            self._is_after_return = False
        text = self._rest + piece
        start = 0
        while True:
            end = _line_end(text, start)
            if end < 0:
                break
            line = text[start:end]
            start = end + 1
            if text[end : end + 1] == b"\r":
                if start == len(text):
                    self._is_after_return = True
                elif text[start : start + 1] == b"\n":
                    start += 1
            event = self._end_line(line)
            if event is not None:
                events.append(event)
        self._rest = text[start:]
        if self._held + len(self._rest) > EVENT_BYTES_MAX:
            raise ProtocolError("an event is longer than any that the server sends")
        return events

    def _end_line(self, raw: bytes) -> Event | None:
        line = raw.decode("utf-8", "replace")
        if not self._is_past_first_line:
            self._is_past_first_line = True
            line = line.removeprefix("\ufeff")
        if not line:
            return self._end_event()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
            self._held += len(raw)
        elif name == "id":
            self._id = value
        # Comments, `retry` and what later versions may add do not count.
        return None

    def _end_event(self) -> Event | None:
        name, data = self._name or "message", self._data
        self._name, self._data, self._held = "", [], 0
        return Event(name, "\n".join(data), self._id) if data else None


def _line_end(text: bytes, start: int) -> int:
    feed, back = text.find(b"\n", start), text.find(b"\r", start)
    if feed < 0 or back < 0:
        return max(feed, back)
    return min(feed, back)
