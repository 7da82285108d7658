"""That the check of links finds what is wrong, and only that."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import links  # noqa: E402


class Links(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = place.name
        self.write("docs/other.md", "# Other\n\n## The way `out`, again\n\n## Twice\n\n## Twice\n")

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)

    def wrong(self, text):
        self.write("docs/page.md", text)
        return list(links.wrong_links("docs/page.md", self.root))

    def test_links_that_lead_somewhere_are_left_alone(self):
        self.assertEqual(self.wrong(
            "# Page\n[a](other.md) [b](other.md#the-way-out-again) [c](#page) [d](../docs/) "
            "[e](https://example.com/x.md) [f](other.md#twice-1) `docs/other.md`\n"), [])

    def test_a_file_that_is_gone_is_found_with_its_line(self):
        self.assertEqual(self.wrong("# Page\n\n[a](gone.md)\n"), [(3, "gone.md leads to no file")])

    def test_a_picture_that_is_gone_is_found(self):
        self.assertEqual(self.wrong("![a](a.svg)\n"), [(1, "a.svg leads to no file")])

    def test_a_heading_that_is_gone_is_found(self):
        self.assertEqual(len(self.wrong("[a](other.md#nothing) [b](other.md#twice-2)\n")), 2)

    def test_a_page_that_is_named_and_gone_is_found(self):
        self.assertEqual(self.wrong("see `docs/gone.md`\n"), [(1, "docs/gone.md leads to no file")])

    def test_code_is_not_read(self):
        self.assertEqual(self.wrong("```sh\n[a](gone.md)\n```\nand `[a](gone.md)`\n"), [])


if __name__ == "__main__":
    unittest.main()
