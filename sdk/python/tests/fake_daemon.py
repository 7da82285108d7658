"""A server on the loopback interface that answers as a test wants, faults included."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

SANDBOX = "sb-local-0123456789"


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    # As it stands in the request line; a proxy is sent the whole address.
    target: str = ""

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Lost:
    """The request arrives; the connection ends without an answer."""


@dataclass(frozen=True)
class Stream:
    """Server-sent events. A cut one ends within the body, without its last chunk."""

    events: Iterable[tuple[str, dict[str, Any]]]
    is_cut: bool = False
    # Of the first of them, when they are numbered.
    first_id: int | None = None


Answer = Reply | Lost | Stream
Rule = Callable[[Seen], Answer]


def refusal(status: int, code: str, retry_after: str | None = None, **more: Any) -> Reply:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = {"error": f"no: {code}", "code": code, "request_id": "req-1", **more}
    return Reply(status, body, headers)


def sandbox_body(**more: Any) -> dict[str, Any]:
    return {
        "id": SANDBOX,
        "template": "base",
        "status": "running",
        "metadata": {},
        "persistent": False,
        "created_at": "",
        "cpu": 1,
        "memory_mb": 1,
        "isolation": "",
        "boot_mode": "",
        "a_field_of_a_later_version": 1,
        **more,
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._do
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _do(self) -> None:
        daemon: FakeDaemon = cast("_Server", self.server).daemon_of_test
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = re.sub(r"^https?://[^/]+", "", self.path)
        seen = Seen(self.command, path, headers, body, self.client_address[1], self.path)
        self._answer(daemon.take(seen))

    def _answer(self, answer: Answer) -> None:
        if isinstance(answer, Lost):
            self._hang_up()
        elif isinstance(answer, Stream):
            self._stream(answer)
        else:
            content = answer.content()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def _stream(self, answer: Stream) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, (name, data) in enumerate(answer.events, answer.first_id or 0):
            mark = "" if answer.first_id is None else f"id: {number}\n"
            piece = f"{mark}event: {name}\ndata: {json.dumps(data)}\n\n".encode()
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        if answer.is_cut:
            self._hang_up()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_of_test: FakeDaemon
    daemon_threads = True
    request_queue_size = 256
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that hang up are what these tests are about.
        return


class FakeDaemon:
    """Answers by rule: a list of answers for a method and a path, the last of which stays.

    A path ``*/word`` stands for every other path that ends with that word.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._scheme = "http" if tls is None else "https"
        self.requests: list[Seen] = []
        self._rules: dict[tuple[str, str], list[Answer | Rule]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_of_test = self
        if tls is not None:
            # The handshake belongs to the thread of the connection.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        self.on("POST", "/v1/sandboxes", Reply(201, sandbox_body()))
        self.on("GET", f"/v1/sandboxes/{SANDBOX}", Reply(200, sandbox_body()))
        self.on("DELETE", f"/v1/sandboxes/{SANDBOX}", Reply(204))

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def on(self, method: str, path: str, *answers: Answer | Rule) -> None:
        self._rules[method, path] = list(answers)

    def take(self, seen: Seen) -> Answer:
        with self._lock:
            self.requests.append(seen)
            path = seen.path.partition("?")[0]
            answers = self._rules.get((seen.method, path))
            if answers is None:
                # For paths with an id that the client made up.
                answers = self._rules.get((seen.method, f"*/{path.rpartition('/')[2]}"))
            if not answers:
                return refusal(404, "no_such_route")
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer(seen) if callable(answer) else answer

    def seen(self, method: str, path: str) -> list[Seen]:
        def fits(found: str) -> bool:
            found = found.partition("?")[0]
            return found.endswith(path[1:]) if path.startswith("*") else found == path

        return [one for one in self.requests if one.method == method and fits(one.path)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
