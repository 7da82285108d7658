"""One trial of the hunt: what was tried, and how it ended."""
import json
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from report import RESULTS, tell

KEPT_MAX = 40
WHY_MAX = 400


@dataclass
class Tally:
    """How trials of each kind ended. Those that failed keep their consoles."""

    ends: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    kept: int = 0

    def add(self, kind: str, end: str, seconds: float, why: object = None, files: tuple[Path, ...] = ()) -> None:
        """`end` is `answers`, or how it did not."""
        self.ends.setdefault(kind, Counter())[end] += 1
        self.seconds.setdefault(kind, []).append(seconds)
        if end != "answers":
            kept = self.keep(kind, files, why)
            tell("lost", kind=kind, end=end, seconds=round(seconds, 1), why=str(why)[:WHY_MAX], kept=kept)

    def keep(self, kind: str, files: tuple[Path, ...], why: object) -> str | None:
        if self.kept >= KEPT_MAX:
            return None
        self.kept += 1
        to = RESULTS / f"lost-{self.kept:03}-{kind.replace(' ', '-')}"
        to.mkdir()
        (to / "why.json").write_text(json.dumps(why, indent=1, default=str))
        for file in files:
            if file.exists():
                shutil.copy2(file, to / file.name)
        return to.name

    def row(self, kind: str) -> dict[str, object]:
        seconds = sorted(self.seconds.get(kind, []))
        middle = round(seconds[len(seconds) // 2], 2) if seconds else None
        return {"n": len(seconds), **self.ends.get(kind, {}), "p50_seconds": middle,
                "max_seconds": round(seconds[-1], 2) if seconds else None}

    def tell(self) -> None:
        tell("tally", **{kind: self.row(kind) for kind in self.ends})

    def lost(self, prefix: str) -> int:
        return sum(count for kind, ends in self.ends.items() if kind.startswith(prefix)
                   for end, count in ends.items() if end != "answers")
