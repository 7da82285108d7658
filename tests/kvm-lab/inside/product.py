"""A daemon on a data directory, and its API."""
import http.client
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from report import RESULTS, tell

PROGRAMS = Path("/lab/programs")
CALL_SECONDS_MAX = 180
STOP_SECONDS_MAX = 120
PAUSE_SECONDS = 0.1
# Each question takes an emulated processor from what it asks about.
READY_PAUSE_SECONDS = 3.0
BAKES_MAX = 3
WORDS_MAX = 2000


def until(what: str, seconds: float, holds: Callable[[], Any], pause: float = PAUSE_SECONDS) -> Any:
    """Waits until `holds` answers something, and gives it."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(pause)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Refused(Exception):
    """The daemon's answer was an error."""


class Daemon:
    """A running daemon. As a context, it ends with everything that it runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.bakes = 0
        # With the results from the start: whoever ends the machine wants to read it.
        self.log = RESULTS / f"{directory.name}.log"
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                [PROGRAMS / "dayflyd", "--egress-uplink", "none", "--data-dir", directory,
                 "--listen", f"127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: object) -> None:
        stop = [PROGRAMS / "dayflyd", "stop", "--all", "--data-dir", self.directory]
        subprocess.run(stop, stdout=subprocess.DEVNULL, check=False, timeout=STOP_SECONDS_MAX)
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_SECONDS_MAX)
        key = (self.directory / "admin.key").read_text().strip()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise Refused(f"{method} {path}: {response.status} {text.decode(errors='replace')}")
        return json.loads(text) if text else {}

    def is_ready(self) -> bool:
        if self.child.poll() is not None:
            raise RuntimeError("the daemon ended")
        try:
            template = self.call("GET", "/v1/templates/base")
            if template.get("state") == "failed":
                self.bake_again(template)
        except (OSError, http.client.HTTPException, Refused):
            return False
        return template.get("state") == "ready"

    def bake_again(self, template: dict[str, Any]) -> None:
        """A machine that was busy for a moment must not end the run; that it was is told."""
        self.bakes += 1
        tell("bake_failed", template=template)
        if self.bakes >= BAKES_MAX:
            raise RuntimeError(f"base could not be baked {BAKES_MAX} times")
        self.call("POST", "/v1/templates/base/bake")

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace")[-WORDS_MAX:].splitlines()
        return lines[-1] if lines else ""

    def wait_until_ready(self, seconds: float) -> None:
        until("the template base is ready", seconds, self.is_ready, READY_PAUSE_SECONDS)

    def node(self) -> dict[str, Any]:
        return self.call("GET", "/v1/node")

    def shell(self, sandbox: str, text: str) -> str:
        result = self.call("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": ["sh", "-c", text]})
        if result["exit_code"] != 0:
            raise Refused(f"`{text}` exited with {result['exit_code']}: {result.get('stderr')}")
        return str(result["stdout"]).strip()
