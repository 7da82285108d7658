"""Bash and JavaScript contexts."""

import json
import shutil
import unittest
from concurrent.futures import ThreadPoolExecutor

from .harness import BridgeTest


class BashTest(BridgeTest):
    def test_variables_functions_and_directory_persist(self):
        context = self.bridge.create("bash")
        self.assert_ok(self.bridge.run(context, "x=1\nf() { echo \"x is $x\"; }\ncd /tmp"))
        ran = self.bridge.run(context, "f; pwd; echo oops >&2")
        self.assertEqual((ran.stdout, ran.stderr), ("x is 1\n/tmp\n", "oops\n"))
        self.assertEqual(ran.end["execution_count"], 2)

    def test_exit_code_is_told(self):
        context = self.bridge.create("bash")
        ran = self.bridge.run(context, "echo a; (exit 3)")
        self.assertEqual((ran.status, ran.stdout), ("error", "a\n"))
        self.assertEqual((ran.errors[0]["name"], ran.errors[0]["value"]), ("ExitCode", "3"))
        ran = self.bridge.run(context, "if true; then")
        self.assertEqual(ran.status, "error")
        self.assertIn("syntax error", ran.stderr)
        self.assert_ok(self.bridge.run(context, "true"))

    def test_shell_that_exits_is_replaced(self):
        context = self.bridge.create("bash")
        ran = self.bridge.run(context, "x=1; set -e; echo before; false; echo after")
        self.assertEqual((ran.status, ran.stdout), ("error", "before\n"))
        self.assertIn("a new one takes its place", ran.stderr)
        ran = self.bridge.run(context, "echo \"[$x]\"; exit 0")
        self.assertEqual((ran.status, ran.stdout), ("ok", "[]\n"))
        self.assert_ok(self.bridge.run(context, "true"))

    def test_loops_and_programs_are_interrupted(self):
        for code in ("echo on; while :; do :; done", "echo on; sleep 1000; echo no"):
            context = self.bridge.create("bash")
            self.assert_ok(self.bridge.run(context, "x=1"))
            _, events = self.bridge.start_run(context, code)
            self.assertEqual(next(events)["text"], "on\n")
            self.bridge.ask(op="interrupt", context=context)
            *_, end = events
            self.assertEqual(end["status"], "interrupted")
            self.assertEqual(self.bridge.run(context, "echo $x").stdout, "1\n")

    def test_impatient_interrupts_lose_no_run(self):
        """The second one may come when the shell has begun to tell how the run ended."""
        context = self.bridge.create("bash")
        self.assert_ok(self.bridge.run(context, "x=1"))
        for _ in range(40):
            _, events = self.bridge.start_run(context, "echo on; while :; do :; done")
            # The shell ends a line for every interrupt, the late ones too, on its standard error.
            said = next(event for event in events if event["type"] == "stdout")
            self.assertEqual(said["text"], "on\n")
            interrupts = [self.bridge.send(op="interrupt", context=context) for _ in range(8)]
            with ThreadPoolExecutor(len(interrupts)) as pool:
                list(pool.map(list, interrupts))
            *_, end = events
            self.assertEqual(end["status"], "interrupted")
        self.assertEqual(self.bridge.run(context, "echo $x").stdout, "1\n")

    def test_timeout_ends_a_program(self):
        context = self.bridge.create("bash")
        self.assertEqual(self.bridge.run(context, "sleep 1000", timeout_ms=200).status, "timed_out")
        self.assert_ok(self.bridge.run(context, "true"))

    def test_standard_input_is_empty(self):
        context = self.bridge.create("bash")
        self.assertEqual(self.bridge.run(context, "cat; echo end").stdout, "end\n")

    def test_large_output_is_whole(self):
        context = self.bridge.create("bash")
        ran = self.bridge.run(context, "head -c 3000000 /dev/zero | tr '\\0' x")
        self.assertEqual(len(ran.stdout), 3_000_000)

    def test_output_of_the_background_reaches_the_next_run(self):
        context = self.bridge.create("bash")
        self.assert_ok(self.bridge.run(context, "{ read -r _ < <(sleep 0.1); echo late; } &"))
        ran = self.bridge.run(context, "wait; echo now")
        self.assertEqual(sorted(ran.stdout.split()), ["late", "now"])


