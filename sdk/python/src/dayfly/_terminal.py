"""A terminal in a sandbox: what goes over its WebSocket, without input or output.

::

    client                                   server
     |  {"type":"start","cmd":...}  ------->
     |  <------ {"type":"attached", ...}
     |  <------ binary: stream, offset, bytes
     |  binary: input            ---------->
     |  <------ {"type":"exit", ...}, close
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ._commands import Command, exec_body
from ._facts import ClientFacts
from ._http1 import request_head
from ._websocket import (
    Message,
    MessageReader,
    Opcode,
    check_upgrade,
    close_frame,
    encode,
    new_key,
    upgrade_headers,
)
from ._wire import Json, get, path_of
from .errors import AnswerLost, ProtocolError, error_of_answer, error_of_fields
from .models import ExecResult

HEADER_BYTES = 9
HEAD_BYTES_MAX = 64 << 10
SIZE_MAX = 1000
HANG_UP = 1
# The better shell if the template has it, as `dayfly shell` does.
_SHELL = "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi"
COMMAND_DEFAULT = ("/bin/sh", "-c", _SHELL)
TERM_DEFAULT = "xterm-256color"
# The server sends a ping every 10 s.
SILENCE_SECONDS = 60.0
# Opening may wake a sandbox first.
OPEN_SECONDS = 90.0
CLOSE_SECONDS = 2.0


class Handshake:
    """The request that makes a connection a WebSocket, and its answer."""

    def __init__(self, facts: ClientFacts, sandbox: str) -> None:
        self._key = new_key()
        self._buffer = b""
        self._status = 0
        self._headers: dict[str, str] = {}
        request = get(path_of("sandboxes", sandbox, "exec", "socket"))
        headers = {**facts.headers_of(request), **upgrade_headers(self._key)}
        self.request = request_head(facts.settings, request, headers)

    def feed(self, piece: bytes) -> bytes | None:
        """Takes what came. Gives what lies behind the answer once that is whole."""
        if not piece:
            self._refuse()
        self._buffer += piece
        if not self._status and not self._read_head():
            return None
        if self._status == 101:
            check_upgrade(self._headers, self._key)
            return self._buffer
        length = self._headers.get("content-length", "")
        if length.isdigit() and len(self._buffer) >= int(length):
            self._refuse()
        return None

    def _read_head(self) -> bool:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise ProtocolError("the head of the response does not end")
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        status = first[9:12]
        if not first.startswith("HTTP/1.") or not status.isdigit():
            raise ProtocolError("the response is not HTTP/1.1")
        pairs = (line.partition(":") for line in lines)
        self._headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._status, self._buffer = int(status), rest
        return True

    def _refuse(self) -> None:
        if not self._status:
            raise AnswerLost("the connection was lost before the terminal was open")
        raise error_of_answer(self._status, self._headers, self._buffer)


class Terminal:
    """The state of one terminal: messages go in, output and the end come out."""

    def __init__(self, request: Json, columns: int, rows: int) -> None:
        _check_size(columns, rows)
        size = {"columns": columns, "rows": rows}
        self._start: Json = {"type": "start", **request, "terminal": size, "stdin_open": True}
        self._reader = MessageReader()
        self._output = bytearray()
        self._pending = bytearray()
        self.exec_id: str = str(request["exec_id"])
        self.pid: int = 0
        self.is_attached: bool = False
        self.exit: Json | None = None
        self.is_closed: bool = False

    def start(self) -> bytes:
        return _call(self._start)

    def input(self, data: str | bytes) -> bytes:
        return encode(Opcode.BINARY, data.encode() if isinstance(data, str) else bytes(data))

    def resize(self, columns: int, rows: int) -> bytes:
        _check_size(columns, rows)
        return _call({"type": "resize", "columns": columns, "rows": rows})

    def signal(self, number: int) -> bytes:
        return _call({"type": "signal", "signal": number})

    def close(self) -> bytes:
        return close_frame()

    def take(self, piece: bytes) -> bytes:
        """Takes what came, and gives what has to be sent in reply."""
        if not piece:
            self.is_closed = True
            if self.exit is None:
                raise AnswerLost("the connection to the terminal was lost")
            return b""
        for message in self._reader.feed(piece):
            self._take(message)
        reply = bytes(self._pending)
        self._pending.clear()
        return reply

    def output(self) -> bytes:
        """What was printed and not asked for yet."""
        found = bytes(self._output)
        self._output.clear()
        return found

    def result(self, unread: bytes) -> ExecResult:
        """How the command ended, with the output that nobody has read."""
        end = self.exit or {}
        return ExecResult(
            stdout=unread.decode("utf-8", "replace"),
            stderr="",
            exit_code=int(end.get("exit_code", -1)),
            duration_ms=int(end.get("duration_ms", 0)),
            reason=str(end.get("reason", "exited")),
            signal=end.get("signal"),
            exec_id=self.exec_id,
            limits_hit=list(end.get("limits_hit", [])),
        )

    def _take(self, message: Message) -> None:
        if message.opcode is Opcode.PING:
            self._pending += encode(Opcode.PONG, message.payload)
        elif message.opcode is Opcode.CLOSE:
            self.is_closed = True
            self._pending += close_frame()
            if self.exit is None:
                raise AnswerLost(f"the server closed the terminal ({message.close_code})")
        elif message.opcode is Opcode.BINARY:
            if len(message.payload) < HEADER_BYTES or message.payload[0] not in (1, 2):
                raise ProtocolError("a message of the terminal is neither output nor text")
            self._output += message.payload[HEADER_BYTES:]
        elif message.opcode is Opcode.TEXT:
            self._told(_event(message.payload))

    def _told(self, event: Json) -> None:
        kind = event.get("type")
        if kind == "error":
            raise error_of_fields(event)
        if not self.is_attached:
            if kind != "attached":
                raise ProtocolError("the first message of the terminal is not its process")
            self.is_attached = True
            self.pid = int(event.get("pid", 0))
        elif kind == "exit":
            self.exit = event


def terminal(
    cols: int,
    rows: int,
    command: Command | None,
    env: Mapping[str, str] | None,
    cwd: str | None,
    user: str | None,
) -> Terminal:
    """A terminal that is not open yet, for a command or a shell."""
    words = COMMAND_DEFAULT if command is None else command
    request = exec_body(words, env={"TERM": TERM_DEFAULT, **(env or {})}, cwd=cwd, user=user)
    return Terminal(request, cols, rows)


def _check_size(columns: int, rows: int) -> None:
    if not (1 <= columns <= SIZE_MAX and 1 <= rows <= SIZE_MAX):
        raise ValueError(f"cols and rows are from 1 to {SIZE_MAX}")


def _call(body: Json) -> bytes:
    return encode(Opcode.TEXT, json.dumps(body).encode())


def _event(payload: bytes) -> Json:
    try:
        value: Any = json.loads(payload)
    except ValueError:
        raise ProtocolError("a message of the terminal is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("a message of the terminal is not a JSON object")
    return cast("Json", value)
