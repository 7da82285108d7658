"""What the socket promises, whatever the language."""

import json
import os
import threading
import unittest
import uuid

from .harness import Bridge, BridgeTest, signal, wait_until


class ProtocolTest(BridgeTest):
    def refused(self, reason, **request):
        answer = self.bridge.ask(**request)
        self.assertEqual((answer["type"], answer["code"]), ("refused", reason), answer)
        self.assertTrue(answer["message"])

    def test_create_may_be_repeated(self):
        request = {"op": "create", "context": "same", "language": "bash", "cwd": None}
        first, second = self.bridge.ask(**request), self.bridge.ask(**request)
        self.assertEqual(first, second)
        self.assertEqual(len(self.bridge.ask(op="list")["contexts"]), 1)
        self.refused("invalid", op="create", context="same", language="python")

    def test_list_tells_state_and_count(self):
        context = self.bridge.create("bash")
        self.bridge.run(context, "true")
        (one,) = self.bridge.ask(op="list")["contexts"]
        created = one.pop("created_unix_ms")
        self.assertGreater(created, 1_600_000_000_000)
        expected = {"context": context, "language": "bash", "state": "idle", "execution_count": 1}
        self.assertEqual(one, expected)

    def test_repeat_of_a_run_attaches_and_loses_nothing(self):
        context = self.bridge.create("bash")
        gate = os.path.join(self.bridge.workspace, uuid.uuid4().hex)
        os.mkfifo(gate)
        code = f"echo one; read -r _ < {gate}; echo two"
        run, events = self.bridge.start_run(context, code)
        self.assertEqual(next(events)["text"], "one\n")
        # The client is cut off; the run goes on.
        events.close()
        again = {"op": "run", "context": context, "run": run}
        attached = self.bridge.send(**again, code=code, after=1)
        with open(gate, "w") as file:
            file.write("go\n")
        self.assertEqual([event["type"] for event in attached], ["stdout", "end"])
        whole = list(self.bridge.send(**again))
        self.assertEqual([event["seq"] for event in whole], [1, 2, 3])
        self.refused("invalid", **again, code="echo other")

    def test_runs_of_a_context_wait_for_each_other_up_to_a_limit(self):
        context = self.bridge.create("bash")
        gate = os.path.join(self.bridge.workspace, uuid.uuid4().hex)
        os.mkfifo(gate)
        _, first = self.bridge.start_run(context, f"echo on; read -r _ < {gate}")
        next(first)
        self.assertEqual(self.bridge.state(context), "busy")
        connections = []
        for index in range(32):
            connection = self.bridge.connect()
            request = {"op": "run", "context": context, "run": str(index), "code": f"echo {index}"}
            connection.sendall(json.dumps(request).encode() + b"\n")
            connections.append(connection)
            # Requests on several connections have no order of their own.
            wait_until(lambda: self.is_known(context, str(index)), "the run waits")
        self.refused("too_many", op="run", context=context, run="more", code="true")
        with open(gate, "w") as file:
            file.write("go\n")
        for index, connection in enumerate(connections):
            with connection, connection.makefile("rb") as lines:
                self.assertEqual(json.loads(lines.readline())["text"], f"{index}\n")

    def is_known(self, context, run):
        # An attach to a run that waits answers nothing yet, and not that there is none.
        connection = self.bridge.connect()
        with connection:
            request = {"op": "run", "context": context, "run": run}
            connection.sendall(json.dumps(request).encode() + b"\n")
            connection.settimeout(0.05)
            try:
                return b"not_found" not in connection.recv(4096)
            except TimeoutError:
                return True

    def test_only_the_last_runs_are_kept(self):
        context = self.bridge.create("bash")
        for index in range(34):
            list(self.bridge.send(op="run", context=context, run=str(index), code="true"))
        self.refused("not_found", op="run", context=context, run="0")
        self.refused("not_found", op="run", context=context, run="1")
        kept = list(self.bridge.send(op="run", context=context, run="2"))
        self.assertEqual(kept[-1]["type"], "end")

    def test_long_output_drops_its_oldest_part_and_says_so(self):
        context = self.bridge.create("bash")
        run, events = self.bridge.start_run(context, "head -c 20000000 /dev/zero | tr '\\0' x")
        *_, end = events
        first, *rest = self.bridge.send(op="run", context=context, run=run)
        self.assertEqual(first["type"], "dropped")
        kept = sum(len(event.get("text", "")) for event in rest)
        self.assertLess(kept, 16 << 20)
        self.assertGreater(kept, 15 << 20)
        self.assertEqual(rest[-1], end)
        self.assertEqual(rest[0]["seq"], first["seq"] + 1)

    def test_contexts_are_limited_and_a_deleted_one_makes_room(self):
        names = [self.bridge.create("bash") for _ in range(16)]
        self.refused("too_many", op="create", context="more", language="bash")
        for _ in range(2):
            self.assertEqual(self.bridge.ask(op="delete", context=names[0]), {"type": "done"})
        self.bridge.create("bash")

    def test_delete_and_restart_end_what_runs(self):
        for operation in ("delete", "restart"):
            context = self.bridge.create("bash")
            _, events = self.bridge.start_run(context, "echo on; sleep 1000")
            next(events)
            self.assertEqual(self.bridge.ask(op=operation, context=context), {"type": "done"})
            *_, end = events
            self.assertEqual(end["status"], "interrupted")

    def test_refusals_have_their_codes(self):
        context = self.bridge.create("bash")
        self.refused("not_found", op="run", context="nowhere", run="r", code="true")
        self.refused("not_found", op="interrupt", context="nowhere")
        self.refused("unsupported", op="create", context="c", language="cobol")
        self.refused("invalid", op="create", context="c", language="bash", cwd="/nowhere")
        self.refused("invalid", op="create", context="", language="bash")
        self.refused("invalid", op="dance")
        self.refused("invalid", op="run", context=context, run="r", code=5)
        self.refused("invalid", op="run", context=context, run="r", code="true", timeout_ms=-1)
        self.refused("invalid", op="run", context=context, run="r" * 200, code="true")

    def test_lines_that_are_no_requests_are_refused(self):
        for line in (b"no json\n", b"[]\n", b"x" * (9 << 20)):
            connection = self.bridge.connect()
            # It may answer and close before all of a line that is too long was sent.
            sender = threading.Thread(target=send_all, args=(connection, line))
            sender.start()
            with connection, connection.makefile("rb") as lines:
                answer = json.loads(lines.readline())
                sender.join()
            self.assertEqual((answer["type"], answer["code"]), ("refused", "invalid"))

    def test_interrupt_of_an_idle_context_is_nothing(self):
        context = self.bridge.create("bash")
        self.assertEqual(self.bridge.ask(op="interrupt", context=context), {"type": "done"})
        self.assert_ok(self.bridge.run(context, "true"))


