"""The published Python packages take the server for their provider."""
import functools
import importlib.util
import json
import os
import typing
import unittest

from puppets import PUPPETS, Failure, Results, rehearse_all
from scripted_model import anthropic_wire, chat_wire, responses_wire
from scripted_model.script import read_script
from scripted_model.server import ScriptedModel

HAS_PACKAGES = all(importlib.util.find_spec(name) for name in ("anthropic", "openai"))
if not HAS_PACKAGES and os.environ.get("DAYFLY_REQUIRE_MODEL_PACKAGES"):
    raise RuntimeError("the Python packages are not installed; tests/model/run does it")
if HAS_PACKAGES:
    import anthropic
    import openai
    from anthropic.types import MessageCreateParams
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

SPEECH = "Größe: 😀 and so on, \"quoted\"\n"
CALLS = [
    {"tool": "run_shell", "arguments": {"command": f"echo '{SPEECH}'"}},
    {"tool": "write_file", "arguments": {"path": "ü/\u2028", "content": "\\u00e9 \u0000 </x>" * 50}},
]
ERRORS = {400: "BadRequestError", 401: "AuthenticationError", 429: "RateLimitError", 500: "InternalServerError"}


@functools.cache
def first_client(package: str):
    """A client is slow to make, because it reads the certificates of the host; others share its transport."""
    kind = anthropic.Anthropic if package == "anthropic" else openai.OpenAI
    return kind(api_key="key")


def client_of(puppet, address: str, **options):
    if puppet is PUPPETS["anthropic"]:
        return first_client("anthropic").with_options(base_url=address, **options)
    return first_client("openai").with_options(base_url=f"{address}/v1", **options)


def tearDownModule():
    for package in ("anthropic", "openai") if HAS_PACKAGES else ():
        first_client(package).close()


def call(client, puppet, body: dict, is_stream: bool):
    """The response as the package has it, whole or put together from its stream."""
    if puppet is PUPPETS["anthropic"]:
        if not is_stream:
            return client.messages.create(**body)
        with client.messages.stream(**body) as stream:
            return stream.get_final_message()
    if puppet is PUPPETS["chat"]:
        if not is_stream:
            return client.chat.completions.create(**body)
        with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as stream:
            return stream.get_final_completion()
    if not is_stream:
        return client.responses.create(**body)
    with client.responses.stream(**body) as stream:
        return stream.get_final_response()


def carrier(is_stream: bool):
    """For `rehearse`: carries requests with the package, whose own retries count."""

    def carry(limits, address: str, puppet, body: dict) -> dict:
        client = client_of(puppet, address, timeout=limits.seconds, max_retries=limits.retries)
        try:
            return call(client, puppet, body, is_stream).to_dict()
        except (anthropic.APIStatusError, openai.APIStatusError) as error:
            raise Failure(error.status_code, type(error).__name__) from error
        except Exception as error:
            # A stream that ends early is a matter of the package's transport, which has errors of its own.
            raise Failure(None, type(error).__name__) from error

    return carry


@unittest.skipUnless(HAS_PACKAGES, "the Python packages are not installed; tests/model/run does it")
class Packages(unittest.TestCase):
    def test_every_scenario_plays_with_the_packages(self):
        rehearse_all(self, {"whole": carrier(False), "stream": carrier(True)})


