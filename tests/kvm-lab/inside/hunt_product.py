"""The product's part of the hunt: creates, children of a session at work, sleeps."""
import time
from pathlib import Path

from product import Daemon, Refused
from trial import Tally

TTL_SECONDS = 7200
# A sandbox can be captured 48 times between two sleeps; the next one is refused.
FORKS_OF_A_SESSION = 40
SESSIONS_MAX = 5
# Counts, and writes every page of what it holds in turn.
SESSION = """
import os, time
held = bytearray(@MIB@ << 20)
pages = len(held) >> 12
place = os.open("/dev/shm/count", os.O_RDWR | os.O_CREAT)
count = 0
while True:
    count += 1
    for page in range(count * 256 % pages, min(pages, count * 256 % pages + 256)):
        held[page << 12] = count & 255
    os.pwrite(place, b"%d\\n" % count, 0)
    time.sleep(0.05)
"""
START = """cat >/dev/shm/session.py <<'END'
@SESSION@
END
setsid nohup python3 -I -S /dev/shm/session.py >/dev/shm/session.out 2>&1 </dev/null &
n=0; until [ -s /dev/shm/count ]; do n=$((n+1)); [ $n -lt 100 ] || exit 9; sleep 0.2; done
cat /dev/shm/count"""
# Twice, so that one which stands still is not taken for one at work.
COUNT = "a=$(cat /dev/shm/count); sleep 0.4; b=$(cat /dev/shm/count); [ $b -gt $a ] && echo $b"


class ProductHunt:
    def __init__(self, tally: Tally, daemon: Daemon, session_mib: int) -> None:
        self.tally = tally
        self.daemon = daemon
        self.session = SESSION.replace("@MIB@", str(session_mib))
        self.source: str | None = None
        self.forks = 0
        self.count = 0

    def logs(self) -> tuple[Path, ...]:
        slots = self.daemon.directory.glob("node/slots/*/run/console.log")
        return (self.daemon.log, *slots)

    def lost(self, kind: str, start: float, error: Exception | str) -> None:
        text = str(error)
        end = "ends" if "ended" in text or "gone" in text else "stalls"
        self.tally.add(kind, end, time.monotonic() - start, text[:600], self.logs())

    def delete(self, sandbox: str) -> None:
        try:
            self.daemon.call("DELETE", f"/v1/sandboxes/{sandbox}")
        except (Refused, OSError):
            # One that is lost may be gone by itself; its time ends anyway.
            return

    def create(self) -> None:
        start = time.monotonic()
        sandbox = None
        try:
            sandbox = self.make()
            self.daemon.shell(sandbox, "echo ok")
            self.tally.add("create", "answers", time.monotonic() - start)
        except (Refused, OSError) as error:
            self.lost("create", start, error)
        if sandbox:
            self.delete(sandbox)

    def make(self) -> str:
        return str(self.daemon.call("POST", "/v1/sandboxes", {"template": "base", "ttl_seconds": TTL_SECONDS})["id"])

    def ensure_source(self) -> str:
        """A session at work. One that is lost while it is made is counted, and the next one tried."""
        for _ in range(SESSIONS_MAX):
            if self.source is not None:
                return self.source
            start = time.monotonic()
            try:
                sandbox = self.make()
                self.daemon.shell(sandbox, START.replace("@SESSION@", self.session))
                self.count = int(self.daemon.shell(sandbox, COUNT))
                self.source = sandbox
                self.forks = 0
                self.tally.add("session", "answers", time.monotonic() - start)
            except (Refused, OSError) as error:
                self.lost("session", start, error)
        if self.source is None:
            raise RuntimeError(f"{SESSIONS_MAX} sessions in a row did not come up")
        return self.source

    def goes_on(self, kind: str, sandbox: str, start: float) -> bool:
        try:
            count = int(self.daemon.shell(sandbox, COUNT))
        except (Refused, OSError) as error:
            self.lost(kind, start, error)
            return False
        if count <= self.count:
            self.lost(kind, start, f"counts {count}, and was at {self.count} before")
            return False
        self.tally.add(kind, "answers", time.monotonic() - start)
        return True

    def check_source(self, kind: str, start: float) -> None:
        """The source must have gone on; if not, the next trial makes another."""
        if self.source is None:
            return
        if self.goes_on(kind, self.source, start):
            self.count = int(self.daemon.shell(self.source, COUNT))
        else:
            self.delete(self.source)
            self.source = None

    def fork(self, count: int) -> None:
        if self.source is not None and self.forks >= FORKS_OF_A_SESSION:
            self.delete(self.source)
            self.source = None
        source = self.ensure_source()
        self.forks += 1
        start = time.monotonic()
        try:
            forked = self.daemon.call("POST", f"/v1/sandboxes/{source}/fork",
                                      {"count": count, "ttl_seconds": TTL_SECONDS})
        except (Refused, OSError) as error:
            for _ in range(count):
                self.lost("child", start, error)
            self.check_source("source", start)
            return
        for reason in forked["failures"].values():
            self.lost("child", start, reason)
        for child in forked["children"]:
            self.goes_on("child", child["id"], start)
            self.delete(child["id"])
        self.check_source("source", start)

    def sleep(self) -> None:
        source = self.ensure_source()
        start = time.monotonic()
        try:
            self.daemon.call("POST", f"/v1/sandboxes/{source}/hibernate")
        except (Refused, OSError) as error:
            self.lost("sleep", start, error)
            self.delete(source)
            self.source = None
            return
        self.check_source("wake", time.monotonic())
