"""The program that serves a script."""
import json
import subprocess
import sys
import unittest
import urllib.request

from puppets import HERE, PUPPETS, Failure, Results, post

PROGRAM = [sys.executable, str(HERE.parent / "serve.py")]
DEADLINE_SECONDS = 20


class Serve(unittest.TestCase):
    def test_it_prints_its_address_and_ends_with_its_standard_input(self):
        command = [*PROGRAM, str(HERE.parent / "scenarios/provider_key_refused.json")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            address = process.stdout.readline().strip()
            puppet = PUPPETS["anthropic"]
            with self.assertRaises(Failure):
                post(address, puppet, puppet.body([Results(text="Go.")]))
            with urllib.request.urlopen(f"{address}/_log", timeout=DEADLINE_SECONDS) as response:
                log = json.load(response)
            self.assertEqual((log["finished"], log["violations"]), (True, []))
            self.assertEqual([one["outcome"] for one in log["requests"]], ["error"])
            process.stdin.close()
            self.assertEqual(process.wait(DEADLINE_SECONDS), 0)

    def test_a_script_that_is_wrong_is_said_and_not_served(self):
        command = [*PROGRAM, str(HERE.parent / "scripted_model/shapes/chat.json")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("is not known here", done.stderr)


if __name__ == "__main__":
    unittest.main()
