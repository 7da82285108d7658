"""A coding agent: it works on a copy of a project in a sandbox, and gives back a patch.

    coding_agent.py DIRECTORY "Make the tests pass."  >changes.patch

Nothing of this computer is changed: read the patch, then `git apply` it. The network of the sandbox
is closed. Needs `pip install anthropic`, ANTHROPIC_API_KEY and ANTHROPIC_MODEL.
"""

from __future__ import annotations

import os
import sys

import anthropic

from dayfly import Sandbox
from dayfly.agents import Agent, AnthropicModel, Budget, CallEnded, Event

TOOLS = ["run_shell", "read_file", "write_file", "edit_file", "list_files", "search_files"]
SYSTEM = "You work on the project in /workspace/project. Run its tests before you are done."
START = """set -e; cd project; git init -q
git config user.name agent; git config user.email agent@localhost
echo __pycache__ >>.git/info/exclude
git add -A; git commit -q --allow-empty -m start; git rev-parse HEAD"""


def show(event: Event) -> None:
    """One line for each call, so that somebody can follow."""
    if isinstance(event, CallEnded):
        first = event.result.text.partition("\n")[0]
        print(f"{event.call.name}: {first}", file=sys.stderr)


def work(directory: str, task: str) -> int:
    model = AnthropicModel(anthropic.Anthropic(), os.environ["ANTHROPIC_MODEL"])
    with Sandbox("code-interpreter", ttl_seconds=1800, network="deny") as sandbox:
        sandbox.files.upload(directory, "/workspace/project")
        # A commit to compare with, in the copy.
        before = sandbox.exec(START, check=True).stdout.strip()
        agent = Agent(
            model, sandbox, tools=TOOLS, system=SYSTEM, budget=Budget(steps=30, seconds=1200)
        )
        result = agent.run(task, on_event=show)
        # The agent may have committed by itself, so the patch is against the first state.
        # By a file: of long output a command gives a part.
        diff = f"git add -A && git diff --binary --cached {before} >/tmp/changes.patch"
        sandbox.exec(f"cd project && {diff}", check=True)
        patch = sandbox.files.read_text("/tmp/changes.patch")
    print(f"{result.reason} after {result.spent.steps} steps: {result.text}", file=sys.stderr)
    print(patch, end="")
    return 0 if result.ok else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(work(*sys.argv[1:]))
