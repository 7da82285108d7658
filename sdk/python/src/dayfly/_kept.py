"""What is kept of output: all of it, or of a long one its head and its tail."""

from __future__ import annotations

from typing import Any

# Of each stream, as a plain exec keeps it.
KEPT_BYTES = 8 << 20
# The tail is cut when it is over its limit by this much, not for every chunk.
SLACK_BYTES = 64 << 10


class KeptText:
    """Takes a stream of any length and never holds more than a limit of it."""

    def __init__(self, limit: int | None = None) -> None:
        limit = KEPT_BYTES if limit is None else min(limit, KEPT_BYTES)
        self._tail_limit = limit // 2
        self._head_limit = limit - self._tail_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._tail_begin = 0
        self.total = 0

    def add(self, text: str) -> int:
        """Takes more of the stream, and gives its length in bytes."""
        content = text.encode("utf-8", "replace")
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += content[:room]
        if len(content) > room:
            self._tail += content[max(room, 0) :]
            surplus = len(self._tail) - self._tail_limit
            if surplus > SLACK_BYTES:
                del self._tail[:surplus]
                self._tail_begin += surplus
        self.total += len(content)
        return len(content)

    def give(self) -> tuple[str, tuple[int, int] | None]:
        """The text, with a mark where something is left out, and which part that is."""
        surplus = len(self._tail) - self._tail_limit
        if self._tail_begin == 0 and surplus <= 0:
            return _text(self._head + self._tail), None
        if surplus > 0:
            del self._tail[:surplus]
            self._tail_begin += surplus
        # A character that was cut in two belongs to what is left out.
        head = self._head.decode("utf-8", "ignore")
        tail = self._tail.decode("utf-8", "ignore")
        begin = len(head.encode())
        left_out = self.total - begin - len(tail.encode())
        gap = "" if not head or head.endswith("\n") else "\n"
        mark = f"{gap}[... {left_out} bytes left out, from offset {begin} ...]\n"
        return f"{head}{mark}{tail}", (begin, left_out)


def omission(stream: str, offset: int, length: int, *, is_readable: bool) -> dict[str, Any]:
    """A part that a result leaves out, as the server names them."""
    return {"stream": stream, "offset": offset, "bytes": length, "readable": is_readable}


def _text(content: bytearray) -> str:
    return content.decode("utf-8", "replace")
