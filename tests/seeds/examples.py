"""What the calls of published examples need around them: a model, a package, patches."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Action:
    code: str = ""
    text: str = ""
    is_final: bool = False


class ScriptedModel:
    """Stands for a model: wants these codes run, then answers with what the last one printed."""

    def __init__(self, *codes: str) -> None:
        self.seen: list[dict[str, Any]] = []
        self._codes = list(codes)

    def next_action(self, messages: list[dict[str, Any]]) -> Action:
        if messages[-1]["role"] == "tool":
            self.seen.append(messages[-1]["content"])
        if self._codes:
            return Action(code=self._codes.pop(0))
        return Action(text=self.seen[-1]["stdout"], is_final=True)


PATCH = """--- a/lib.py
+++ b/lib.py
@@ -1,2 +1,2 @@
 def double(n):
-    return n + n + 1
+    return {body}
"""


def tiny_package() -> bytes:
    """A package that can be installed without a network: a wheel is an archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("tiny.py", "EIGHT = 8\n")
        about = "tiny-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tag)
        names = ["tiny.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD"]
        wheel.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in names))
    return content.getvalue()