@unittest.skipUnless(shutil.which("node"), "node is not installed")
class JavascriptTest(BridgeTest):
    def test_state_persists_and_names_may_be_declared_again(self):
        context = self.bridge.create("javascript")
        self.assert_ok(self.bridge.run(context, "const x = 1\nfunction f() { return x + 1 }"))
        self.assert_ok(self.bridge.run(context, "const x = 41\nclass A {}"))
        self.assert_ok(self.bridge.run(context, "class A { static b = 2 }"))
        ran = self.bridge.run(context, "f() + A.b")
        self.assertEqual(ran.results[0]["data"], {"text/plain": "44"})
        self.assertEqual(ran.end["execution_count"], 4)

    def test_output_and_results(self):
        context = self.bridge.create("javascript")
        ran = self.bridge.run(context, "console.log('a'); console.error('b'); ({c: [1, 'ü']})")
        self.assertEqual((ran.stdout, ran.stderr), ("a\n", "b\n"))
        data = ran.results[0]["data"]
        self.assertEqual(json.loads(data["application/json"]), {"c": [1, "ü"]})
        self.assertEqual(self.bridge.run(context, "undefined").results, [])
        self.assertEqual(list(self.bridge.run(context, "new Map()").results[0]["data"]), ["text/plain"])

    def test_await_and_imports_work_at_the_top(self):
        context = self.bridge.create("javascript")
        code = (
            "import fs from 'node:fs'\nimport { sep as separator } from 'node:path'\n"
            "import * as os from 'node:os'\nimport def, { EOL } from 'node:os'\n"
            "const three = await Promise.resolve(3)"
        )
        self.assert_ok(self.bridge.run(context, code))
        ran = self.bridge.run(
            context, "[fs.existsSync('/'), separator, os.EOL === EOL, three, typeof require]"
        )
        shown = json.loads(ran.results[0]["data"]["application/json"])
        self.assertEqual(shown, [True, "/", True, 3, "function"])

    def test_errors_have_their_stack_and_the_context_goes_on(self):
        context = self.bridge.create("javascript")
        ran = self.bridge.run(context, "function g() { throw new TypeError('no') }\ng()")
        error = ran.errors[0]
        self.assertEqual((ran.status, error["name"], error["value"]), ("error", "TypeError", "no"))
        self.assertIn("at g", "\n".join(error["traceback"]))
        self.assertNotIn("javascript.cjs", "\n".join(error["traceback"]))
        for code, name in (
            ("let q =", "SyntaxError"),
            ("nowhere", "ReferenceError"),
            ("throw 5", "Uncaught"),
            ("await Promise.reject(new RangeError('r'))", "RangeError"),
        ):
            self.assertEqual(self.bridge.run(context, code).errors[0]["name"], name, code)
        self.assert_ok(self.bridge.run(context, "1"))

    def test_loops_and_waits_are_interrupted(self):
        context = self.bridge.create("javascript")
        self.assert_ok(self.bridge.run(context, "var kept = 1"))
        on = "console.log('on')"
        wait = f"setTimeout(() => {on}, 1); await new Promise(() => {{}})"
        # Several times: an interrupt may come while the output is being written.
        for code in (f"{on}; while (true) {{}}", wait) * 4:
            _, events = self.bridge.start_run(context, code)
            self.assertEqual(next(events)["text"], "on\n")
            self.bridge.ask(op="interrupt", context=context)
            *_, end = events
            self.assertEqual(end["status"], "interrupted", code)
            self.assert_ok(self.bridge.run(context, "kept"))

    def test_loop_behind_a_wait_costs_the_interpreter_but_not_the_context(self):
        context = self.bridge.create("javascript")
        code = "await Promise.resolve(); console.log('on'); while (true) {}"
        _, events = self.bridge.start_run(context, code)
        self.assertEqual(next(events)["text"], "on\n")
        self.bridge.ask(op="interrupt", context=context)
        *_, end = events
        self.assertEqual(end["status"], "died")
        self.assert_ok(self.bridge.run(context, "1"))


if __name__ == "__main__":
    unittest.main()
