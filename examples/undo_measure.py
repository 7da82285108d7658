"""What an undo brings back, and what it costs: a checkpoint before each tool call of an agent.

    undo_measure.py [--rounds 5] [--sizes 50 300]

Each round is a session of its own, which holds so many MiB in a variable of its interpreter, and
files. The agent makes one small step, and then a call that deletes the workspace, fills the disk
and kills the interpreter. One `undo` later, a digest over all files and variables must be that of
the step before. No model is needed: a function proposes the calls.

A checkpoint keeps what differs from what the machine was restored from. That is the template, so
the second one of a session is as large as the first, until an undo: from then on it is little.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field

from dayfly import Sandbox, Snapshot
from dayfly.agents import Agent, Message, Results, ToolCall, Turn

PREPARE = """
import hashlib, os, pathlib, shutil, signal, subprocess
held = bytearray({size} << 20)
for at in range(0, len(held), 1 << 20):
    held[at : at + (1 << 20)] = os.urandom(1 << 20)
names = {{"one": 1, "two": [2, 2]}}
count = 0
for number in range(20):
    pathlib.Path(f"part-{{number}}.bin").write_bytes(os.urandom(10_000))

def digest():
    found = hashlib.sha256(held)
    found.update(repr((names, count)).encode())
    for path in sorted(pathlib.Path("/workspace").rglob("*")):
        found.update(str(path).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()
"""
STEP = """
count += 1
pathlib.Path("count.txt").write_text(str(count))
print("digest", digest())
"""
HARM = """
for path in pathlib.Path("/workspace").iterdir():
    shutil.rmtree(path) if path.is_dir() else path.unlink()
room = shutil.disk_usage("/workspace").free
subprocess.run(["fallocate", "-l", str(room), "/workspace/full"], check=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
# What the harm is to have done, so that an undo has something to bring back.
WRITE = "ls -A /workspace; head -c 1M /dev/zero >/workspace/more"


@dataclass
class Cost:
    """What one kind of thing cost, each time."""

    name: str
    milliseconds: list[float] = field(default_factory=list[float])
    pauses: list[float] = field(default_factory=list[float])
    mebibytes: list[float] = field(default_factory=list[float])

    def take(self, snapshot: str) -> None:
        capture = Snapshot.get(snapshot).info.capture
        self.milliseconds.append(capture["total_ms"])
        self.pauses.append(capture["pause_ms"])
        self.mebibytes.append((capture["memory_bytes"] + capture["disk_bytes"]) / 2**20)

    def row(self, size: int) -> str:
        figures = (cells(one) for one in (self.milliseconds, self.pauses, self.mebibytes))
        return f"| {size} | {self.name} | {len(self.milliseconds)} | {' | '.join(figures)} |"


def cells(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} | {max(values):.0f}" if values else "- | -"


def model(messages: list[Message], tools: object) -> Turn:
    """First the step, then the harm, then nothing."""
    turn = sum(isinstance(message, Turn) for message in messages)
    if turn == 2:
        return Turn("done")
    return Turn("", [ToolCall(f"call-{turn}", "run_code", {"code": [STEP, HARM][turn]})])


def a_round(sandbox: Sandbox, first: Cost, following: Cost, undo: Cost, after_undo: Cost) -> None:
    agent = Agent(model, sandbox, checkpoint="step", keep_checkpoints=True)
    result = agent.run("Make a step, then do harm.")
    printed = [one for one in result.transcript.messages if isinstance(one, Results)]
    before = printed[0].results[0].text.rpartition("digest ")[2].strip()
    assert printed[1].results[0].is_error, "the interpreter is to be dead"
    harmed = sandbox.exec(WRITE)
    assert harmed.stdout == "full\n", harmed.stdout
    assert "No space left" in harmed.stderr, harmed.stderr
    for cost, snapshot in zip((first, following), result.checkpoints, strict=True):
        cost.take(snapshot)
    begin = time.monotonic()
    agent.undo()
    undo.milliseconds.append((time.monotonic() - begin) * 1000)
    after = sandbox.run_code("digest()").raise_for_error().text
    assert after == repr(before), (after, before)
    later = sandbox.snapshot(retain_seconds=900)
    after_undo.take(later.id)
    later.delete()
    Snapshot.get(result.checkpoints[0]).delete()


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures checkpoints and undo.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 300])
    options = parser.parse_args()
    print("| session MiB | | n | ms p50 | p99 | of it paused p50 | p99 | MiB p50 | p99 |")
    print("| --: | --- |" + " --: |" * 7)
    for size in options.sizes:
        kinds = ("first checkpoint", "next checkpoint", "undo", "checkpoint after an undo")
        first, following, undo, after_undo = costs = [Cost(kind) for kind in kinds]
        for _ in range(options.rounds):
            with Sandbox("code-interpreter", ttl_seconds=900, network="deny") as sandbox:
                sandbox.run_code(PREPARE.format(size=size)).raise_for_error()
                a_round(sandbox, first, following, undo, after_undo)
        print("\n".join(cost.row(size) for cost in costs), flush=True)
    print("\np99 is the largest of these few. Every undo brought all files and variables back.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
