"""The examples of the README do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from daemon import daemon_settings

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
SAID = [["hello", "No such file", "6", "2"], ["1", "2", "3"]]


@pytest.mark.parametrize("number", range(len(SAID)))
def test_example(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    daemon_settings()
    assert len(EXAMPLES) == len(SAID)
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {})
    said = capsys.readouterr().out
    for word in SAID[number]:
        assert word in said
