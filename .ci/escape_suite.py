#!/usr/bin/env python3
"""Writes docs/evidence/escape-suite.md from what a run of the tests says.

    escape_suite.py [--check] TABLE JUNIT...

A test shows a case when its name begins with the case's id, or when the case names it. With --check
the table is compared instead of written. Either way it is an error when an id of the catalogue has
no case, when a case has neither a test that passed nor a reason why not, when it has both, and when
it names a test that did not pass.
"""

import re
import sys
import xml.etree.ElementTree as tree

from escape_cases import ALSO, CASES, CATALOGUE, WHY_NOT

HEAD = """# Escape suite

Written by `.ci/escape_suite.py` from a run of the gate; do not edit. Every case of the catalogue is
here: with the tests that show it, whose names begin with its id or stand in `.ci/escape_cases.py`,
or with the reason why there is none. A: machines. B to D and N: networks. F: exhaustion. H: the
agent's channel. I: tenancy. J: snapshots, forks and volumes.

*Guest*: real sandboxes; what a guest does, it does as root. *Namespace*: the same rules and the same
process with a client in place of a guest. *Parts*: the function that decides. Every negative case of
B to D counts bytes at the place that must not be reached, and each such test has a probe that gets
through.

| case | what must hold | guest | namespace | parts |
| --- | --- | --- | --- | --- |
"""


def ids(name):
    test = name.rsplit("::", 1)[-1]
    found = re.match(r"(?:[a-z]\d+_)+", test)
    return [part.upper() for part in found.group().split("_") if part] if found else []


def level(suite):
    if "e2e" in suite:
        return "guest"
    if suite.endswith(("::suite", "::process")) or "dayfly-host" in suite:
        return "namespace"
    return "parts"


def read(paths):
    """The tests that passed, by name and place."""
    passed = set()
    for path in paths:
        for suite in tree.parse(path).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                if case.find("failure") is None and case.find("error") is None:
                    test = case.get("name").rsplit("::", 1)[-1]
                    passed.add((test, level(suite.get("name"))))
    return passed


def sort_out(passed):
    """For each case its tests by place, and everything that is wrong."""
    shown, wrong = {}, []
    for test, place in passed:
        for case_id in ids(test):
            shown.setdefault(case_id, {}).setdefault(place, set()).add(test)
    for case_id, tests in ALSO.items():
        for test in tests:
            places = [place for name, place in passed if name == test]
            if not places:
                wrong.append(f"{case_id} names {test}, which did not pass")
            for place in places:
                shown.setdefault(case_id, {}).setdefault(place, set()).add(test)
    listed = {case_id for case_id, _ in CASES}
    for letter, count in CATALOGUE.items():
        missing = {f"{letter}{number}" for number in range(1, count + 1)} - listed
        wrong.extend(f"{case_id} of the catalogue has no case" for case_id in sorted(missing))
    for case_id in sorted(listed | WHY_NOT.keys()):
        if case_id not in listed:
            wrong.append(f"{case_id} has a reason and is no case")
        elif case_id in shown and case_id in WHY_NOT:
            wrong.append(f"{case_id} has a test now; take its reason out of .ci/escape_cases.py")
        elif case_id not in shown and case_id not in WHY_NOT:
            wrong.append(f"{case_id} is shown by no test that passed, and nothing says why")
    return shown, wrong


def table(shown):
    lines = [HEAD]
    for case_id, what in CASES:
        if case_id in WHY_NOT:
            lines.append(f"| {case_id} | {what} | - | - | No test: {WHY_NOT[case_id]} |\n")
            continue
        cells = [
            "<br>".join(f"`{test}`" for test in sorted(shown.get(case_id, {}).get(place, ()))) or "-"
            for place in ("guest", "namespace", "parts")
        ]
        lines.append(f"| {case_id} | {what} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main():
    words = sys.argv[1:]
    is_check = words[0] == "--check"
    path, *results = words[is_check:]
    shown, wrong = sort_out(read(results))
    if wrong:
        sys.exit("\n".join(wrong))
    text = table(shown)
    if not is_check:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(path, encoding="utf-8") as file:
        if file.read() != text:
            sys.exit(f"{path} is not what the tests say; write it with .ci/escape_suite.py")
    print(f"escape suite: {len(shown)} cases hold, {len(WHY_NOT)} have a reason why not")


main()