@unittest.skipUnless(HAS_PACKAGES, "the Python packages are not installed; tests/model/run does it")
class Details(unittest.TestCase):
    def ask(self, turn: dict, form: str, is_stream: bool):
        """One request for one turn. Gives the package's response."""
        puppet = PUPPETS[form]
        with ScriptedModel(read_script({"about": "one turn", "turns": [turn]})) as model:
            client = client_of(puppet, model.address, max_retries=0)
            return call(client, puppet, puppet.body([Results(text="Go.")]), is_stream)

    def test_texts_calls_and_usage_are_the_same_with_and_without_a_stream(self):
        turn = {"content": [SPEECH, CALLS[0], "Then:", CALLS[1]]}
        for form, puppet in PUPPETS.items():
            replies = [puppet.reply(self.ask(turn, form, is_stream).to_dict()) for is_stream in (False, True)]
            with self.subTest(format=form):
                for reply in replies:
                    self.assertEqual(reply.text, f"{SPEECH}Then:")
                    self.assertEqual([call.tool for call in reply.calls], ["run_shell", "write_file"])
                    given = [json.loads(one.arguments_text) for one in reply.calls]
                    self.assertEqual(given, [one["arguments"] for one in CALLS])
                    self.assertGreater(reply.input_tokens, 1000)
                self.assertEqual(replies[0].output_tokens, replies[1].output_tokens)
                self.assertEqual(replies[0].stop, replies[1].stop)

    def test_errors_are_those_of_the_provider(self):
        for form, package in (("anthropic", "anthropic"), ("chat", "openai"), ("responses", "openai")):
            for status, name in ERRORS.items():
                for is_stream in (False, True):
                    with self.subTest(format=form, status=status, stream=is_stream):
                        kind = getattr(anthropic if package == "anthropic" else openai, name)
                        with self.assertRaises(kind) as caught:
                            self.ask({"error": {"status": status, "message": "so it is"}}, form, is_stream)
                        self.assertIn("so it is", str(caught.exception))
                        self.assertTrue(caught.exception.request_id)
        with self.assertRaises(anthropic.OverloadedError) as caught:
            self.ask({"error": {"status": 529}}, "anthropic", False)
        self.assertEqual(caught.exception.type, "overloaded_error")

    def test_an_error_within_a_stream_is_raised(self):
        turn = {"content": ["It begins well."], "error": {"status": 529, "message": "no more", "in_stream": True}}
        for form in ("anthropic", "chat"):
            with self.subTest(format=form), self.assertRaisesRegex((anthropic.APIError, openai.APIError), "no more"):
                self.ask(turn, form, True)

    def test_a_stream_that_breaks_off_is_an_error(self):
        turn = {"content": ["It begins well.", CALLS[1]], "break": "middle"}
        for form in PUPPETS:
            for is_stream in (False, True):
                with self.subTest(format=form, stream=is_stream), self.assertRaises(Exception):  # noqa: B017
                    self.ask(turn, form, is_stream)

    def test_stops_have_their_names(self):
        names = {
            "length": {"anthropic": "max_tokens", "chat": "length", "responses": "incomplete"},
            "refusal": {"anthropic": "refusal", "chat": "stop", "responses": "completed"},
        }
        for stop, by_form in names.items():
            for form, name in by_form.items():
                with self.subTest(format=form, stop=stop):
                    reply = PUPPETS[form].reply(self.ask({"content": ["No."], "stop": stop}, form, False).to_dict())
                    self.assertEqual((reply.stop, reply.text), (name, "No."))

    def test_models_and_tokens_can_be_asked_for(self):
        with ScriptedModel(read_script({"about": "x", "turns": [{"content": ["x"]}]})) as model:
            for form in ("anthropic", "chat"):
                client = client_of(PUPPETS[form], model.address)
                self.assertEqual([one.id for one in client.models.list()], ["script-1"])
            client, body = client_of(PUPPETS["anthropic"], model.address), PUPPETS["anthropic"].body([Results(text="Go.")])
            del body["max_tokens"]
            self.assertGreater(client.messages.count_tokens(**body).input_tokens, 1000)


@unittest.skipUnless(HAS_PACKAGES, "the Python packages are not installed; tests/model/run does it")
class Shapes(unittest.TestCase):
    def test_every_field_of_the_shapes_is_one_of_the_packages(self):
        for wire, kinds in (
            (anthropic_wire, typing.get_args(MessageCreateParams)),
            (chat_wire, [CompletionCreateParamsNonStreaming]),
            (responses_wire, [ResponseCreateParamsNonStreaming]),
        ):
            known = {name for kind in kinds for name in kind.__annotations__}
            with self.subTest(format=wire.NAME):
                self.assertLessEqual(set(wire.SHAPE["properties"]), known)

    def test_the_version_is_the_one_that_the_package_sends(self):
        self.assertIn(first_client("anthropic").default_headers["anthropic-version"], anthropic_wire.VERSIONS)


if __name__ == "__main__":
    unittest.main()
