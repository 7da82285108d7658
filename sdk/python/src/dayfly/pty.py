"""A terminal in a sandbox."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time

from ._keywords import known_keywords
from ._sync import Session
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


class Pty:
    """A command that has a terminal: what it prints is read, what is written it reads as typed.

    One thread may read while another one writes::

        with sandbox.pty(cols=120, rows=40) as pty:
            pty.write("ls --color\\n")
            while chunk := pty.read():
                sys.stdout.buffer.write(chunk)

    At the end of ``with`` it is hung up, and the command ended by that.
    """

    def __init__(self, connection: socket.socket, terminal: Terminal) -> None:
        self._connection = connection
        self._terminal = terminal
        self._sending = threading.Lock()
        self._is_closed = False

    @classmethod
    def open(cls, session: Session, sandbox: str, terminal: Terminal) -> Pty:
        """Connects and starts the command."""
        connection = session.connect()
        # For both directions, and never changed: one thread may read while another one writes.
        connection.settimeout(SILENCE_SECONDS)
        try:
            rest = _upgrade(connection, Handshake(session.facts, sandbox))
            pty = cls(connection, terminal)
            pty._send(terminal.start())
            if rest:
                pty._take(rest)
            while not terminal.is_attached:
                pty._receive(OPEN_SECONDS)
        except BaseException:
            connection.close()
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
    def read(self, timeout_seconds: float | None = None) -> bytes:
        """The next output; nothing at its end. Past ``timeout_seconds`` ``AnswerTimeout``."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            found = self._terminal.output()
            if found or self._terminal.exit is not None or self._is_closed:
                return found
            self._receive(_rest(deadline))

    def write(self, data: str | bytes) -> None:
        """Types something. A line ends with ``\\n``; ``\\x03`` is Ctrl-C, ``\\x04`` Ctrl-D."""
        self._send(self._terminal.input(data))

    @known_keywords
    def resize(self, cols: int, rows: int) -> None:
        """Tells the command how large its terminal is."""
        self._send(self._terminal.resize(cols, rows))

    def signal(self, number: int) -> None:
        """Sends a signal to the process group of the command."""
        self._send(self._terminal.signal(number))

    @known_keywords
    def wait(self, timeout_seconds: float | None = None) -> ExecResult:
        """Waits for the end of the command; ``stdout`` is what was not read until then."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        unread = bytearray(self._terminal.output())
        while self._terminal.exit is None:
            self._receive(_rest(deadline))
            unread += self._terminal.output()
        return self._terminal.result(bytes(unread))

    def close(self) -> None:
        """Hangs up, which ends most commands, and closes the connection. Repeating is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._terminal.exit is None:
                self._send(self._terminal.signal(HANG_UP))
            self._send(self._terminal.close())
            deadline = time.monotonic() + CLOSE_SECONDS
            while not self._terminal.is_closed:
                self._receive(_rest(deadline))
        except DayflyError:
            # Whoever closes does not care whether the other side was faster.
            return
        finally:
            self._connection.close()

    def __enter__(self) -> Pty:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Pty {self.exec_id}>"

    def _send(self, frame: bytes) -> None:
        with self._sending:
            try:
                self._connection.sendall(frame)
            except OSError as error:
                raise AnswerLost(f"the connection to the terminal was lost ({error})") from None

    def _receive(self, timeout: float | None) -> None:
        if self._terminal.is_closed:
            raise AnswerLost("the terminal is closed")
        self._take(_received(self._connection, timeout))

    def _take(self, piece: bytes) -> None:
        reply = self._terminal.take(piece)
        if reply:
            self._send(reply)


def _upgrade(connection: socket.socket, handshake: Handshake) -> bytes:
    connection.sendall(handshake.request)
    while True:
        rest = handshake.feed(_received(connection, OPEN_SECONDS))
        if rest is not None:
            return rest


def _received(connection: socket.socket, timeout: float | None) -> bytes:
    try:
        if timeout is not None and not _has_read_ahead(connection):
            readable, _, _ = select.select([connection], [], [], timeout)
            if not readable:
                raise TimeoutError
        return connection.recv(PIECE_BYTES)
    except TimeoutError:
        raise AnswerTimeout("the terminal said nothing for too long") from None
    except (OSError, ValueError) as error:
        raise AnswerLost(f"the connection to the terminal was lost ({error})") from None


def _has_read_ahead(connection: socket.socket) -> bool:
    return isinstance(connection, ssl.SSLSocket) and connection.pending() > 0


def _rest(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)
