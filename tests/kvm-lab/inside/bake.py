"""Bakes `base` on KVM from cached images, into the directory that the tests share."""
import time
from pathlib import Path

from product import Daemon
from report import RESULTS, tell, telling
from witness import Witness

TEMPLATES = Path("/lab/work/data")
# With a probe of KVM before it, on a busy machine.
BAKE_SECONDS_MAX = 3600


def wait_for_bake(daemon: Daemon) -> None:
    """What guests said on their consoles is kept, whether the bake ends or not: some boot twice."""
    with Witness(TEMPLATES.parent) as witness, telling("baking", daemon.last_words):
        try:
            daemon.wait_until_ready(BAKE_SECONDS_MAX)
        finally:
            witness.keep(RESULTS / "bake")


def bake() -> None:
    start = time.monotonic()
    TEMPLATES.mkdir(mode=0o711)
    with Daemon(TEMPLATES) as daemon:
        wait_for_bake(daemon)
        node = daemon.node()
        found = {name: node[name] for name in ("accelerator", "isolation", "engine_version")}
        if (found["accelerator"], found["isolation"]) != ("kvm", "hardware"):
            raise RuntimeError(f"the daemon does not run on KVM: {found}; its log says why")
        tell("baked", seconds=round(time.monotonic() - start, 1), **found)
        start = time.monotonic()
        sandbox = daemon.call("POST", "/v1/sandboxes", {"template": "base", "ttl_seconds": 600})["id"]
        said = daemon.shell(sandbox, "cat /sys/devices/system/clocksource/clocksource0/current_clocksource")
        tell("first", seconds=round(time.monotonic() - start, 1), guest_clock=said)
