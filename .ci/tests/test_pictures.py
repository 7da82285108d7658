"""That the pictures of the documents are current and readable, and that the check can fail."""
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

sys.dont_write_bytecode = True
PICTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "pictures")
sys.path.insert(0, PICTURES)

import canvas  # noqa: E402
import draw  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def run(*arguments):
    program = os.path.join(PICTURES, "draw.py")
    return subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True)


class Pictures(unittest.TestCase):
    def test_they_are_what_the_program_draws(self):
        done = run("--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_picture_that_was_changed_by_hand_is_found(self):
        with tempfile.TemporaryDirectory() as place:
            self.assertEqual(run("--into", place).returncode, 0)
            with open(os.path.join(place, "life.svg"), "a", encoding="utf-8") as picture:
                picture.write("<!-- by hand -->")
            done = run("--check", "--into", place)
            self.assertEqual(done.returncode, 1)
            self.assertIn("life.svg", done.stderr)

    def test_each_says_what_it_shows_and_has_its_words_as_text(self):
        for make in draw.PICTURES:
            root = tree.fromstring(make().svg())
            self.assertGreater(len(root.find(f"{SVG}desc").text), 100)
            self.assertGreater(len(root.findall(f"{SVG}text")), 10)

    def test_words_that_do_not_fit_are_refused(self):
        page = canvas.Canvas("x", 400, 200, "x", "x")
        with self.assertRaises(canvas.DoesNotFit):
            page.box(10, 10, 60, 40, "plain", "far too long for this")

    def test_words_over_words_and_arrows_through_words_are_refused(self):
        page = canvas.Canvas("x", 400, 200, "x", "x")
        page.note(100, 100, "first")
        with self.assertRaises(canvas.DoesNotFit):
            page.note(110, 104, "second")
        page.arrow((20, 96), (300, 96))
        with self.assertRaises(canvas.DoesNotFit):
            page.svg()


if __name__ == "__main__":
    unittest.main()
