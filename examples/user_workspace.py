"""A workspace for each user: files that are still there at the next visit, on a volume.

    user_workspace.py ann "Keep a list of what I have read. I just finished Middlemarch."
    user_workspace.py ann "What have I read?"

Each visit is a new sandbox with the user's volume at /workspace; it is deleted at the end of the
visit, the volume is not. One visit of a user at a time: a volume has one writer. The network is
closed. Needs `pip install anthropic`, ANTHROPIC_API_KEY and ANTHROPIC_MODEL.
"""

from __future__ import annotations

import os
import re
import sys

import anthropic

from dayfly import Sandbox, Volume
from dayfly.agents import Agent, AnthropicModel, Budget

SYSTEM = (
    "/workspace belongs to one user and outlives this conversation: look there first, and keep "
    "there what the user will want to find again. All else in this computer is gone afterwards."
)


def visit(user: str, message: str) -> int:
    if not re.fullmatch(r"[a-z0-9-]{1,40}", user):
        # It becomes part of a name, which two users must never share.
        sys.exit("a user is named by small letters, digits and hyphens")
    model = AnthropicModel(anthropic.Anthropic(), os.environ["ANTHROPIC_MODEL"])
    volume = Volume.get_or_create(f"workspace-{user}", size_gb=1)
    with Sandbox(
        "code-interpreter", ttl_seconds=900, network="deny", volumes=[volume.mount("/workspace")]
    ) as sandbox:
        tools = ["run_shell", "read_file", "write_file", "edit_file", "list_files", "search_files"]
        agent = Agent(
            model, sandbox, tools=tools, system=SYSTEM, budget=Budget(steps=20, seconds=600)
        )
        result = agent.run(message)
        # What is written is on the host's disk before anybody says that it is kept.
        sandbox.exec("sync", check=True)
    print(result.text)
    if result.error:
        print(f"{result.reason}: {result.error}", file=sys.stderr)
    return 0 if result.ok else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(visit(*sys.argv[1:]))
