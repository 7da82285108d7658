"""Scripts: what they may say, what they pick, and when an expectation is not met."""
import json
import unittest

from puppets import PUPPETS, TOOLS, Failure, Results, post, rehearse
from scripted_model.answer import frame, pieces
from scripted_model.schema import schema_errors, value_errors
from scripted_model.script import ScriptError, read_script
from scripted_model.server import ScriptedModel

CALL = {"tool": "run_shell", "arguments": {"command": "true"}, "rehearsal": {"text": "exit code 3, 0.0 s\nstdout:\nx"}}


def script(*turns, **fields):
    return read_script({"about": "a test", "turns": list(turns), **fields})


class Scripts(unittest.TestCase):
    def test_what_a_script_does_not_know_is_refused(self):
        for value in (
            {"about": "no turns"},
            {"about": "both", "turns": [{"content": ["a"]}], "conversations": [[{"content": ["a"]}]]},
            {"about": "unknown", "turns": [{"contents": ["a"]}]},
            {"about": "nothing", "turns": [{"delay_ms": 1}]},
            {"about": "error and content", "turns": [{"content": ["a"], "error": {"status": 500}}]},
            {"about": "status", "turns": [{"error": {"status": 200}}]},
            {"about": "expectation", "turns": [{"content": ["a"], "expect": {"result": {"contain": "a"}}}]},
            {"about": "call", "turns": [{"content": [{"tool": "run_shell"}]}]},
        ):
            with self.subTest(about=value["about"]), self.assertRaises(ScriptError):
                read_script(value)

    def test_an_expectation_that_is_not_met_fails_the_run(self):
        for expect, words in (
            ({"result": {"contains": "y"}}, "expected 'y'"),
            ({"result": {"lacks": "x"}}, "expected no 'x'"),
            ({"result": {"exit_code": 0}}, "expected exit code 0"),
            ({"result": {"starts_with": "ok"}}, "at the start"),
            ({"result": {"equals": "x"}}, "expected 'x'"),
            ({"result": {"matches": "^x$"}}, "expected a match"),
            ({"result": {"max_bytes": 3}}, "bytes"),
            ({"results": [{}, {}]}, "expected 2 tool results"),
            ({"user": {"contains": "Stop."}}, "the user's message"),
            ({"tools": ["run_code"]}, "expected the tools"),
            ({"only_in_results": ["Go."]}, "which only a tool said"),
            ({"gap_ms": 60000}, "expected at least 60000 ms"),
        ):
            for form in PUPPETS:
                with self.subTest(expect=expect, format=form):
                    log, ends = rehearse(script({"content": [CALL]}, {"expect": expect, "content": ["Done."]}), form)
                    self.assertIn(words, log["violations"][0])
                    self.assertFalse(log["finished"])
                    self.assertEqual(ends[0].status, 400)

    def test_an_expectation_that_is_met_does_not(self):
        result = {"contains": ["x", "stdout"], "exit_code": 3, "is_error": False}
        expect = {"result": result, "only_in_results": ["stdout:"]}
        for form in PUPPETS:
            log, _ = rehearse(script({"content": [CALL]}, {"expect": expect, "content": ["Done."]}), form)
            self.assertEqual(log["violations"], [])

    def test_is_error_is_looked_at_where_the_format_has_it(self):
        wanted = {"result": {"is_error": True}}
        played = {
            form: rehearse(script({"content": [CALL]}, {"expect": wanted, "content": ["Done."]}), form) for form in PUPPETS
        }
        self.assertEqual({form for form, (log, _) in played.items() if log["violations"]}, {"anthropic"})

    def test_a_pick_goes_into_texts_and_arguments(self):
        later = {"tool": "run_shell", "arguments": {"command": "echo '{{found}}'"}, "rehearsal": {"text": "exit code 0"}}
        picks = {"pick": {"found": "(s.*):"}, "content": [later]}
        for form in PUPPETS:
            played = script({"content": [CALL]}, picks, {"content": ["{{found}}!"]})
            log, ends = rehearse(played, form)
            self.assertEqual((log["violations"], ends[0].text), ([], "stdout!"))
            self.assertIn("echo 'stdout'", json.dumps(log["requests"][-1]["body"]))
        log, _ = rehearse(script({"content": [CALL]}, {"pick": {"found": "nowhere"}, "content": ["a"]}), "chat")
        self.assertIn("no tool result has a match", log["violations"][0])

    def test_a_script_that_calls_what_is_not_offered_fails(self):
        for call in ({"tool": "run_python", "arguments": {}}, {"tool": "run_shell", "arguments": {"cmd": "ls"}}):
            log, _ = rehearse(script({"content": [call]}), "anthropic")
            self.assertIn("the script calls", log["violations"][0])

    def test_conversations_are_told_apart_by_the_ids_of_their_calls(self):
        first = [{"error": {"status": 500}}, {"content": [CALL]}, {"content": ["A"]}]
        value = {"about": "two", "conversations": [first, [{"content": [CALL]}, {"content": ["B"]}]]}
        puppet = PUPPETS["anthropic"]
        with ScriptedModel(read_script(value)) as model:
            def send(history):
                return puppet.reply(post(model.address, puppet, puppet.body(history)))

            with self.assertRaises(Failure):
                send([Results(text="Go.")])
            histories = [[Results(text="Go.")], [Results(text="Go.")]]
            replies = [send(history) for history in histories]
            for history, reply in zip(histories, replies, strict=True):
                history += [reply, Results([(reply.calls[0], "exit code 0", False)])]
            self.assertEqual([send(history).text for history in reversed(histories)], ["B", "A"])
            self.assertEqual(model.log()["violations"], [])


