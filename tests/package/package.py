#!/usr/bin/env python3
"""Installs, upgrades, removes and purges the package on a Debian host with systemd, under QEMU.

    tests/package/package.py --first DIR --second DIR --results DIR [--suite bookworm|trixie]

--first and --second are directories that packaging/build filled, of two versions. The host is one of the
KVM lab's (tests/kvm-lab) without anything that Dayfly needs, or with --host lab the lab's own, which has
the engine already; what `apt install` asks for comes from an archive on its second disk. What is done and checked there is inside/main.py.
"""
import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAB = HERE.parent / "kvm-lab"
sys.path.insert(0, str(LAB))

import archive  # noqa: E402
import boot  # noqa: E402
import lab  # noqa: E402
import payload  # noqa: E402
from host import Host, HostSpec, ensure_host  # noqa: E402

# What a plain system has and the builder leaves out.
PLAIN = ("apt", "passwd", "util-linux", "procps", "libpam-systemd")
ROOT_BYTES = 28 << 30
BOOT_SECONDS_MAX = 600
COPY_SECONDS_MAX = 600


def tell(report: boot.Report) -> None:
    fields = " ".join(f"{key}={value}" for key, value in report.items() if key != "event")
    print(f"{time.strftime('%H:%M:%S')} {report.get('event')}: {fields}", flush=True)


def roomy(host: Host, place: Path) -> Host:
    """The same host with room for sandboxes on its root, which is where the package keeps them."""
    subprocess.run(["cp", "--sparse=always", host.root, place], check=True, timeout=COPY_SECONDS_MAX)
    os.truncate(place, ROOT_BYTES)
    subprocess.run(["e2fsck", "-fp", place], check=True, stdout=subprocess.DEVNULL, timeout=COPY_SECONDS_MAX)
    subprocess.run(["resize2fs", place], check=True, capture_output=True, timeout=COPY_SECONDS_MAX)
    return Host(place, host.kernel, host.initrd)


def the_package(directory: Path) -> Path:
    found = list(directory.glob("dayfly_*_amd64.deb"))
    if len(found) != 1:
        sys.exit(f"{directory} has {len(found)} packages of dayfly; packaging/build --out makes one")
    return found[0]


def parse() -> argparse.Namespace:
    cache = Path(os.environ.get("DAYFLY_CI_CACHE", "/var/cache/dayfly-ci"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=Path, required=True)
    parser.add_argument("--second", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True, help="a directory to be made")
    parser.add_argument("--suite", choices=("bookworm", "trixie"), default="bookworm")
    parser.add_argument("--host", choices=("plain", "lab"), default="plain")
    parser.add_argument("--images", type=Path, default=cache / "images", help="built disk images of templates")
    parser.add_argument("--work", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--run-seconds", type=float, default=3300)
    parser.add_argument("--cores", type=int, default=1, help="one: see docs/kvm-lab.md")
    parser.add_argument("--memory-mib", type=int, default=6144)
    return parser.parse_args()


def run(arguments: argparse.Namespace, work: Path) -> int:
    start = time.monotonic()
    first, second = the_package(arguments.first), the_package(arguments.second)
    plain = HostSpec(arguments.suite, PLAIN)
    host = ensure_host(plain if arguments.host == "plain" else lab.host_spec(arguments.suite, "own"))
    files = {"run": HERE / "inside/main.py", "inside": HERE / "inside", "lab": LAB / "inside",
             "first/dayfly.deb": first, "second/dayfly.deb": second, "images": arguments.images,
             "archive": archive.make(work / "apt", host.root, arguments.suite, first)}
    disk = work / "payload.img"
    payload.make(disk, work / "staging", files)
    machine = boot.Machine(roomy(host, work / "root.img"), disk, cores=arguments.cores,
                           memory_mib=arguments.memory_mib)
    tell({"event": "built", "suite": arguments.suite, "seconds": round(time.monotonic() - start, 1)})
    arguments.results.mkdir(parents=True)
    try:
        deadlines = boot.Deadlines(BOOT_SECONDS_MAX, arguments.run_seconds)
        return boot.run(machine, arguments.results / "console.log", tell, deadlines)
    finally:
        payload.bring_back(disk, arguments.results)


if __name__ == "__main__":
    sys.exit(lab.in_a_workplace(run, parse(), "package-"))
