"""That the check of words finds what the glossary rules out, where it is, and only there."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "words.py")
sys.path.insert(0, os.path.dirname(PROGRAM))

import words  # noqa: E402

GLOSSARY = """# Glossary

| word | means | not |
| --- | --- | --- |
| sandbox | a computer | |
| host | another computer | |

## Words that we do not use

| not | but | allowed |
| --- | --- | --- |
| `answer*` | response | `answer most questions` |
| `limit of time`, `time was up` | timeout | |
| `baked, unless it is` | bake | |
"""


class Words(unittest.TestCase):
    def setUp(self):
        self.table = words.rules(GLOSSARY)

    def found(self, text, has_fences=False):
        return list(words.findings(text, self.table, has_fences))

    def test_a_form_that_is_ruled_out_is_found_with_its_line_and_the_wanted_word(self):
        self.assertEqual(self.found("one\n\nThe Answers are here."), [(3, "'Answers': write response")])

    def test_a_form_of_several_words_is_found_over_the_end_of_a_line(self):
        self.assertEqual(self.found("the limit of\n  time"), [(1, "'limit of time': write timeout")])

    def test_a_form_may_have_a_comma(self):
        self.assertEqual(len(self.found("Have it baked, unless it is.")), 1)

    def test_what_only_contains_a_form_is_left_alone(self):
        self.assertEqual(self.found("an unanswered letter, a time was upon us"), [])

    def test_what_the_table_allows_is_left_alone(self):
        self.assertEqual(self.found("Three commands answer most questions."), [])
        self.assertEqual(len(self.found("They answer most questions with an answer.")), 1)

    def test_code_comments_and_addresses_are_not_words(self):
        text = "`answer` <!-- answer --> [x](answer.md#answer)\n\n```sh\nanswer\n```\n"
        self.assertEqual(self.found(text), [])

    def test_comments_of_examples_are_words(self):
        text = "```sh\nanswer  # an answer\ncurl https://answer/#answer\n```\n"
        self.assertEqual(self.found(text), [(2, "'answer': write response")])
        text = "```ts\nanswer(); // the limit of\n          // time\n```\n"
        self.assertEqual(self.found(text), [(2, "'limit of time': write timeout")])

    def test_code_between_two_comments_does_not_make_them_a_form(self):
        self.assertEqual(self.found("```python\n# the limit of\nx = 1\n# time\n```\n"), [])

    def test_output_in_a_fence_without_a_language_is_not_words(self):
        self.assertEqual(self.found("```\nPASS # an answer\n```\n"), [])

    def test_code_between_two_marks_of_python_is_not_words(self):
        self.assertEqual(self.found("``answer``, and ``an\nanswer``; ``answer` `` is none"), [])
        self.assertEqual(self.found("``on_stdout``: the answer of ``exec``"), [(1, "'answer': write response")])

    def test_code_between_two_words_does_not_make_them_a_form(self):
        self.assertEqual(self.found("the time `x` was up"), [])

    def test_help_texts_are_read_in_fences_too(self):
        self.assertEqual(self.found("```text\nwaits for the answer\n```\n", has_fences=True),
                         [(2, "'answer': write response")])

    def test_a_word_with_two_meanings_is_found(self):
        self.assertEqual(list(words.doubled(GLOSSARY)), [])
        twice = GLOSSARY.replace("| host |", "| sandbox |")
        self.assertEqual([number for number, _ in words.doubled(twice)], [6])

    def test_a_glossary_without_the_table_is_an_error(self):
        with self.assertRaises(SystemExit):
            words.rules("# Glossary\n")


class Program(unittest.TestCase):
    def run_in(self, page, *arguments):
        with tempfile.TemporaryDirectory() as place:
            os.mkdir(f"{place}/docs")
            os.mkdir(f"{place}/help")
            for path, text in [("docs/glossary.md", GLOSSARY), ("README.md", page), ("help/run.txt", page)]:
                with open(f"{place}/{path}", "w", encoding="utf-8") as file:
                    file.write(text)
            return subprocess.run([sys.executable, PROGRAM, *arguments], cwd=place, capture_output=True, text=True)

    def test_it_fails_with_the_place_and_passes_without_a_finding(self):
        failed = self.run_in("# Page\nan answer\n")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("README.md:2: 'answer': write response", failed.stdout)
        passed = self.run_in("# Page\na response\n")
        self.assertEqual(passed.returncode, 0, passed.stdout)

    def test_without_files_it_reads_every_page_and_the_comments_of_examples(self):
        with tempfile.TemporaryDirectory() as place:
            pages = ["CONTRIBUTING.md", "docs/adr/0001.md", "docs/evidence/soak/a.md", "sdk/python/README.md"]
            texts = dict.fromkeys(pages + ["docs/reference/cli.md"], "answer")
            texts["docs/glossary.md"] = GLOSSARY
            texts["crates/one/examples/two.rs"] = "//! An answer.\nlet answer = 1;\n"
            for path, text in texts.items():
                os.makedirs(os.path.dirname(f"{place}/{path}"), exist_ok=True)
                with open(f"{place}/{path}", "w", encoding="utf-8") as file:
                    file.write(text)
            run = subprocess.run([sys.executable, PROGRAM], cwd=place, capture_output=True, text=True)
        self.assertIn("6 pages", run.stdout)
        self.assertIn("5 findings", run.stdout)
        self.assertNotIn("docs/reference", run.stdout)

    def test_it_reads_a_directory_of_help_texts(self):
        failed = self.run_in("an answer\n", "--help-texts", "help")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("help/run.txt:1:", failed.stdout)
        self.assertNotEqual(self.run_in("", "--help-texts", "nowhere").returncode, 0)

    def test_it_reads_pages_beside_help_texts(self):
        failed = self.run_in("an answer\n", "--help-texts", "help", "README.md")
        self.assertIn("README.md:1:", failed.stdout)
        self.assertIn("help/run.txt:1:", failed.stdout)
        self.assertIn("2 pages", failed.stdout)


if __name__ == "__main__":
    unittest.main()
