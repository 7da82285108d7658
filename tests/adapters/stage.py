"""A model that follows a script, for the smallest agent of a framework.

The script is what ``tests/model`` reads. What a framework makes of the history is its own, so the
history is not judged; the wire format is, and whether the script was played to its end.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))

from scripted_model.script import read_script
from scripted_model.server import ScriptedModel

# The name of the model, which any request may have.
MODEL = "script-1"


@contextmanager
def scripted(*turns: dict[str, Any], wire: str = "chat") -> Generator[Any]:
    """A server that plays these turns, and that every one of them was asked for."""
    script = {
        "about": "the smallest agent of a framework",
        "formats": [wire],
        "history": "free",
        "turns": list(turns),
    }
    with ScriptedModel(read_script(script)) as model:
        yield model
        log = model.log()
        assert log["violations"] == []
        assert log["finished"]


def results(model: Any) -> list[str]:
    """The texts of all tool results that the model was told last, in Chat Completions."""
    messages = model.log()["requests"][-1]["body"]["messages"]
    return [str(one["content"]) for one in messages if one["role"] == "tool"]
