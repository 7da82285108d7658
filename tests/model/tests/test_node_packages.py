"""The published npm packages take the server for their provider."""
import itertools
import json
import os
import subprocess
import threading
import unittest
from concurrent.futures import Future

from puppets import DEADLINE_SECONDS, HERE, PUPPETS, Failure, Limits, Results, rehearse_all
from scripted_model.script import read_script
from scripted_model.server import ScriptedModel

# Where the npm packages are installed.
PLACE = os.environ.get("DAYFLY_MODEL_PACKAGES")
if not PLACE and os.environ.get("DAYFLY_REQUIRE_MODEL_PACKAGES"):
    raise RuntimeError("DAYFLY_MODEL_PACKAGES does not say where the npm packages are")
FORMS = {id(puppet): form for form, puppet in PUPPETS.items()}


class Node:
    """One process of Node for all requests: several may be on their way at once."""

    def __init__(self):
        command = ["node", str(HERE / "carry.mjs"), PLACE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.numbers = itertools.count()
        self.waiting: dict[int, Future] = {}
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout:
            response = json.loads(line)
            self.waiting.pop(response["number"]).set_result(response)

    def ask(self, **request) -> dict:
        future = Future()
        with self.lock:
            number = next(self.numbers)
            self.waiting[number] = future
            self.process.stdin.write(json.dumps({"number": number, **request}) + "\n")
            self.process.stdin.flush()
        response = future.result(2 * DEADLINE_SECONDS)
        if "value" not in response:
            raise Failure(response["status"], f"{response['kind']} {response['message']}")
        return response["value"]

    def carrier(self, is_stream: bool):
        def carry(limits, address: str, puppet, body: dict) -> dict:
            options = {"maxRetries": limits.retries, "timeout": limits.seconds * 1000}
            return self.ask(address=address, format=FORMS[id(puppet)], is_stream=is_stream, body=body, limits=options)

        return carry

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(DEADLINE_SECONDS)
        self.reader.join()
        self.process.stdout.close()


@unittest.skipUnless(PLACE, "DAYFLY_MODEL_PACKAGES does not say where the npm packages are")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node()
        cls.addClassCleanup(cls.node.close)

    def test_every_scenario_plays_with_the_packages(self):
        rehearse_all(self, {"whole": self.node.carrier(False), "stream": self.node.carrier(True)})

    def ask(self, turn: dict, form: str, is_stream: bool) -> dict:
        script = read_script({"about": "one turn", "turns": [turn]})
        with ScriptedModel(script) as model:
            body = PUPPETS[form].body([Results(text="Go.")])
            return self.node.carrier(is_stream)(Limits(DEADLINE_SECONDS, 0), model.address, PUPPETS[form], body)

    def test_texts_calls_and_usage_are_the_same_with_and_without_a_stream(self):
        call = {"tool": "write_file", "arguments": {"path": "ü/\u2028", "content": "\\u00e9 😀 \u0000 </x>" * 50}}
        turn = {"content": ["Größe: 😀\n", call, "Then:", call]}
        for form, puppet in PUPPETS.items():
            whole, streamed = (puppet.reply(self.ask(turn, form, is_stream)) for is_stream in (False, True))
            with self.subTest(format=form):
                self.assertEqual(whole.text, "Größe: 😀\nThen:")
                self.assertEqual([json.loads(one.arguments_text) for one in whole.calls], [call["arguments"]] * 2)
                for name in ("text", "stop", "output_tokens"):
                    self.assertEqual(getattr(streamed, name), getattr(whole, name))
                self.assertEqual([json.loads(one.arguments_text) for one in streamed.calls], [call["arguments"]] * 2)

    def test_errors_are_those_of_the_provider(self):
        names = {400: "BadRequestError", 401: "AuthenticationError", 429: "RateLimitError", 500: "InternalServerError"}
        for form in PUPPETS:
            for status, name in names.items():
                for is_stream in (False, True):
                    refused = self.assertRaisesRegex(Failure, f"^{status} {name} .*so it is")
                    with self.subTest(format=form, status=status, stream=is_stream), refused:
                        self.ask({"error": {"status": status, "message": "so it is"}}, form, is_stream)

    def test_what_ends_early_is_an_error(self):
        content = ["It begins well, and there is more of it."]
        overloaded = {"status": 529, "message": "no more", "in_stream": True}
        for form in PUPPETS:
            with self.subTest(format=form), self.assertRaises(Failure):
                self.ask({"content": content, "break": "middle"}, form, True)
            with self.subTest(format=form, whole=True), self.assertRaises(Failure):
                self.ask({"content": content, "break": "middle"}, form, False)
            if form != "responses":
                with self.subTest(format=form, within=True), self.assertRaisesRegex(Failure, "no more"):
                    self.ask({"content": content, "error": overloaded}, form, True)


if __name__ == "__main__":
    unittest.main()
