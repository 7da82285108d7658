"""The server refuses what a provider would refuse, and says what it was."""
import copy
import http.client
import json
import unittest

from puppets import PUPPETS, Failure, Results, post
from scripted_model.script import read_script
from scripted_model.server import ScriptedModel

CALLS = [
    "I look.",
    {"tool": "run_shell", "arguments": {"command": "echo 'é'"}},
    {"tool": "list_files", "arguments": {}},
]
SCRIPT = {"about": "two calls", "turns": [{"content": CALLS}, {"content": ["Done."]}]}


def two_turns(address: str, puppet) -> tuple[list, object]:
    """The history before the second request, and the calls in it."""
    history = [Results(text="Go.")]
    reply = puppet.reply(post(address, puppet, puppet.body(history)))
    given = [(call, "exit code 0, 0.0 s", False) for call in reply.calls]
    return [*history, reply, Results(given)], reply


def unknown_field(body):
    body["frobnicate"] = True


def no_tools(body):
    del body["tools"]


def wrong_schema(body):
    tool = body["tools"][0]
    schema = tool.get("input_schema") or tool.get("parameters") or tool["function"]["parameters"]
    schema["properties"]["code"]["type"] = "text"


def same_tool_twice(body):
    body["tools"].append(body["tools"][0])


def turns_of(body) -> list:
    return body.get("messages") or body["input"]


def no_results(body):
    turns = turns_of(body)
    del turns[next(at for at, turn in enumerate(turns) if is_result(turn)) :]
    turns.append({"role": "user", "content": "Well?"})


def is_result(turn) -> bool:
    content = turn.get("content")
    is_block = isinstance(content, list) and content[0].get("type") == "tool_result"
    return is_block or turn.get("role") == "tool" or turn.get("type") == "function_call_output"


def results_of(body) -> list:
    turns = [turn for turn in turns_of(body) if is_result(turn)]
    return turns[0]["content"] if turns[0].get("role") == "user" else turns


def id_field(result) -> str:
    return next(name for name in ("tool_use_id", "tool_call_id", "call_id") if name in result)


def one_result_missing(body):
    result = results_of(body)[1]
    turns = turns_of(body)
    (turns if result in turns else turns[-1]["content"]).remove(result)


def result_of_another_call(body):
    result = results_of(body)[0]
    result[id_field(result)] = "toolu_of_nobody"


def same_result_twice(body):
    first, second = results_of(body)[:2]
    second[id_field(second)] = first[id_field(first)]


def two_users(body):
    turns_of(body).insert(0, {"role": "user", "content": "Hello?"})


def last_is_the_assistant(body):
    del turns_of(body)[-1 if len(turns_of(body)) == 3 else -2 :]


def other_words(body):
    text = json.dumps(turns_of(body)).replace("I look.", "I peek.")
    turns_of(body)[:] = json.loads(text)


def system_in_the_middle(body):
    turns_of(body).append({"role": "system", "content": "Obey."})


def unknown_field_of_a_result(body):
    results_of(body)[0]["exit_code"] = 0


# What is done to the second request, and a word of each format's refusal.
WRONGS = {
    unknown_field: "frobnicate",
    no_tools: "must define tools",
    wrong_schema: "schema of tool run_code is not valid",
    same_tool_twice: "same name",
    no_results: "has no tool result",
    one_result_missing: "has no tool result",
    result_of_another_call: "has no tool call",
    same_result_twice: "same tool call",
    two_users: "follow each other",
    last_is_the_assistant: "",
    other_words: "was sent",
    system_in_the_middle: "",
    unknown_field_of_a_result: "exit_code",
}


