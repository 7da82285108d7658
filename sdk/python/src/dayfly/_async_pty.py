"""As ``pty``, for asyncio."""

from __future__ import annotations

import asyncio
import time

from ._async import AsyncSession
from ._keywords import known_keywords
from ._terminal import (
    CLOSE_SECONDS,
    HANG_UP,
    OPEN_SECONDS,
    SILENCE_SECONDS,
    Handshake,
    Terminal,
)
from .errors import AnswerLost, AnswerTimeout, DayflyError
from .models import ExecResult

PIECE_BYTES = 64 << 10


class AsyncPty:
    """As ``Pty``, for asyncio. One task may read while another one writes."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, terminal: Terminal
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._terminal = terminal
        self._is_closed = False

    @classmethod
    async def open(cls, session: AsyncSession, sandbox: str, terminal: Terminal) -> AsyncPty:
        """Connects and starts the command."""
        reader, writer = await session.connect()
        pty = cls(reader, writer, terminal)
        try:
            handshake = Handshake(session.facts, sandbox)
            writer.write(handshake.request)
            rest = handshake.feed(await pty._received(OPEN_SECONDS))
            while rest is None:
                rest = handshake.feed(await pty._received(OPEN_SECONDS))
            await pty._send(terminal.start())
            if rest:
                await pty._take(rest)
            while not terminal.is_attached:
                await pty._receive(OPEN_SECONDS)
        except BaseException:
            writer.close()
            raise
        return pty

    @property
    def exec_id(self) -> str:
        """The id of the command: ``Sandbox.process`` finds it."""
        return self._terminal.exec_id

    @property
    def pid(self) -> int:
        return self._terminal.pid

    @known_keywords
    async def read(self, timeout_seconds: float | None = None) -> bytes:
        """The next output; nothing at its end. Past ``timeout_seconds`` ``AnswerTimeout``."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            found = self._terminal.output()
            if found or self._terminal.exit is not None or self._is_closed:
                return found
            await self._receive(_rest(deadline))

    async def write(self, data: str | bytes) -> None:
        """Types something. A line ends with ``\\n``; ``\\x03`` is Ctrl-C, ``\\x04`` Ctrl-D."""
        await self._send(self._terminal.input(data))

    @known_keywords
    async def resize(self, cols: int, rows: int) -> None:
        """Tells the command how large its terminal is."""
        await self._send(self._terminal.resize(cols, rows))

    async def signal(self, number: int) -> None:
        """Sends a signal to the process group of the command."""
        await self._send(self._terminal.signal(number))

    @known_keywords
    async def wait(self, timeout_seconds: float | None = None) -> ExecResult:
        """Waits for the end of the command; ``stdout`` is what was not read until then."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        unread = bytearray(self._terminal.output())
        while self._terminal.exit is None:
            await self._receive(_rest(deadline))
            unread += self._terminal.output()
        return self._terminal.result(bytes(unread))

    async def close(self) -> None:
        """Hangs up, which ends most commands, and closes the connection. Repeating is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._terminal.exit is None:
                await self._send(self._terminal.signal(HANG_UP))
            await self._send(self._terminal.close())
            deadline = time.monotonic() + CLOSE_SECONDS
            while not self._terminal.is_closed:
                await self._receive(_rest(deadline))
        except DayflyError:
            # Whoever closes does not care whether the other side was faster.
            return
        finally:
            self._writer.close()

    async def __aenter__(self) -> AsyncPty:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncPty {self.exec_id}>"

    async def _send(self, frame: bytes) -> None:
        try:
            self._writer.write(frame)
            await asyncio.wait_for(self._writer.drain(), SILENCE_SECONDS)
        except (TimeoutError, OSError) as error:
            raise AnswerLost(f"the connection to the terminal was lost ({error})") from None

    async def _receive(self, timeout: float | None) -> None:
        if self._terminal.is_closed:
            raise AnswerLost("the terminal is closed")
        await self._take(await self._received(SILENCE_SECONDS if timeout is None else timeout))

    async def _take(self, piece: bytes) -> None:
        reply = self._terminal.take(piece)
        if reply:
            await self._send(reply)

    async def _received(self, timeout: float) -> bytes:
        try:
            return await asyncio.wait_for(self._reader.read(PIECE_BYTES), timeout)
        except TimeoutError:
            raise AnswerTimeout("the terminal said nothing for too long") from None
        except OSError as error:
            raise AnswerLost(f"the connection to the terminal was lost ({error})") from None


def _rest(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)
