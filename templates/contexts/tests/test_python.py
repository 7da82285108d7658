"""Python contexts, with the kernel that images have."""

import base64
import importlib.util
import json
import os
import unittest

from .harness import BridgeTest, signal, wait_until


def has(module):
    return importlib.util.find_spec(module) is not None


class PythonTest(BridgeTest):
    is_warm = True

    def test_variables_persist_over_twenty_runs(self):
        context = self.bridge.create("python")
        self.assert_ok(self.bridge.run(context, "x = 0"))
        for _ in range(18):
            self.assert_ok(self.bridge.run(context, "x += 1"))
        ran = self.bridge.run(context, "x")
        self.assertEqual(ran.results[0]["data"], {"text/plain": "18"})
        self.assertTrue(ran.results[0]["is_main"])
        self.assertEqual(ran.end["execution_count"], 20)
        self.assertGreaterEqual(ran.end["duration_ms"], 0)

    def test_stdout_and_stderr_are_told_apart(self):
        context = self.bridge.create("python")
        code = "import sys; print('out'); print('err', file=sys.stderr)"
        ran = self.bridge.run(context, code)
        self.assertEqual((ran.stdout, ran.stderr), ("out\n", "err\n"))

    def test_output_of_programs_is_caught(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "!echo from a program")
        self.assertIn("from a program", ran.stdout)

    def test_exception_has_its_traceback_and_the_context_goes_on(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "y = 1\ndef f():\n    return 1 / 0\nf()")
        self.assertEqual(ran.status, "error")
        error = ran.errors[0]
        self.assertEqual((error["name"], error["value"]), ("ZeroDivisionError", "division by zero"))
        traceback = "\n".join(error["traceback"])
        self.assertIn("return 1 / 0", traceback)
        self.assertNotIn("\x1b", traceback)
        self.assert_ok(self.bridge.run(context, "y"))

    def test_dict_comes_back_as_json(self):
        context = self.bridge.create("python")
        data = self.bridge.run(context, "{'a': [1, None], 'b': 'ü'}").results[0]["data"]
        self.assertEqual(json.loads(data["application/json"]), {"a": [1, None], "b": "ü"})
        self.assertIn("text/plain", data)
        for code in ("{1, 2}", "{(1, 2): 3}", "[float('nan')]", "a = []; a.append(a); a"):
            data = self.bridge.run(context, code).results[0]["data"]
            self.assertEqual(list(data), ["text/plain"], code)

    def test_rich_results_have_their_types(self):
        context = self.bridge.create("python")
        code = (
            "from IPython.display import *\n"
            "display(HTML('<b>x</b>'), Markdown('*x*'), Latex('$x$'), SVG('<svg/>'))"
        )
        types = [list(one["data"]) for one in self.bridge.run(context, code).results]
        wanted = ["text/html", "text/markdown", "text/latex", "image/svg+xml"]
        self.assertEqual([two[1] for two in types], wanted)

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_table_comes_back_as_html(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "import pandas\npandas.DataFrame({'a': [1]})")
        self.assertIn("<table", ran.results[0]["data"]["text/html"])

    @unittest.skipUnless(has("matplotlib"), "matplotlib is not installed")
    def test_figure_comes_back_as_png_in_warm_and_in_cold_contexts(self):
        for context in (self.bridge.create("python"), self.bridge.create("python")):
            code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
            ran = self.bridge.run(context, code)
            image = base64.b64decode(ran.results[0]["data"]["image/png"], validate=True)
            self.assertTrue(image.startswith(b"\x89PNG"))
            self.assertFalse(ran.results[0]["is_main"])

    def test_endless_loop_is_interrupted_and_the_context_goes_on(self):
        context = self.bridge.create("python")
        self.assert_ok(self.bridge.run(context, "z = 5"))
        run, events = self.bridge.start_run(context, "print('on', flush=True)\nwhile True: pass")
        self.assertEqual(next(events)["type"], "stdout")
        self.assertEqual(self.bridge.ask(op="interrupt", context=context), {"type": "done"})
        *_, error, end = events
        self.assertEqual((error["name"], end["status"]), ("KeyboardInterrupt", "interrupted"))
        self.assertEqual(self.bridge.run(context, "z").results[0]["data"]["text/plain"], "5")

    def test_timeout_keeps_the_context_usable(self):
        context = self.bridge.create("python")
        self.assert_ok(self.bridge.run(context, "z = 6"))
        ran = self.bridge.run(context, "while True: z += 1", timeout_ms=300)
        self.assertEqual(ran.status, "timed_out")
        self.assert_ok(self.bridge.run(context, "z"))

    def test_run_that_ignores_interrupts_is_ended_and_the_context_starts_anew(self):
        context = self.bridge.create("python")
        code = "z = 7\nfrom signal import *\nsignal(SIGINT, SIG_IGN)\nwhile True: pass"
        ran = self.bridge.run(context, code, timeout_ms=300)
        self.assertEqual(ran.status, "timed_out")
        self.assertEqual(ran.errors[-1]["name"], "ContextRestarted")
        self.assertEqual(self.bridge.run(context, "z").errors[0]["name"], "NameError")

    def test_death_is_told_and_the_next_run_has_a_new_interpreter(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "import os\nos.kill(os.getpid(), 9)")
        self.assertEqual((ran.status, ran.errors[0]["name"]), ("died", "ContextDied"))
        self.assertIn("SIGKILL", ran.errors[0]["value"])
        self.assertEqual(self.bridge.state(context), "dead")
        ran = self.bridge.run(context, "1")
        self.assert_ok(ran)
        self.assertEqual(ran.events[0]["type"], "restarted")
        self.assertIn("SIGKILL", ran.events[0]["reason"])
        self.assertEqual(ran.end["execution_count"], 1)
        ran = self.bridge.run(context, "2")
        self.assertNotIn("restarted", [event["type"] for event in ran.events])

    def test_a_restart_of_a_dead_context_is_no_loss_that_the_next_run_tells(self):
        context = self.bridge.create("python")
        self.bridge.run(context, "import os\nos._exit(1)")
        self.assertEqual(self.bridge.ask(op="restart", context=context), {"type": "done"})
        ran = self.bridge.run(context, "1")
        self.assert_ok(ran)
        self.assertNotIn("restarted", [event["type"] for event in ran.events])

    def test_the_limit_counts_from_the_request(self):
        context = self.bridge.create("python")
        _, first = self.bridge.start_run(context, "print('on')\nwhile True: pass")
        self.assertEqual(next(first)["text"], "on\n")
        ran = self.bridge.run(context, "print('never')", timeout_ms=300)
        self.assertEqual((ran.status, ran.stdout), ("timed_out", ""))
        self.assertEqual(ran.errors[0]["name"], "ContextBusy")
        self.bridge.ask(op="interrupt", context=context)
        *_, end = first
        self.assertEqual(end["status"], "interrupted")
        self.assertEqual(self.bridge.run(context, "print('now')", timeout_ms=60_000).stdout, "now\n")

    def test_interpreter_killed_while_nothing_runs_is_dead(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "import os\nprint(os.getpid())")
        os.kill(int(ran.stdout), signal.SIGKILL)
        wait_until(lambda: self.bridge.state(context) == "dead", "the context is dead")

    def test_contexts_do_not_see_each_other_and_draw_different_numbers(self):
        first, second = self.bridge.create("python"), self.bridge.create("python")
        self.assert_ok(self.bridge.run(first, "secret = 1"))
        self.assertEqual(self.bridge.run(second, "secret").errors[0]["name"], "NameError")
        code = "import random; print(random.random())"
        if has("numpy"):
            code += "\nimport numpy; print(numpy.random.rand())"
        one, two = self.bridge.run(first, code), self.bridge.run(second, code)
        self.assertFalse(set(one.stdout.split()) & set(two.stdout.split()))

    def test_input_is_refused_and_not_waited_for(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "input()")
        self.assertEqual(ran.errors[0]["name"], "StdinNotImplementedError")

    def test_many_results_are_all_there(self):
        context = self.bridge.create("python")
        ran = self.bridge.run(context, "for i in range(5000): display(i)")
        self.assertEqual(len(ran.results), 5000)

    def test_workspace_is_the_directory_and_another_may_be_chosen(self):
        where = "import os; print(os.getcwd())"
        context = self.bridge.create("python")
        self.assertEqual(self.bridge.run(context, where).stdout.strip(), self.bridge.workspace)
        other = self.bridge.create("python", cwd="/")
        self.assertEqual(self.bridge.run(other, where).stdout, "/\n")
        with open(os.path.join(self.bridge.workspace, "own_module.py"), "w") as file:
            file.write("value = 3")
        ran = self.bridge.run(context, "import own_module; own_module.value")
        self.assertEqual(ran.results[0]["data"]["text/plain"], "3")


if __name__ == "__main__":
    unittest.main()
