#!/usr/bin/env python3
"""Writes docs/security/escape-suite.md from what a run of the tests says.

    escape_suite.py [--check] TABLE JUNIT...

A test shows a case when its name begins with the case's id. With --check the table is compared
instead of written. Either way it is an error when a case is shown by no test that passed.
"""

import re
import sys
import xml.etree.ElementTree as tree

CASES = [
    ("B1", "The default reaches no public address, by TCP or UDP, and says so within a second"),
    ("B2", "Private, shared, reserved, multicast and test ranges are reached in no mode"),
    ("B3", "Metadata services of clouds are reached in no mode, by address or by name"),
    ("B4", "No service of the host answers, on any of its addresses, on any port"),
    ("B5", "A neighbour is not reached, by address, broadcast or multicast"),
    ("B6", "IPv6 of any kind does not leave the interface"),
    ("B7", "An address in another notation or inside another one is what it stands for"),
    ("B8", "A false source address, hardware address or ARP answer is dropped"),
    ("B9", "No protocol but TCP and questions for names leaves"),
    ("B10", "Fragments and options that hide a port are dropped"),
    ("B11", "QUIC is refused at once, and the client falls back to TCP"),
    ("B12", "The ports of the egress process itself take no connection"),
    ("B13", "A sandbox holds so many connections and no more; its neighbour is served"),
    ("B14", "A connection that says nothing, or one byte at a time, is closed at the deadline"),
    ("B15", "The next sandbox in a slot gets nothing of the one before"),
    ("B16", "A tighter policy cuts what it does not allow within a second"),
    ("B17", "Without its kernel rules a sandbox still reaches nothing, and gets them back"),
    ("B18", "What passes is the operator's rate, within a tenth"),
    ("B19", "An allowed host on a port without a rule is denied"),
    ("B20", "Nobody reaches a guest from outside but through the gateway, with leave"),
    ("B21", "A range that overlaps a forbidden one is refused, and forbidden at run time too"),
    ("B22", "Mail is denied in open modes"),
    ("C1", "A name without a rule is answered here and asked of nobody"),
    ("C2", "A tunnel of labels carries nothing out"),
    ("C3", "A wildcard rule lets so many new names a minute through"),
    ("C4", "Only addresses are answered, of all kinds of records"),
    ("C5", "DNS over TLS, HTTPS or QUIC reaches nobody in an allowlist"),
    ("C6", "An allowed name that stands for a forbidden address is not dialled"),
    ("C7", "An alias is followed, and what it leads to is held to the name that was asked for"),
    ("C8", "Answers of one sandbox do not show in another"),
    ("C9", "A name has one form; what has none is refused"),
    ("C10", "A false address in the guest does not change where a connection goes"),
    ("C11", "Nothing of a question goes on but its name"),
    ("C12", "A flood of questions is held to its rate; the neighbour is answered"),
    ("D1", "A connection with an allowed name to an attacker's address goes to the name's own"),
    ("D2", "A TLS greeting without exactly one name is denied in an allowlist"),
    ("D3", "A greeting in pieces of any size is read or refused"),
    ("D5", "Each request of a connection is decided by itself"),
    ("D7", "What two parsers may read in two ways is refused"),
    ("D8", "CONNECT and requests for another host are denied"),
    ("D9", "Only a WebSocket is an upgrade, and a change of the policy ends it"),
    ("D10", "A wildcard matches what it says, and one over a public suffix is refused"),
    ("D11", "An empty list denies everything, always; none means the default; null is refused"),
    ("D12", "Bytes that no host name has are refused, wherever one is read"),
    ("D14", "A redirect to a forbidden place is denied when it is followed"),
    ("D16", "What is spoken must fit the port of its rule"),
    ("N14", "Nothing leaves while the egress process is down; it is back with the same policy"),
    ("N15", "A dead resolver is an error and not a wait"),
    ("A18", "The egress process has no privilege and shows itself to nobody"),
]

HEAD = """# Escape suite

Written by `.ci/escape_suite.py` from a run of the gate; do not edit. Each case is a test whose name
begins with its id. *Guest*: a program inside a real sandbox, as root. *Namespace*: the same rules
and the same process with a client in place of a guest. *Parts*: the function that decides.
Every negative case counts bytes at the place that must not be reached, and each test has a probe
that gets through.

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
    shown = {}
    for path in paths:
        for suite in tree.parse(path).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                if case.find("failure") is not None or case.find("error") is not None:
                    continue
                test = case.get("name").rsplit("::", 1)[-1]
                for case_id in ids(case.get("name")):
                    shown.setdefault(case_id, {}).setdefault(level(suite.get("name")), set()).add(test)
    return shown


def table(shown):
    lines = [HEAD]
    for case_id, what in CASES:
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
    shown = read(results)
    missing = [case_id for case_id, _ in CASES if case_id not in shown]
    if missing:
        sys.exit(f"shown by no test that passed: {', '.join(missing)}")
    text = table(shown)
    if not is_check:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(path, encoding="utf-8") as file:
        if file.read() != text:
            sys.exit(f"{path} is not what the tests say; write it with .ci/escape_suite.py")
    print(f"escape suite: {len(CASES)} cases hold")


main()
