"""Stands for a model behind the HTTP APIs that the real `anthropic` and `openai` packages speak.

It wants one piece of code run, and then says what came of it, which is the sandbox's work.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 1, "output_tokens": 1}


def as_anthropic(request: dict[str, Any], code: str) -> dict[str, Any]:
    last = request["messages"][-1]["content"]
    if isinstance(last, str):
        tool = request["tools"][0]["name"]
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {"code": code}}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": f"It printed {last[0]['content']}"}
        reason = "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": USAGE,
    }


def as_openai(request: dict[str, Any], code: str) -> dict[str, Any]:
    last = request["messages"][-1]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if last["role"] == "user":
        name = request["tools"][0]["function"]["name"]
        called = {"name": name, "arguments": json.dumps({"code": code})}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": called}]
        reason = "tool_calls"
    else:
        message["content"] = f"It printed {last['content'].strip()}"
        reason = "stop"
    return {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
    }


APIS = {"/v1/messages": as_anthropic, "/v1/chat/completions": as_openai}


@contextmanager
def served(code: str) -> Generator[str]:
    """The address of a model that wants this code run."""

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = json.dumps(APIS[self.path](request, code)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
