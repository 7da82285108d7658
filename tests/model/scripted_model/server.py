"""The HTTP side: paths, keys, streams, and clients that go away."""
import json
import select
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import anthropic_wire, chat_wire, responses_wire
from .answer import frame
from .conversation import Refused, tokens
from .play import Play, Step
from .script import Script

WIRES = {
    "/v1/messages": anthropic_wire,
    "/v1/messages/count_tokens": anthropic_wire,
    "/v1/chat/completions": chat_wire,
    "/v1/responses": responses_wire,
}
MODELS = ["script-1"]
REQUEST_BYTES_MAX = 64 << 20
# A client that is held this long has no timeout of its own.
HOLD_SECONDS_MAX = 120
POLL_SECONDS = 0.01


class ClientGone(Exception):
    """The client closed its connection before it had the response."""


class ScriptedModel(ThreadingHTTPServer):
    """One script on one port of the loopback interface. Use it with `with`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, script: Script, port: int = 0):
        super().__init__(("127.0.0.1", port), Handler)
        self.play = Play(script)
        self.requests: list[dict] = []
        # Items of the responses that OpenAI's format may refer to.
        self.stored: dict[str, list] = {}
        self.is_stopping = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def log(self) -> dict:
        with self.play.lock:
            requests, violations = [dict(one) for one in self.requests], list(self.play.violations)
        return {
            "about": self.play.script.about,
            "finished": self.play.is_finished(),
            "violations": violations,
            "requests": requests,
        }

    def handle_error(self, request, client_address) -> None:
        """Nothing on stderr: a client that went away is part of the scripts."""

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_stopping.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedModel

    def log_message(self, format, *args) -> None:
        """`GET /_log` says it better."""

    def do_GET(self) -> None:
        if self.path == "/_log":
            self.send_json(200, self.server.log())
        elif self.path.partition("?")[0] == "/v1/models":
            wire = anthropic_wire if "anthropic-version" in self.headers else chat_wire
            if wire.has_key(self.headers):
                self.send_json(200, wire.models(MODELS))
            else:
                self.send_error_of(wire, 401, "the key is not valid")
        else:
            self.send_error_of(anthropic_wire, 404, f"there is no {self.path}")

    def do_POST(self) -> None:
        raw = self.read_body()
        if raw is None:
            return
        wire = WIRES.get(self.path)
        if wire is None:
            self.server.play.note(f"POST {self.path}, which is not served here")
            self.send_error_of(anthropic_wire, 404, f"there is no {self.path}")
            return
        with self.server.play.lock:
            number = len(self.server.requests)
            self.server.requests.append({"number": number, "path": self.path, "format": wire.NAME})
        self.entry = self.server.requests[number]
        if not wire.has_key(self.headers):
            self.entry |= {"outcome": "refused"}
            self.send_error_of(wire, 401, "the key is not valid")
            return
        try:
            self.take(wire, raw)
        except Refused as refused:
            self.server.play.note(f"request {number}: {refused}")
            self.entry |= {"outcome": "refused"}
            self.send_error_of(wire, 400, str(refused), refused.param)

    def read_body(self) -> bytes | None:
        """All of the body, so that the next request starts where it ends."""
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > REQUEST_BYTES_MAX:
            self.close_connection = True
            self.server.play.note(f"POST {self.path} with the length {length!r}")
            self.send_error_of(anthropic_wire, 413, "a body needs a length within the limit")
            return None
        return self.rfile.read(int(length))

    def take(self, wire, raw: bytes) -> None:
        if self.headers.get_content_type() != "application/json":
            raise Refused("the content-type must be application/json")
        if wire is anthropic_wire and self.headers.get("anthropic-version") not in anthropic_wire.VERSIONS:
            raise Refused(f"the header anthropic-version must be one of {anthropic_wire.VERSIONS}")
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise Refused(f"the body is not JSON: {error}") from error
        self.entry |= {"body": body}
        if self.path.endswith("/count_tokens"):
            conversation = anthropic_wire.read(body, tokens(raw), is_count=True)
            self.entry |= {"outcome": "sent"}
            self.send_json(200, {"input_tokens": conversation.input_tokens})
            return
        stored = (self.server.stored,) if wire is responses_wire else ()
        conversation = wire.read(body, tokens(raw), *stored)
        step = self.server.play.step(conversation, wire)
        self.entry |= {"session": step.session.number, "stream": conversation.is_stream, "turn": step.answer.stem}
        self.perform(wire, conversation, step)

    def perform(self, wire, conversation, step: Step) -> None:
        """Does what the script says. However it ends, the log says how."""
        outcome = "client gone"
        try:
            self.wait(step.turn.delay_ms / 1000)
            self.server.play.begins(step)
            outcome = self.respond(wire, conversation, step)
        except (ClientGone, OSError):
            self.close_connection = True
        finally:
            self.entry |= {"outcome": outcome}
            self.server.play.ended(step, outcome == "sent")

    def respond(self, wire, conversation, step: Step) -> str:
        turn = step.turn
        if turn.error and not (turn.error.get("in_stream") and conversation.is_stream):
            self.send_scripted_error(wire, turn.error)
            return "error"
        if turn.hold == "start" or (turn.hold and not conversation.is_stream):
            self.hold()
        if turn.broken == "start":
            self.close_connection = True
            return "broken"
        if wire is responses_wire and turn.is_answer():
            items = conversation.request["items"] + responses_wire.output_items(step.answer)
            self.server.stored[responses_wire.response_id(step.answer)] = items
        if conversation.is_stream:
            return self.stream(wire, conversation, step)
        return self.send_json(200, wire.whole(step.answer, conversation), is_cut=turn.broken is not None, wire=wire)

    def stream(self, wire, conversation, step: Step) -> str:
        turn = step.turn
        events = wire.events(step.answer, conversation)
        if not turn.is_answer():
            events = events[: max(1, len(events) // 2)]
        if turn.error:
            whole = wire.whole(step.answer, conversation)
            events += wire.error_events(turn.error["status"], message_of(turn.error), len(events), whole)
        self.send_head(200, {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}, wire)
        written = [
            b"%x\r\n%s\r\n" % (len(piece), piece)
            for number, (name, data) in enumerate(events)
            for piece in frame(name, data, is_ascii=number % 2 == 0)
        ]
        if not (turn.hold or turn.broken):
            # With the last piece: a client that has it all may close before a write of its own for the end.
            written[-1] += b"0\r\n\r\n"
        for piece in written:
            self.wfile.write(piece)
        if turn.hold:
            self.hold()
        self.close_connection = self.close_connection or turn.broken is not None
        return "broken" if turn.broken else "error" if turn.error else "sent"

    def hold(self) -> None:
        """Waits for the client to go away, which is what the script is about."""
        self.wait(HOLD_SECONDS_MAX)
        self.server.play.note("a client that was held did not go away")

    def wait(self, seconds: float) -> None:
        """Until the time is over; ClientGone if the client does not wait that long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(left, POLL_SECONDS))
            if self.server.is_stopping.is_set() or (readable and not self.connection.recv(1, socket.MSG_PEEK)):
                raise ClientGone

    def send_scripted_error(self, wire, error: dict) -> None:
        headers = {}
        if "retry_after_seconds" in error:
            headers["retry-after"] = f"{error['retry_after_seconds']:g}"
        self.send_error_of(wire, error["status"], message_of(error), headers=headers)

    def send_error_of(self, wire, status: int, message: str, param: str | None = None, headers=None) -> None:
        body = wire.error(status, message, param, self.request_id())
        self.send_json(wire.STATUSES.get(status, status), body, headers=headers, wire=wire)

    def send_json(self, status: int, value, headers=None, is_cut: bool = False, wire=None) -> str:
        body = json.dumps(value).encode()
        named = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        self.send_head(status, named, wire)
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = self.close_connection or is_cut
        return "broken" if is_cut else "sent"

    def send_head(self, status: int, headers: dict, wire) -> None:
        self.send_response(status)
        self.send_header("request-id" if wire is anthropic_wire else "x-request-id", self.request_id())
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def request_id(self) -> str:
        return f"req_{len(self.server.requests):06d}"


def message_of(error: dict) -> str:
    return error.get("message", f"scripted error {error['status']}")
