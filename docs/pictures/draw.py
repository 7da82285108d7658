#!/usr/bin/env python3
"""Draws the pictures of docs/concepts.md; with --check says whether those that are there are current.

    draw.py [--check] [--theme light|dark --into DIR]

The same source gives the same bytes. `--theme` draws with one theme only, into another directory, to
look at it in a program that knows no style sheet for dark pages.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True

from canvas import Canvas  # noqa: E402

PLACE = os.path.dirname(os.path.abspath(__file__))


def fork_tree():
    c = Canvas("fork-tree", 860, 430, "From a recipe to a tree of forks",
               "A recipe is baked once into a template. Sandboxes are restored from the template. A fork of a "
               "running sandbox makes children that continue from the same instant; one child is promoted and "
               "forked again, the others are deleted. A snapshot keeps a moment and can be restored later.")
    c.box(20, 60, 120, 62, "plain", "recipe", "a TOML file")
    c.box(20, 220, 120, 80, "kept", "template", "disk + memory,", "read-only")
    c.arrow((80, 122), (80, 218))
    c.note(90, 156, "bake, once:", "build, boot,", "capture", anchor="start")
    c.box(250, 77, 120, 62, "state", "sandbox A", "running")
    c.box(250, 229, 120, 62, "state", "sandbox B", "running")
    c.arrow((140, 245), (195, 245), (195, 108), (248, 108))
    c.arrow((140, 260), (248, 260))
    c.note(80, 330, "create = restore:", "no kernel boots")
    c.box(470, 20, 120, 48, "plain", "child 1", "deleted")
    c.box(470, 84, 120, 48, "good", "child 2", "promoted")
    c.box(470, 148, 120, 48, "plain", "child 3", "deleted")
    c.arrow((370, 92), (420, 92), (420, 44), (468, 44))
    c.arrow((370, 108), (468, 108))
    c.arrow((370, 124), (420, 124), (420, 172), (468, 172))
    c.note(310, 166, "fork: one short", "pause, 3 children")
    c.box(700, 52, 130, 48, "state", "child 2.1", "running")
    c.box(700, 116, 130, 48, "state", "child 2.2", "running")
    c.arrow((590, 100), (645, 100), (645, 76), (698, 76))
    c.arrow((590, 116), (645, 116), (645, 140), (698, 140))
    c.note(715, 184, "fork again: no child", "needs its ancestors")
    c.box(470, 229, 120, 62, "kept", "snapshot", "of sandbox B")
    c.arrow((370, 260), (468, 260))
    c.note(420, 316, "capture; B goes on")
    c.box(700, 229, 130, 62, "state", "sandbox C", "running")
    c.arrow((590, 260), (698, 260))
    c.note(645, 316, "create --from-snapshot")
    c.arrow((530, 291), (530, 350), (310, 350), (310, 293))
    c.note(420, 372, "rollback: B itself goes back to that moment")
    c.note(20, 412, "Yellow: files that never change. All machines of one template share its memory until they write to it.",
           anchor="start", kind="faint small")
    return c


def life():
    c = Canvas("life", 860, 420, "The life of a sandbox",
               "A sandbox is created and runs. Pause stops its processors and keeps its memory; resume lets it go "
               "on. Hibernate, or an idle time, saves it to disk and ends the machine; a wake, or any permitted "
               "request, restores it. Delete, or the end of its time to live, works from every state. When its "
               "engine or guest dies it is failed and can only be deleted.")
    c.box(30, 150, 120, 62, "plain", "creating", "restore")
    c.box(340, 150, 150, 62, "good", "running", "takes memory, CPU")
    c.arrow((150, 181), (338, 181))
    c.note(244, 170, "user code can run")
    c.box(340, 20, 150, 62, "state", "paused", "takes memory")
    c.arrow((390, 150), (390, 84))
    c.arrow((440, 82), (440, 148))
    c.note(380, 121, "pause", anchor="end")
    c.note(450, 121, "resume", anchor="start")
    c.box(680, 150, 150, 62, "kept", "hibernated", "takes disk only")
    c.arrow((490, 168), (678, 168))
    c.note(584, 159, "hibernate, or idle")
    c.arrow((680, 196), (492, 196))
    c.note(584, 216, "wake, or a request", "that is permitted")
    c.arrow((490, 51), (755, 51), (755, 148))
    c.note(622, 41, "hibernate")
    c.box(340, 300, 150, 62, "plain", "deleted", "files are unlinked")
    c.arrow((415, 212), (415, 298))
    c.note(425, 252, "delete, or its", "time to live ends", anchor="start")
    c.arrow((755, 212), (755, 331), (492, 331))
    c.note(624, 321, "delete wins from every state")
    c.box(30, 300, 150, 62, "hostile", "failed", "has a reason")
    c.arrow((360, 212), (360, 250), (105, 250), (105, 298), kind="no")
    c.note(232, 242, "engine or guest died", kind="bad small")
    c.arrow((180, 331), (338, 331))
    c.note(259, 321, "delete")
    c.note(30, 400, "Between two states there is a third while it changes: pausing, resuming, hibernating, waking, deleting.",
           anchor="start", kind="faint small")
    return c


def packet():
    c = Canvas("packet", 860, 560, "The path of a packet out of a sandbox",
               "A program in the guest opens a connection. The guest's only interface leads to a namespace without "
               "a route. Kernel rules there hand TCP and DNS to sockets of the egress process and refuse everything "
               "else. The egress process knows the sandbox by the socket, reads the name, asks the policy, resolves "
               "the name itself and dials only what it checked. Kernel rules behind it drop private and metadata "
               "addresses once more. What is denied is answered at once and written to the log.")
    c.zone(20, 16, 250, 236, "the guest (may be hostile)")
    c.box(50, 50, 190, 62, "hostile", "program", "https://pypi.org")
    c.box(50, 170, 190, 62, "hostile", "guest kernel, eth0", "its only interface")
    c.arrow((110, 112), (110, 168))
    c.note(120, 145, "DNS query, TCP", anchor="start")
    c.zone(20, 272, 250, 144, "host: slot, no route")
    c.box(45, 308, 200, 92, "plain", "tap0, kernel rules", "TCP and DNS: to sockets", "of the egress process;", "anything else: refused")
    c.arrow((220, 232), (220, 306))
    c.zone(310, 16, 290, 400, "dayfly-egress (no privilege)")
    steps = [("1  who?", "the socket says which sandbox"), ("2  which name?", "of the query, TLS or HTTP"),
             ("3  may it?", "policy: name and port"), ("4  where?", "resolves the name itself"),
             ("5  dials", "an address that it checked")]
    for index, (title, line) in enumerate(steps):
        y = 48 + index * 73
        c.box(335, y, 240, 52, "state" if index != 2 else "good", title, line)
        if index:
            c.arrow((455, y - 21), (455, y - 2))
    c.arrow((245, 354), (290, 354), (290, 74), (333, 74))
    c.zone(640, 16, 200, 400, "the host's way out")
    c.box(660, 310, 160, 86, "plain", "kernel rules", "drop private and", "metadata ranges")
    c.arrow((575, 366), (658, 366))
    c.box(660, 180, 160, 62, "plain", "uplink", "NAT or your own")
    c.arrow((740, 310), (740, 244))
    c.box(660, 60, 160, 62, "good", "pypi.org", "the internet")
    c.arrow((740, 180), (740, 124))
    c.box(310, 456, 290, 62, "kept", "network log", "what was tried, decided, and why")
    c.arrow((455, 392), (455, 454))
    c.note(465, 440, "every decision", anchor="start")
    c.arrow((335, 220), (303, 220), (303, 432), (145, 432), (145, 402), kind="no")
    c.note(30, 466, "denied: NXDOMAIN, HTTP 403,", "a TLS alert or a reset, at once", anchor="start", kind="bad small")
    c.note(20, 545, "If dayfly-egress is gone, nobody serves the sockets and nothing leaves. UDP, ICMP and IPv6 never leave.",
           anchor="start", kind="faint small")
    return c


def trust():
    c = Canvas("trust", 900, 550, "Who trusts whom",
               "Clients and guests are not trusted. The control process has no privilege and reaches the node only "
               "through one socket. The node is root. Each guest is a machine on KVM inside an engine process that "
               "is jailed: its own user, no capability, a list of system calls. The egress process has no privilege. "
               "What a guest sends is bounded and checked at four places.")
    c.zone(20, 16, 170, 380, "not trusted: clients")
    c.box(32, 60, 146, 62, "hostile", "client", "CLI, SDK, HTTP")
    c.box(32, 250, 146, 62, "hostile", "visitor", "of a port, by link")
    c.zone(300, 16, 280, 380, "trusted: the host")
    c.box(345, 60, 190, 62, "state", "control", "own user, no capability")
    c.box(345, 180, 190, 62, "good", "node", "root; slots, engines")
    c.box(345, 300, 190, 62, "state", "dayfly-egress", "own user, no capability")
    c.zone(690, 16, 190, 380, "not trusted: sandbox")
    c.box(700, 60, 170, 86, "hostile", "engine (QEMU)", "jail: own uid, no", "capability, 91 calls")
    c.box(700, 214, 170, 62, "hostile", "guest kernel", "root of itself only")
    c.box(700, 314, 170, 62, "hostile", "user code", "what a model wrote")
    c.arrow((178, 91), (343, 91))
    c.note(245, 80, "1 key, scope")
    c.arrow((178, 281), (285, 281), (285, 110), (343, 110))
    c.note(245, 302, "1 key or link")
    c.arrow((440, 122), (440, 178))
    c.note(450, 154, "2 one socket", anchor="start")
    c.arrow((440, 242), (440, 298))
    c.note(450, 274, "policy", anchor="start")
    c.arrow((535, 205), (600, 205), (600, 103), (698, 103), both=True)
    c.note(608, 150, "3 checked", "messages", anchor="start")
    c.arrow((785, 214), (785, 148), both=True)
    c.note(795, 186, "4 KVM", anchor="start")
    c.arrow((785, 314), (785, 278))
    c.arrow((700, 345), (537, 345))
    c.note(635, 334, "5 names, ports")
    c.box(345, 436, 190, 48, "plain", "internet", "what the policy allows")
    c.arrow((440, 362), (440, 434))
    c.note(20, 512, "Numbers: what is checked where trust ends. Red: may be hostile.", anchor="start", kind="faint small")
    c.note(20, 532, "Without KVM number 4 is missing: guests are emulated, which is for development and not a boundary.",
           anchor="start", kind="bad small")
    return c


PICTURES = [fork_tree, life, packet, trust]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--theme", choices=["light", "dark"])
    parser.add_argument("--into", default=PLACE)
    options = parser.parse_args()
    if options.theme and os.path.abspath(options.into) == PLACE:
        parser.error("--theme needs --into: the pictures here have both themes")
    wrong = []
    for draw in PICTURES:
        canvas = draw()
        path, text = os.path.join(options.into, f"{canvas.name}.svg"), canvas.svg(options.theme)
        if options.check:
            old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
            wrong += [path] if old != text else []
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if wrong:
        sys.exit(f"not what draw.py draws: {', '.join(os.path.relpath(path) for path in wrong)}; run it")


if __name__ == "__main__":
    main()
