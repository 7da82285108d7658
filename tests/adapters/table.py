"""The table of tests/adapters/run: what each framework's tests gave.

    table.py DIRECTORY NAME...

Ends with status 1 when a test failed, when one was skipped, when fewer ran than the suite has, or when a sandbox was left.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# What a framework's own suite has, in the version that is tested.
SUITES = {"deepagents": 85, "inspect": 44}
LINE = "{:<14}{:<10}{:>7}{:>7}{:>17}{:>8}{:>15}"


@dataclass(frozen=True)
class Row:
    """`expected` are failures that the tests expect, with a reason."""

    name: str
    version: str
    left: int
    passed: int = 0
    failed: int = 0
    expected: int = 0
    skipped: int = 0
    remarks: tuple[str, ...] = ()

    def is_fine(self) -> bool:
        is_whole = self.passed + self.expected >= SUITES.get(self.name, 1)
        return is_whole and not self.failed and not self.skipped and not self.left


def read(directory: Path, name: str) -> Row:
    version, left = (directory / f"{name}.left").read_text().split()
    counts, remarks = Counter(), []
    for case in ElementTree.parse(directory / f"{name}.xml").getroot().iter("testcase"):
        kind, why = end_of(case)
        counts[kind] += 1
        if why is not None:
            remarks.append(f"{name}: {case.get('name')}: {kind}: {why}")
    return Row(name, version, int(left), **counts, remarks=tuple(remarks))


def end_of(case: ElementTree.Element) -> tuple[str, str | None]:
    """How a test ended, and why if it did not pass."""
    for one in case:
        why = (one.get("message") or "no reason").splitlines()[0][:200]
        if one.tag in ("failure", "error"):
            return "failed", why
        if one.tag == "skipped":
            return ("expected" if one.get("type") == "pytest.xfail" else "skipped"), why
    return "passed", None


def main() -> int:
    directory, names = Path(sys.argv[1]), sys.argv[2:]
    rows = [read(directory, name) for name in names]
    print(LINE.format("framework", "version", "passed", "failed", "expected to fail", "skipped", "sandboxes left"))
    for row in rows:
        print(LINE.format(row.name, row.version, row.passed, row.failed, row.expected, row.skipped, row.left))
    for row in rows:
        print(*row.remarks, sep="\n", end="\n" if row.remarks else "")
    wrong = [row.name for row in rows if not row.is_fine()]
    if wrong:
        print(f"not fine: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
