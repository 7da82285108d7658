"""A hook that refuses calls which look dangerous, before they are carried out.

It is NO boundary. A model, or a text that it read, gets around it with one line of base64. The
boundary is the sandbox: its own kernel, a closed network, a time to live. What this is good for: it
saves a run from an obvious mistake, and it makes a log of what a model wanted.

    agent = Agent(model, before_execution=scan)
"""

from __future__ import annotations

import json
import re

from dayfly.agents import Refusal, ToolCall

SUSPECT = {
    r"\brm\s+-[a-z]*r[a-z]*f?[a-z]*\s+/(?!\w)": "it deletes from the root on",
    r":\(\)\s*\{.*\};\s*:": "it is a fork bomb",
    r"\b(curl|wget)\b[^\n|]*\|\s*(ba)?sh\b": "it runs a script from the network unread",
    r"\bgit\s+push\b.*--force": "it overwrites what others pushed",
}


def scan(call: ToolCall) -> Refusal | None:
    """Refuses a call whose arguments look dangerous, and says why."""
    given = call.arguments
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    for pattern, why in SUSPECT.items():
        if re.search(pattern, text):
            return Refusal(f"{why}; say what it is for, or do it another way")
    return None