class Pieces(unittest.TestCase):
    def test_deltas_are_cut_inside_escapes_and_tokens_and_are_the_text_again(self):
        text = json.dumps({"command": "echo 'é😀'", "flag": True, "count": 1200}) * 3
        cut = pieces(text)
        self.assertEqual("".join(cut), text)
        self.assertTrue(any(piece.endswith("\\u0") for piece in cut))
        self.assertEqual("".join(pieces("x" * 100_000)), "x" * 100_000)
        self.assertLess(len(pieces("x" * 100_000)), 200)

    def test_writes_are_cut_inside_a_character(self):
        first, second = frame("delta", {"text": "aé"}, is_ascii=False)
        with self.assertRaises(UnicodeDecodeError):
            first.decode()
        self.assertEqual((first + second).decode(), 'event: delta\ndata: {"text":"aé"}\n\n')


class Schemas(unittest.TestCase):
    def test_the_tools_have_schemas_that_are_valid(self):
        for tool in TOOLS:
            self.assertEqual(list(schema_errors(tool["input"])), [])

    def test_a_schema_that_is_not_valid_is_found(self):
        for schema in (
            {"type": "text"},
            {"minimum": "1"},
            {"required": "a"},
            {"properties": {"a": {"typ": "string"}}},
            {"properties": {}, "required": ["a"]},
            {"anyOf": []},
            {"items": 1},
        ):
            self.assertTrue(list(schema_errors(schema)), schema)

    def test_values_are_held_to_their_schema(self):
        schema = {tool["name"]: tool["input"] for tool in TOOLS}
        self.assertEqual(value_errors({"commands": ["a"]}, schema["fork"]), [])
        self.assertEqual(value_errors({"path": "a", "max_lines": 400.0}, schema["read_file"]), [])
        for name, value in (
            ("run_shell", {}),
            ("run_shell", {"command": 1}),
            ("run_shell", {"command": "a", "timeout_seconds": 0}),
            ("run_shell", {"command": "a", "timeout_seconds": True}),
            ("run_code", {"code": "a", "language": "cobol"}),
            ("fork", {"commands": []}),
            ("fork", {"commands": ["a"] * 9}),
            ("read_file", {"path": "a", "first_line": 1.5}),
            ("edit_file", {"path": "a", "old_text": "", "new_text": ""}),
            ("list_files", {"deep": 1}),
        ):
            self.assertTrue(value_errors(value, schema[name]), (name, value))


if __name__ == "__main__":
    unittest.main()
