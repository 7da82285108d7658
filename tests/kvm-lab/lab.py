#!/usr/bin/env python3
"""Runs Dayfly on a host with KVM, where there is none: a Debian host under emulation that virtualises.

    tests/kvm-lab/lab.py cases [NAME...]      tests with machines, by exact name; the list of names.py without
    tests/kvm-lab/lab.py hunt                 many creates, forks and sleeps, in turns with the bare engine
    tests/kvm-lab/lab.py bare                 the bare engine's half of the hunt alone, with nothing of Dayfly

Needs root, QEMU, mmdebstrap and what `.ci/packages` installs; built programs and tests. Times say nothing
about real hardware. Results go to --results, with consoles and logs of whatever failed.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import boot
import names
import payload
from host import HostSpec, ensure_host

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
# The engine that Dayfly needs, and what it and its tests call.
ENGINE = ("qemu-system-x86", "qemu-utils")
TOOLS = ("curl", "erofs-utils", "e2fsprogs", "nftables", "mmdebstrap", "cpio", "zstd", "strace", "tmux", "git",
         "busybox-static", *ENGINE)
NEWER_ENGINE = ("qemu*", "seabios", "ipxe-qemu")
NEWER_KERNEL = ("linux-image*",)
BOOT_SECONDS_MAX = 600


def host_spec(suite: str, kernel: str) -> HostSpec:
    backports = NEWER_ENGINE if suite == "bookworm" else ()
    return HostSpec(suite, TOOLS, backports + (NEWER_KERNEL if kernel == "backports" else ()))


def newest_tests(target: Path) -> Path:
    """The e2e program that was built last."""
    found = [path for path in target.glob("debug/deps/machines-*") if not path.suffix and os.access(path, os.X_OK)]
    if not found:
        sys.exit(f"no test program in {target}: cargo test --no-run -p dayfly-e2e")
    return max(found, key=lambda path: path.stat().st_mtime)


def tell(report: boot.Report) -> None:
    fields = " ".join(f"{key}={value}" for key, value in report.items() if key not in ("event", "said"))
    print(f"{time.strftime('%H:%M:%S')} {report.get('event')}: {fields}", flush=True)
    if report.get("said"):
        print("    " + str(report["said"]).replace("\n", "\n    "), flush=True)


def qemu_words(options: list[str]) -> list[str]:
    return [word for option in options for word in (f"-{option.partition('=')[0]}", option.partition("=")[2])]


def plan_of(arguments: argparse.Namespace) -> dict[str, object]:
    plan: dict[str, object] = {"probe_seconds": arguments.probe_seconds, "kvm_options": arguments.kvm_option}
    if arguments.what == "cases":
        plan["cases"] = {"names": arguments.names or list(names.ALL), "patience": arguments.patience,
                         "case_seconds": arguments.case_seconds}
    else:
        plan["hunt"] = {"creates": arguments.creates, "children": arguments.children, "sleeps": arguments.sleeps,
                        "session_mib": arguments.session_mib, "bare": not arguments.no_bare,
                        "product": arguments.what == "hunt", "at_once": arguments.at_once}
    return plan


def base_images(cache: Path) -> dict[str, Path]:
    """The cached images that `base` is baked from. Of the roots, its own is the smallest."""
    def size(directory: Path) -> int:
        return sum(file.stat().st_size for file in directory.iterdir())

    roots = sorted(cache.glob("root-*"), key=size)
    kernels = list(cache.glob("kernel-*"))
    if not roots or not kernels:
        sys.exit(f"no images in {cache}: bake base once with DAYFLYD_IMAGE_CACHE={cache}")
    return {f"images/{directory.name}": directory for directory in [*kernels, roots[0]]}


def files_of(arguments: argparse.Namespace, plan: Path) -> dict[str, Path]:
    files = {"plan.json": plan, "run": HERE / "inside/main.py", "inside": HERE / "inside",
             "programs": arguments.programs, **base_images(arguments.images)}
    if arguments.what == "cases":
        files["machines"] = arguments.tests or newest_tests(arguments.target)
    return files


def parse() -> argparse.Namespace:
    cache = Path(os.environ.get("DAYFLY_CI_CACHE", "/var/cache/dayfly-ci"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cases", "hunt", "bare"))
    parser.add_argument("names", nargs="*", help="tests, by exact name")
    parser.add_argument("--programs", type=Path, default=TREE / "target/dist")
    parser.add_argument("--target", type=Path, default=Path(os.environ.get("CARGO_TARGET_DIR", cache / "target")))
    parser.add_argument("--tests", type=Path, help="the e2e program; by default the newest in --target")
    parser.add_argument("--images", type=Path, default=cache / "images")
    parser.add_argument("--results", type=Path, required=True, help="a directory to be made")
    parser.add_argument("--work", type=Path, default=Path("/var/tmp"), help="where the disk lies while it runs")
    parser.add_argument("--run-seconds", type=float, default=3300)
    machine = parser.add_argument_group("the machine")
    machine.add_argument("--suite", choices=("bookworm", "trixie"), default="bookworm")
    machine.add_argument("--kernel", choices=("own", "backports"), default="own")
    machine.add_argument("--processor", default=boot.PROCESSOR)
    machine.add_argument("--accelerator", default=boot.Machine.accelerator)
    machine.add_argument("--clocksource", help="of the outer kernel: tsc, hpet, acpi_pm")
    machine.add_argument("--qemu-option", action="append", default=[], metavar="NAME=VALUE",
                         help="a further option, as icount=shift=1")
    machine.add_argument("--cores", type=int, default=1,
                         help="with two, the emulation loses the outer kernel now and then (docs/kvm-lab.md)")
    machine.add_argument("--memory-mib", type=int, default=6144)
    machine.add_argument("--kvm-option", action="append", default=[], help="of the module kvm-amd, as npt=0")
    machine.add_argument("--probe-seconds", type=int, default=120)
    cases = parser.add_argument_group("cases")
    cases.add_argument("--patience", type=int, default=10)
    cases.add_argument("--case-seconds", type=float, default=900)
    hunt = parser.add_argument_group("hunt")
    hunt.add_argument("--creates", type=int, default=200)
    hunt.add_argument("--children", type=int, default=100)
    hunt.add_argument("--sleeps", type=int, default=50)
    hunt.add_argument("--session-mib", type=int, default=60)
    hunt.add_argument("--no-bare", action="store_true")
    hunt.add_argument("--at-once", type=int, default=1, help="of bare: creates alone, so many machines at once")
    return parser.parse_args()


def run(arguments: argparse.Namespace, work: Path) -> int:
    plan = work / "plan.json"
    plan.write_text(json.dumps(plan_of(arguments)))
    start = time.monotonic()
    host = ensure_host(host_spec(arguments.suite, arguments.kernel))
    disk = work / "payload.img"
    payload.make(disk, work / "staging", files_of(arguments, plan))
    tell({"event": "built", "seconds": round(time.monotonic() - start, 1)})
    kernel_arguments = (f"clocksource={arguments.clocksource}",) if arguments.clocksource else ()
    machine = boot.Machine(host, disk, arguments.processor, arguments.cores, arguments.memory_mib,
                           arguments.accelerator, kernel_arguments, tuple(qemu_words(arguments.qemu_option)))
    arguments.results.mkdir(parents=True)

    def hear(report: boot.Report) -> None:
        tell(report)
        # Here and not in the lab: a machine that was ended has not written everything to its disk.
        with open(arguments.results / "reports.jsonl", "a", encoding="utf-8") as kept:
            kept.write(json.dumps(report) + "\n")

    try:
        deadlines = boot.Deadlines(BOOT_SECONDS_MAX, arguments.run_seconds)
        return boot.run(machine, arguments.results / "console.log", hear, deadlines)
    finally:
        payload.bring_back(disk, arguments.results)


def in_a_workplace(run: Callable[[argparse.Namespace, Path], int], arguments: argparse.Namespace, prefix: str) -> int:
    """Runs in a directory that is gone afterwards."""
    # A signal ends as everything else does: with the machine off and its disks removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=arguments.work))
    try:
        return run(arguments, work)
    except boot.LabError as error:
        print(f"{error}; see {arguments.results}/console.log", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(in_a_workplace(run, parse(), "kvm-lab-"))
