"""Best of five on a repository: one setup and five forks, beside five sandboxes that each set up.

    best_of_measure.py [--rounds 3] [--at-once 1 5] [--at-most RATIO]

The repository is made in the sandbox: a package with a failing test, which needs a virtual
environment with a dependency. Five patches are tried and one is right. Checked in every round: the
right one wins and is promoted, the other forks are gone, and the setup ran once. Both ways try all
five patches, with the same number of them at once. With `--at-most` a higher ratio is a failure.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from dayfly import ExecResult, Sandbox

SETUP = r"""
set -e
mkdir repo && cd repo && git init -q
git config user.name setup && git config user.email setup@localhost
cat >middle.py <<'END'
def median(numbers):
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2]
END
cat >test_middle.py <<'END'
import unittest
from middle import median
from tiny import EIGHT


class Medians(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(median([9, 1, EIGHT]), EIGHT)

    def test_even(self):
        self.assertEqual(median([6, 1, 10, 12]), EIGHT)
END
git add -A && git commit -q -m start
python3 - <<'END'
import zipfile
about = "tiny-1.0.dist-info"
files = {
    "tiny.py": "EIGHT = 8\n",
    f"{about}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
with zipfile.ZipFile("/tmp/tiny-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
END
python3 -m venv .venv
.venv/bin/pip install --quiet --no-index /tmp/tiny-1.0-py3-none-any.whl
echo done >>/workspace/setup.log
"""
PATCH = """--- a/middle.py
+++ b/middle.py
@@ -1,3 +1,3 @@
 def median(numbers):
     ordered = sorted(numbers)
-    return ordered[len(ordered) // 2]
+    return {body}
"""
BODIES = [
    "ordered[len(ordered) // 2 - 1]",
    "sum(ordered) / len(ordered)",
    "(ordered[0] + ordered[-1]) / 2",
    "(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2",
    "ordered[(len(ordered) + 1) // 2]",
]
RIGHT = 3
TRY = "cd repo && git apply - <<'END' && .venv/bin/python -m unittest -q\n{patch}END"
COMMANDS = [TRY.format(patch=PATCH.format(body=body)) for body in BODIES]
TTL_SECONDS = 1800


def sandboxes() -> set[str]:
    return {sandbox.id for sandbox in Sandbox.list()}


def by_forks(at_once: int) -> float:
    """Seconds from nothing to a promoted winner."""
    before, begin = sandboxes(), time.monotonic()
    with Sandbox("code-interpreter", ttl_seconds=TTL_SECONDS, network="deny") as sandbox:
        sandbox.exec(SETUP, check=True, timeout_seconds=600)
        found = sandbox.explore(COMMANDS, max_parallel=at_once, timeout_seconds=300)
        seconds = time.monotonic() - begin
        assert found.winner is not None
        with found.winner as winner:
            scores = [attempt.score for attempt in found.attempts]
            assert scores == [float(number == RIGHT) for number in range(len(BODIES))], scores
            assert BODIES[RIGHT] in winner.files.read_text("/workspace/repo/middle.py")
            assert winner.files.read_text("/workspace/setup.log") == "done\n"
            assert sandboxes() - before == {sandbox.id, winner.id}
    return seconds


def alone(command: str) -> ExecResult:
    with Sandbox("code-interpreter", ttl_seconds=TTL_SECONDS, network="deny") as sandbox:
        sandbox.exec(SETUP, check=True, timeout_seconds=600)
        return sandbox.exec(command, timeout_seconds=300)


def by_sandboxes(at_once: int) -> float:
    """Seconds until five sandboxes, each set up for itself, have tried one patch each."""
    begin = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(alone, COMMANDS))
    seconds = time.monotonic() - begin
    assert [result.ok for result in results] == [number == RIGHT for number in range(len(BODIES))]
    return seconds


def cells(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.1f} | {max(seconds):.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures best of five by forks and without.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, len(BODIES)])
    parser.add_argument("--at-most", type=float)
    options = parser.parse_args()
    print("| at once | n | one setup, forks: s p50 | p99 | five setups: s p50 | p99 | ratio |")
    print("|" + " --: |" * 7)
    ratios: list[float] = []
    for at_once in options.at_once:
        # In turns, so that what else runs on the computer is beside both.
        pairs = [(by_forks(at_once), by_sandboxes(at_once)) for _ in range(options.rounds)]
        forks, others = zip(*pairs, strict=True)
        ratios.append(statistics.median(forks) / statistics.median(others))
        row = f"{at_once} | {options.rounds} | {cells(forks)} | {cells(others)} | {ratios[-1]:.2f}"
        print(f"| {row} |", flush=True)
    print("\np99 is the largest of these few, ratio that of the p50.")
    is_over = options.at_most is not None and max(ratios) > options.at_most
    return 1 if is_over else 0


if __name__ == "__main__":
    sys.exit(main())
