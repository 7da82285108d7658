"""A real bridge with real interpreters, and a client of its socket."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(os.path.dirname(HERE), "contexts.py")
# Long enough for a loaded machine; no test that passes waits for it.
PATIENCE_SECONDS = 120


def ignore_interrupts():
    """The worst that the bridge can be started with."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Bridge:
    def __init__(self, is_warm):
        self.directory = tempfile.mkdtemp(prefix="dayfly-contexts-")
        self.workspace = os.path.join(self.directory, "workspace")
        self.runtime = os.path.join(self.directory, "runtime")
        os.mkdir(self.workspace)
        os.mkdir(self.runtime, 0o700)
        self.socket = os.path.join(self.directory, "socket")
        words = [sys.executable, "-I", PROGRAM, "--socket", self.socket]
        words += ["--runtime", self.runtime, "--workspace", self.workspace]
        words += ["--warm"] if is_warm else []
        self.process = subprocess.Popen(
            words, start_new_session=True, preexec_fn=ignore_interrupts)
        wait_until(lambda: os.path.exists(self.socket), "the bridge listens")

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE_SECONDS)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                connection.connect(self.socket)
                return connection
            except ConnectionRefusedError:
                # Bound, and not yet listening.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def send(self, **request):
        """The lines of an answer, as they come."""
        connection = self.connect()
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                yield json.loads(line)

    def ask(self, **request):
        answers = list(self.send(**request))
        if len(answers) != 1:
            raise AssertionError(f"{len(answers)} answers to {request}")
        return answers[0]

    def create(self, language, **more):
        name = f"{language}-{uuid.uuid4().hex[:8]}"
        answer = self.ask(op="create", context=name, language=language, **more)
        expected = {"type": "created", "context": name, "language": language}
        if answer != expected:
            raise AssertionError(answer)
        return name

    def start_run(self, context, code, **more):
        run = uuid.uuid4().hex
        return run, self.send(op="run", context=context, run=run, code=code, **more)

    def run(self, context, code, **more):
        _, events = self.start_run(context, code, **more)
        return Ran(list(events))

    def state(self, context):
        contexts = self.ask(op="list")["contexts"]
        found = [one for one in contexts if one["context"] == context]
        return found[0]["state"] if found else None


class Ran:
    """What one run did."""

    def __init__(self, events):
        self.events = events
        self.end = events[-1]
        self.status = self.end.get("status")
        self.stdout = self._text("stdout")
        self.stderr = self._text("stderr")
        self.results = [event for event in events if event["type"] == "result"]
        self.errors = [event for event in events if event["type"] == "error"]

    def _text(self, kind):
        return "".join(event["text"] for event in self.events if event["type"] == kind)


def wait_until(is_true, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain until {what}")
        time.sleep(0.01)


class BridgeTest(unittest.TestCase):
    """One bridge for all tests of a class."""

    is_warm = False

    @classmethod
    def setUpClass(cls):
        cls.bridge = Bridge(cls.is_warm)
        cls.addClassCleanup(cls.bridge.stop)

    def setUp(self):
        self.addCleanup(self.delete_all)

    def delete_all(self):
        for context in self.bridge.ask(op="list")["contexts"]:
            self.bridge.ask(op="delete", context=context["context"])

    def assert_ok(self, ran):
        self.assertEqual(ran.status, "ok", ran.events)


__all__ = ["Bridge", "BridgeTest", "Ran", "signal", "wait_until"]
