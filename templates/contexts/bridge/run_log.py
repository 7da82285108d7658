"""The events of one run: numbered from 1, bounded, read by anybody at his own pace."""

import array
import asyncio
import collections

from .events import encode
from .limits import RUN_BYTES_MAX


class RunLog:
    def __init__(self, bytes_max=RUN_BYTES_MAX):
        self.is_ended = False
        self._bytes_max = bytes_max
        self._lines = collections.deque()
        self._kept_bytes = 0
        # The number of the oldest line that is kept.
        self._first = 1
        # Entry n is how many bytes the events 1 to n had together.
        self._sums = array.array("Q", [0])
        self._readers = set()

    def add(self, event):
        """Adds an event and drops the oldest ones when there is no room. Ignored after the end."""
        if self.is_ended:
            return
        number = self._first + len(self._lines)
        line = encode({"seq": number, **event})
        self._lines.append(line)
        self._kept_bytes += len(line)
        self._sums.append(self._sums[-1] + len(line))
        while self._kept_bytes > self._bytes_max and len(self._lines) > 1:
            self._kept_bytes -= len(self._lines.popleft())
            self._first += 1
        self.is_ended = event["type"] == "end"
        for reader in self._readers:
            reader.set()

    async def read(self, after=0):
        """Yields the lines behind `after`: those that are kept at once, later ones as they come.

        Where some are gone, one line says how many, with the number of the last of them.
        """
        news = asyncio.Event()
        self._readers.add(news)
        try:
            while True:
                news.clear()
                if after + 1 < self._first:
                    yield self._dropped_after(after)
                    after = self._first - 1
                index = after + 1 - self._first
                if index < len(self._lines):
                    after += 1
                    yield self._lines[index]
                elif self.is_ended:
                    return
                else:
                    await news.wait()
        finally:
            self._readers.discard(news)

    def _dropped_after(self, after):
        last = self._first - 1
        return encode(
            {
                "seq": last,
                "type": "dropped",
                "events": last - after,
                "bytes": self._sums[last] - self._sums[after],
            }
        )
