"""That what docs/why.md says of Dayfly has a proof that SPECIFICATION.md has too."""
import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as page:
        return page.read()


class Why(unittest.TestCase):
    def setUp(self):
        self.page, _, rest = read("docs/why.md").partition("\n## Proof\n")
        self.proof = dict(re.findall(r"^\| (P\d+) \| .* \| (.*) \|$", rest, re.M))

    def test_every_number_has_a_proof_and_every_proof_a_number(self):
        self.assertEqual(set(re.findall(r"\((P\d+)\)", self.page)), set(self.proof))

    def test_every_proof_is_in_the_specification(self):
        specification = read("SPECIFICATION.md")
        for number, words in self.proof.items():
            names = re.findall(r"`([^`]+)`", words)
            self.assertTrue(names, f"{number} names no test")
            for name in names:
                self.assertIn(f"`{name}`", specification, f"{number} names a test that is not promised")


if __name__ == "__main__":
    unittest.main()
