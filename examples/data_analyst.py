"""A data analyst: it computes in an interpreter that keeps its variables, and its chart comes back.

    data_analyst.py sales.csv "Which month was best? Draw it." chart.png

The file is copied into the sandbox; the network is closed. Needs `pip install anthropic`,
ANTHROPIC_API_KEY and ANTHROPIC_MODEL, a model that can look at pictures.
"""

from __future__ import annotations

import base64
import os
import pathlib
import sys

import anthropic

from dayfly import Sandbox
from dayfly.agents import Agent, AnthropicModel, Budget, CallEnded, Event

SYSTEM = (
    "You analyse the file /workspace/{name} with pandas and matplotlib. "
    "End every figure with plt.show(): then you see it, and so does the user. "
    "Say only what you computed."
)


class Charts:
    """Keeps the last picture that a call gave. The model has seen the same one."""

    def __init__(self) -> None:
        self.last: bytes | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            for image in event.result.images:
                if image.media_type == "image/png":
                    self.last = base64.b64decode(image.data)


def analyse(table: str, question: str, chart: str) -> int:
    model = AnthropicModel(anthropic.Anthropic(), os.environ["ANTHROPIC_MODEL"])
    name = pathlib.Path(table).name
    charts = Charts()
    with Sandbox("code-interpreter", ttl_seconds=900, network="deny") as sandbox:
        sandbox.files.upload(table, f"/workspace/{name}")
        agent = Agent(
            model,
            sandbox,
            tools=["run_code"],
            system=SYSTEM.format(name=name),
            budget=Budget(steps=15, tokens=200_000),
        )
        result = agent.run(question, on_event=charts)
    print(result.text)
    if charts.last is None:
        print(f"no chart was drawn ({result.reason})", file=sys.stderr)
        return 1
    pathlib.Path(chart).write_bytes(charts.last)
    return 0 if result.ok else 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(analyse(*sys.argv[1:]))
