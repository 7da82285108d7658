#!/usr/bin/env python3
"""Writes what lab runs found as a page in Markdown.

    tests/kvm-lab/page.py RESULTS...
"""
import json
import sys
from pathlib import Path

import names

Report = dict[str, object]
# What stands beside what: a trial of the product, and the bare engine's of the same kind.
BESIDE = {"create": "bare restore", "session": "bare boot", "child": "bare child", "source": "bare source",
          "wake": "bare wake"}
ENDS = ("answers", "stalls", "late", "ends")


def reports(results: Path) -> list[Report]:
    file = results / "reports.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def last(found: list[Report], event: str) -> Report | None:
    return next((report for report in reversed(found) if report["event"] == event), None)


def host_line(found: list[Report]) -> str:
    host, baked, first = (last(found, event) for event in ("host", "baked", "first"))
    if not host or not baked or not first:
        return f"The machine came no further than `{found[-1]['event'] if found else 'nothing'}`."
    return (f"Outer host: kernel {host.get('kernel')}, CPU `{host.get('processor')}`, clock {host.get('clock')}, "
            f"{host.get('engine')}. The daemon says `{baked.get('accelerator')}`, `{baked.get('isolation')}`; base was "
            f"baked in {baked.get('seconds')} s, a first sandbox responded after {first.get('seconds')} s; the guest's "
            f"clock is {first.get('guest_clock')}.")


def doctor_line(found: list[Report]) -> list[str]:
    doctor = last(found, "doctor")
    return [f"`dayflyd doctor` afterwards: {'clean' if doctor['clean'] else 'NOT clean'}, accelerator "
            f"`{doctor['accelerator']}`, {doctor['leftovers']} leftovers."] if doctor else []


def cases_table(found: list[Report]) -> list[str]:
    cases = [report for report in found if report["event"] == "case"]
    if not cases:
        return []
    lines = ["| test | shows | result | seconds |", "| --- | --- | --- | --: |"]
    for case in cases:
        shows = names.ALL.get(str(case["name"]), "")
        lines.append(f"| `{case['name']}` | {shows} | {'passed' if case['passed'] else '**failed**'} | {case['seconds']} |")
    return lines


def tally_row(what: str, row: object) -> str:
    assert isinstance(row, dict)
    counts = " | ".join(str(row.get(end, 0)) for end in ENDS)
    return f"| {what} | {row['n']} | {counts} | {row['p50_seconds']} | {row['max_seconds']} |"


def hunt_table(found: list[Report]) -> list[str]:
    tally = last(found, "tally")
    if not tally:
        return []
    lines = ["| what | n | responds | stalls | late | ends | p50 s | max s |",
             "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    for ours, bare in BESIDE.items():
        lines += [tally_row(what, tally[what]) for what in (ours, bare) if what in tally]
    return lines


def lost_list(found: list[Report]) -> list[str]:
    return [f"- {lost['kind']} {lost['end']} after {lost['seconds']} s: `{json.dumps(lost['why'])[:300]}`"
            for lost in found if lost["event"] in ("lost", "failed") and "kind" in lost]


def page(results: Path) -> str:
    found = reports(results)
    failed = last(found, "failed")
    parts = [[host_line(found)], cases_table(found), hunt_table(found), lost_list(found), doctor_line(found),
             [f"The run broke off: {failed['error']}"] if failed else []]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


if __name__ == "__main__":
    print("\n".join(page(Path(results)) for results in sys.argv[1:]))
