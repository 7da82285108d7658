"""Best of N: several agents repair the same project, each in its own fork, and the tests choose.

    best_of_repair.py DIRECTORY "python3 -m pytest -q" [N]  >changes.patch

The project is copied and prepared once; the forks go on from that moment. The network is closed.
Needs `pip install openai`, OPENAI_API_KEY and OPENAI_MODEL; OPENAI_BASE_URL for another server.
"""

from __future__ import annotations

import os
import sys

import openai

from dayfly import Sandbox
from dayfly.agents import Agent, AgentResult, Budget, OpenAIChatModel

TOOLS = ["run_shell", "read_file", "write_file", "edit_file", "list_files", "search_files"]
START = """set -e; cd project; git init -q
git config user.name agent; git config user.email agent@localhost
echo __pycache__ >>.git/info/exclude
git add -A; git commit -q --allow-empty -m start; git tag -f start"""
# A test that an agent deleted must not count as passed: what judges is as it was at the start.
RESTORE = "git checkout -q start -- ':(glob)**/test_*.py'"
# By a file: of long output a command gives a part.
DIFF = "cd project && git add -A && git diff --binary --cached start >/tmp/changes.patch"


def repair(directory: str, tests: str, count: int) -> int:
    model = OpenAIChatModel(openai.OpenAI(), os.environ["OPENAI_MODEL"])

    def score(result: AgentResult, child: Sandbox) -> float:
        return float(child.exec(f"cd project && {RESTORE} && {tests}", timeout_seconds=300).ok)

    with Sandbox("code-interpreter", ttl_seconds=1800, network="deny") as sandbox:
        sandbox.files.upload(directory, "/workspace/project")
        sandbox.exec(START, check=True)
        system = f"You work on the project in /workspace/project. Its tests are run with: {tests}"
        agent = Agent(
            model, sandbox, tools=TOOLS, system=system, budget=Budget(steps=20, seconds=900)
        )
        found = agent.best_of(
            count, "Make the tests pass. Do not change the tests.", score, stop_at=1.0
        )
        print("scores:", [trial.score for trial in found.trials], file=sys.stderr)
        if found.winner is None or found.best is None or not found.best.score:
            if found.winner is not None:
                found.winner.delete()
            print("no candidate passes the tests", file=sys.stderr)
            return 1
        # The winner is a sandbox of its own by now; the other forks are deleted.
        with found.winner as winner:
            winner.exec(DIFF, check=True)
            print(winner.files.read_text("/tmp/changes.patch"), end="")
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(repair(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 3))
