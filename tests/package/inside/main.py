#!/usr/bin/env python3
"""What the host does: installs the package and lives with it, from a first result to a purge."""
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

for place in ("inside", "lab"):
    sys.path.insert(0, str(Path(__file__).resolve().parent / place))

import prepare  # noqa: E402
from report import tell  # noqa: E402
from system import (CGROUPS, DATA, DELEGATED, LOCAL, Failed, as_user, check, engines, groups_below,  # noqa: E402
                    nothing_runs, run, unit_is, until)

SETTINGS = Path("/etc/dayfly/dayflyd.toml")
# Images of templates come from the second disk, and everything is slow here.
DROP_IN = """[Service]
Environment=DAYFLYD_IMAGE_CACHE=/lab/images DAYFLYD_PROBE_SECONDS=120
"""
ASIDE = {"DEBIAN_FRONTEND": "noninteractive", "DAYFLYD_IMAGE_CACHE": "/lab/images"}


class Story:
    """The steps, in their order. Each stands on those before it."""

    def __init__(self) -> None:
        self.above = (CGROUPS / "cgroup.subtree_control").read_text()
        self.sandbox = self.sleeper = self.snapshot = ""
        self.engines: set[str] = set()

    def prepare(self) -> None:
        Path("/etc/apt/sources.list.d/lab.list").write_text("deb [trusted=yes] file:/lab/archive ./\n")
        place = Path("/etc/systemd/system/dayflyd.service.d")
        place.mkdir(parents=True)
        (place / "lab.conf").write_text(DROP_IN)
        for name in ("ann", "bob"):
            run("useradd", "--create-home", "--shell", "/bin/bash", name)
        run("apt-get", "-q", "update")

    def install(self) -> None:
        run("apt-get", "-q", "-y", "install", "/lab/first/dayfly.deb")
        check(unit_is("dayflyd.service", "active"), "the daemon does not run")
        check(unit_is("dayfly-sandboxes.service", "active"), "nothing holds the control groups")
        check(run("systemctl", "is-enabled", "dayflyd.service") == "enabled", "it is not enabled")

    def first_result(self) -> None:
        run("usermod", "-aG", "dayfly", "ann")
        check(as_user("ann", "dayfly run -- python3 -c 'print(6*7)'") == "42", "six times seven")

    def groups(self) -> None:
        check(LOCAL.stat().st_mode & 0o777 == 0o640 and LOCAL.stat().st_uid == 0, "the key is not the group's")
        as_user("bob", "dayfly ls", status=4)
        as_user("ann", "dayfly token create", status=4)
        run("find", str(CGROUPS), "-maxdepth", "4", "-name", "dayfly*")
        check(groups_below(DELEGATED), "no control groups below the unit")
        check(not groups_below(CGROUPS), "control groups at the root")
        now = (CGROUPS / "cgroup.subtree_control").read_text()
        check(now == self.above, f"the root's controllers were {self.above!r} and are {now!r}")

    def work(self) -> None:
        as_user("ann", "dayfly volume create data 64M")
        self.sandbox = as_user("ann", "dayfly create --ttl 4h")
        as_user("ann", f"dayfly exec {self.sandbox} -- sh -c 'echo kept >/workspace/note'")
        self.snapshot = as_user("ann", f"dayfly snapshot create {self.sandbox}")
        as_user("ann", "dayfly run --volume data -- sh -c 'echo written >/volumes/data/note; sync'")
        self.sleeper = as_user("ann", "dayfly create --ttl 4h")
        as_user("ann", f"dayfly exec {self.sleeper} -- sh -c 'echo asleep >/dev/shm/note'")
        as_user("ann", f"dayfly hibernate {self.sleeper}")
        as_user("ann", f"dayfly exec {self.sandbox} -- sh -c 'echo memory >/dev/shm/note'")
        self.engines = engines()
        check(self.engines, "no engine runs")

    def answers(self) -> None:
        said = as_user("ann", f"dayfly exec {self.sandbox} -- cat /dev/shm/note")
        check(said == "memory", f"the sandbox says {said!r}")
        check(engines() & self.engines, "its engine is another one")

    def restart(self) -> None:
        key = json.loads(LOCAL.read_text())["key"]
        run("systemctl", "restart", "dayflyd.service")
        self.answers()
        check(json.loads(LOCAL.read_text())["key"] != key, "the key of the group is the old one")

    def upgrade(self) -> None:
        before = run("dpkg-query", "-W", "-f", "${Version}", "dayfly")
        run("apt-get", "-q", "-y", "install", "/lab/second/dayfly.deb")
        check(run("dpkg-query", "-W", "-f", "${Version}", "dayfly") != before, "the version is the same")
        self.answers()

    def doctor(self) -> None:
        told = run("dayflyd", "doctor", "--data-dir", str(DATA), "--no-probe", "--json")
        found = json.loads(told)
        tell("doctor", isolation=found["isolation"], accelerator=found["accelerator"])
        check(found["fit"] and found["leftovers"] == [], f"doctor says {found['leftovers']}")

    def shut_the_door(self) -> None:
        text = SETTINGS.read_text()
        SETTINGS.write_text(text.replace("local_group =", "# local_group ="))
        run("systemctl", "reload", "dayflyd.service")
        until("the key is gone", 60, lambda: not LOCAL.exists())
        as_user("ann", "dayfly ls", status=4)
        SETTINGS.write_text(text)
        run("systemctl", "reload", "dayflyd.service")
        until("the key is there", 60, LOCAL.exists)
        self.answers()

    def remove(self) -> None:
        run("apt-get", "-q", "-y", "remove", "dayfly")
        check(not unit_is("dayflyd.service", "active"), "the daemon runs on")
        nothing_runs()
        check(list((DATA / "node/captures").iterdir()), "no capture is left")
        check(list((DATA / "node/volumes").iterdir()), "no volume is left")

    def install_again(self) -> None:
        run("apt-get", "-q", "-y", "install", "/lab/second/dayfly.deb")
        said = as_user("ann", f"dayfly run --from-snapshot {self.snapshot} -- cat /workspace/note")
        check(said == "kept", f"the snapshot has {said!r}")
        said = as_user("ann", "dayfly run --volume data -- cat /volumes/data/note")
        check(said == "written", f"the volume has {said!r}")
        said = as_user("ann", f"dayfly exec {self.sleeper} -- cat /dev/shm/note")
        check(said == "asleep", f"the sleeper says {said!r}")

    def purge(self) -> None:
        run("apt-get", "-q", "-y", "purge", "dayfly")
        nothing_runs()
        for place in (DATA, SETTINGS.parent, Path("/usr/lib/dayfly"), Path("/usr/bin/dayfly")):
            check(not place.exists() and not place.is_symlink(), f"{place} is left")
        check("dayfly" not in run("systemctl", "list-unit-files", "--no-legend"), "units are left")


def step(work: Callable[[], None]) -> None:
    start = time.monotonic()
    work()
    tell("step", name=work.__name__, seconds=round(time.monotonic() - start, 1))


def main() -> int:
    os.environ.update(ASIDE)
    try:
        tell("host", **prepare.make_host([]))
        story = Story()
        for work in (story.prepare, story.install, story.first_result, story.groups, story.work, story.restart,
                     story.upgrade, story.doctor, story.shut_the_door, story.remove, story.install_again,
                     story.purge):
            step(work)
        return 0
    except Failed as error:
        tell("failed", error=str(error))
        return 1
    except Exception as error:  # Whatever it was, the one who booted this must hear of it.
        traceback.print_exc()
        tell("failed", error=f"{type(error).__name__}: {error}")
        return 125


if __name__ == "__main__":
    sys.exit(main())
