"""Every scenario can be played to its end over every wire format."""
import unittest

from puppets import HERE, TOOLS, bare, rehearse_all
from scripted_model.script import load_script

SCENARIOS = sorted((HERE.parent / "scenarios").glob("*.json"))


class Scenarios(unittest.TestCase):
    def test_every_scenario_plays_to_its_end_over_every_format(self):
        rehearse_all(self, {"bare": bare})

    def test_every_scenario_says_how_it_is_run_and_how_it_ends(self):
        for path in SCENARIOS:
            script = load_script(path)
            with self.subTest(scenario=path.stem):
                self.assertTrue(script.run["tasks"])
                self.assertTrue(script.outcome["stop"])

    def test_every_tool_is_called_in_some_scenario(self):
        called = {
            part.tool
            for path in SCENARIOS
            for turns in load_script(path).conversations
            for turn in turns
            for part in turn.content
            if not isinstance(part, str) and part.fits
        }
        self.assertLessEqual({tool["name"] for tool in TOOLS}, called)


if __name__ == "__main__":
    unittest.main()
