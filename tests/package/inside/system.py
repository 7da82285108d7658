"""What is asked of the host itself: programs, units, groups, what is left of it all."""
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMAND_SECONDS_MAX = 900
PAUSE_SECONDS = 0.5
DATA = Path("/var/lib/dayfly")
LOCAL = Path("/run/dayfly/local.json")
CGROUPS = Path("/sys/fs/cgroup")
DELEGATED = CGROUPS / "system.slice/dayfly-sandboxes.service"


class Failed(Exception):
    """Something was not as it should be."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Failed(what)


def run(*words: str, status: int = 0) -> str:
    """What a program says, which must end with this status."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX,
                          stdin=subprocess.DEVNULL)
    print(f"+ {' '.join(words)}\n{done.stdout}{done.stderr}= {done.returncode}", flush=True)
    check(done.returncode == status, f"{' '.join(words)}: {done.returncode} {done.stderr.strip()[-600:]}")
    return done.stdout.strip()


def as_user(name: str, *words: str, status: int = 0) -> str:
    """As somebody who has logged in: with their groups, and without root's environment."""
    return run("runuser", "-l", name, "-c", " ".join(words), status=status)


def until(what: str, seconds: float, holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        check(time.monotonic() < deadline, f"{what}: not within {seconds} s")
        time.sleep(PAUSE_SECONDS)
    return found


def unit_is(unit: str, state: str) -> bool:
    told = subprocess.run(["systemctl", "is-active", unit], capture_output=True, text=True, timeout=60)
    return told.stdout.strip() == state


def engines() -> set[str]:
    told = subprocess.run(["pgrep", "-f", "qemu-system-x86_64"], capture_output=True, text=True, timeout=60)
    return set(told.stdout.split())


def groups_below(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("dayfly-*") if path.is_dir()) if place.is_dir() else []


def mounts_below(place: Path) -> list[str]:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{place}/")]


def links() -> list[str]:
    return [path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith("dfy-")]


def nothing_runs() -> None:
    check(not engines(), f"engines run: {engines()}")
    check(not groups_below(DELEGATED) and not groups_below(CGROUPS), "control groups are left")
    check(not mounts_below(DATA), f"mounts are left: {mounts_below(DATA)}")
    check(not links(), f"links are left: {links()}")
    check(not LOCAL.exists(), "the key of the group is left")