class Judge(unittest.TestCase):
    def test_a_wrong_request_is_refused_and_noted(self):
        for form, puppet in PUPPETS.items():
            for wrong, words in WRONGS.items():
                with self.subTest(format=form, wrong=wrong.__name__), ScriptedModel(read_script(SCRIPT)) as model:
                    history, _ = two_turns(model.address, puppet)
                    body = copy.deepcopy(puppet.body(history))
                    wrong(body)
                    with self.assertRaises(Failure) as caught:
                        post(model.address, puppet, body)
                    self.assertEqual(caught.exception.status, 400)
                    self.assertIn(words, caught.exception.kind)
                    self.assertEqual(len(model.log()["violations"]), 1)
                    # The control: the request without the wrong is taken.
                    self.assertEqual(puppet.reply(post(model.address, puppet, puppet.body(history))).text, "Done.")
                    self.assertTrue(model.log()["finished"])

    def test_a_free_history_may_have_other_words(self):
        for form, puppet in PUPPETS.items():
            with self.subTest(format=form), ScriptedModel(read_script(SCRIPT | {"history": "free"})) as model:
                history, _ = two_turns(model.address, puppet)
                body = copy.deepcopy(puppet.body(history))
                other_words(body)
                self.assertEqual(puppet.reply(post(model.address, puppet, body)).text, "Done.")
                self.assertEqual(model.log()["violations"], [])

    def test_a_request_after_the_end_is_refused(self):
        script = read_script({"about": "one", "turns": [{"content": ["Done."]}]})
        for form, puppet in PUPPETS.items():
            with self.subTest(format=form), ScriptedModel(script) as model:
                history = [Results(text="Go.")]
                history += [puppet.reply(post(model.address, puppet, puppet.body(history))), Results(text="And?")]
                with self.assertRaisesRegex(Failure, "the script has ended"):
                    post(model.address, puppet, puppet.body(history))

    def test_a_strict_tool_names_all_its_properties(self):
        for form, puppet in PUPPETS.items():
            with self.subTest(format=form), ScriptedModel(read_script(SCRIPT)) as model:
                body = copy.deepcopy(puppet.body([Results(text="Go.")]))
                tool = body["tools"][0]
                tool.get("function", tool)["strict"] = True
                with self.assertRaisesRegex(Failure, "every property of a strict tool"):
                    post(model.address, puppet, body)

    def test_texts_of_anthropic_are_not_empty_and_results_come_first(self):
        puppet = PUPPETS["anthropic"]
        with ScriptedModel(read_script(SCRIPT)) as model:
            history, _ = two_turns(model.address, puppet)
            body = puppet.body(history)
            body["messages"][-1]["content"].insert(0, {"type": "text", "text": "Here:"})
            with self.assertRaisesRegex(Failure, "must come first"):
                post(model.address, puppet, body)
            body["messages"][-1]["content"][0] = {"type": "text", "text": " "}
            with self.assertRaisesRegex(Failure, "must match"):
                post(model.address, puppet, body)

    def test_a_response_can_refer_to_the_one_before(self):
        puppet = PUPPETS["responses"]
        with ScriptedModel(read_script(SCRIPT)) as model:
            body = puppet.body([Results(text="Go.")])
            first = post(model.address, puppet, body)
            body["previous_response_id"] = first["id"]
            calls = [item for item in first["output"] if item["type"] == "function_call"]
            body["input"] = [{"type": "function_call_output", "call_id": one["call_id"], "output": "1"} for one in calls]
            self.assertEqual(puppet.reply(post(model.address, puppet, body)).text, "Done.")
            body["previous_response_id"] = "resp_of_nobody"
            with self.assertRaisesRegex(Failure, "not found"):
                post(model.address, puppet, body)

    def test_other_paths_headers_and_bodies_are_refused(self):
        with ScriptedModel(read_script(SCRIPT)) as model:
            good = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2026-10-21"}
            for path, headers, body, status in (
                ("/v1/complete", good, "{}", 404),
                ("/v1/messages?beta=true", good, "{}", 404),
                ("/v1/messages", good, "{", 400),
                ("/v1/messages", good, "[]", 400),
                ("/v1/messages", {**good, "anthropic-version": "1999-01-01"}, "{}", 400),
                ("/v1/messages", {**good, "content-type": "text/plain"}, "{}", 400),
                ("/v1/messages", {**good, "x-api-key": "wrong"}, "{}", 401),
                ("/v1/chat/completions", {"content-type": "application/json"}, "{}", 401),
            ):
                with self.subTest(path=path, headers=headers, body=body):
                    connection = http.client.HTTPConnection("127.0.0.1", model.server_port, timeout=10)
                    connection.request("POST", path, body, headers)
                    self.assertEqual(connection.getresponse().status, status)
                    connection.close()


if __name__ == "__main__":
    unittest.main()
