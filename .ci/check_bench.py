"""Fails when a bench's report misses what the product promises.

A report of `bench create` is held against its promise here; the others carry their goals.
"""
import json
import sys

RATIO_MAX = 1.15


def missed(report):
    """What the report misses, one line each."""
    if "goals" in report:
        for goal in report["goals"]:
            print(f"bench: {goal['goal']} {goal['measured']}, at most {goal['at_most']}")
            if not goal["met"]:
                yield f"{goal['goal']} {goal['measured']} is above {goal['at_most']}"
        return
    ratio = report["ratio_p50"]
    print(f"bench: product {report['product']['p50_ms']} ms, bare {report['bare']['p50_ms']} ms, ratio {ratio}")
    if ratio > RATIO_MAX:
        yield f"ratio_p50 {ratio} is above {RATIO_MAX}"


with open(sys.argv[1], encoding="utf-8") as file:
    found = list(missed(json.load(file)))
if found:
    sys.exit("\n".join(found))