def send_all(connection, data):
    try:
        connection.sendall(data)
    except ConnectionError:
        pass


class PauseTest(unittest.TestCase):
    def test_state_survives_a_pause_of_everything(self):
        bridge = Bridge(is_warm=False)
        self.addCleanup(bridge.stop)
        context = bridge.create("python")
        pid = int(bridge.run(context, "import os\nx = 1\nprint(os.getpid())").stdout)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for one in (bridge.process.pid, pid):
                os.kill(one, number)
        ran = bridge.run(context, "x")
        self.assertEqual(ran.results[0]["data"]["text/plain"], "1")

    def test_loss_of_the_interpreter_that_others_are_copies_of_is_told_and_survived(self):
        bridge = Bridge(is_warm=True)
        self.addCleanup(bridge.stop)
        self.assertTrue(bridge.ask(op="list")["warm"])
        context = bridge.create("python")
        original = int(bridge.run(context, "import os\nprint(os.getppid())").stdout)
        self.assertNotEqual(original, bridge.process.pid)
        os.kill(original, signal.SIGKILL)
        wait_until(lambda: bridge.state(context) == "dead", "the context is dead")
        self.assertEqual(bridge.ask(op="restart", context=context), {"type": "done"})
        ran = bridge.run(context, "import os\nprint(os.getppid())")
        self.assertEqual(int(ran.stdout), bridge.process.pid)

    def test_nothing_outlives_the_bridge(self):
        bridge = Bridge(is_warm=True)
        self.addCleanup(bridge.stop)
        code = {"python": "import os\nprint(os.getpid())", "bash": "echo $$"}
        pids = []
        for language, text in code.items():
            pids.append(int(bridge.run(bridge.create(language), text).stdout))
        bridge.process.kill()
        for pid in pids:
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the interpreter has ended")


if __name__ == "__main__":
    unittest.main()
