"""Boots a host under QEMU's emulation, with its virtualisation of AMD processors, and hears its reports.

Nothing stays behind: the root is written to a file that QEMU has already unlinked, and the process
ends with whoever started it.
"""
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from host import Host

# Without xsave: emulation does not save that state across the border of a guest. And without whatever
# needs it: a kernel that finds avx uses it, and ends in an invalid instruction.
NEEDS_XSAVE = ("xsaveopt", "xsavec", "xgetbv1", "avx", "avx2", "f16c", "fma")
PROCESSOR = ",".join(["EPYC", "+svm", "+npt", "-xsave", *(f"-{feature}" for feature in NEEDS_XSAVE)])
OFF_SECONDS_MAX = 180
LINE_BYTES_MAX = 1 << 20

Report = dict[str, object]


@dataclass(frozen=True)
class Machine:
    """How a host is booted."""

    host: Host
    payload: Path
    processor: str = PROCESSOR
    cores: int = 1
    memory_mib: int = 6144
    accelerator: str = "tcg,thread=multi,tb-size=1024"
    kernel_arguments: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    def command(self, console: Path) -> list[str]:
        append = ["root=/dev/vda rw console=ttyS0 panic=-1 net.ifnames=0", *self.kernel_arguments]
        disk = "if=virtio,format=raw,cache=unsafe"
        return ["qemu-system-x86_64", "-M", "q35", "-accel", self.accelerator, "-cpu", self.processor,
                "-smp", str(self.cores), "-m", str(self.memory_mib), "-nodefaults", "-no-user-config",
                "-display", "none", "-no-reboot", "-serial", f"file:{console}", "-serial", "stdio",
                "-kernel", str(self.host.kernel), "-initrd", str(self.host.initrd), "-append", " ".join(append),
                "-drive", f"file={self.host.root},snapshot=on,{disk}", "-drive", f"file={self.payload},{disk},discard=unmap",
                "-device", "virtio-rng-pci", *self.more]


@dataclass(frozen=True)
class Deadlines:
    boot_seconds: float
    run_seconds: float


class LabError(Exception):
    """The machine did not do what it should: not up, not done, not off."""


def run(machine: Machine, console: Path, hear: Callable[[Report], None], deadlines: Deadlines) -> int:
    """Boots, hands each report on, and gives the status of what was run."""
    with open(console.with_suffix(".qemu.log"), "wb") as errors:
        child = subprocess.Popen(machine.command(console), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=errors)
    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
    reader = threading.Thread(target=read_lines, args=(child, lines), daemon=True)
    reader.start()
    try:
        expect(lines, hear, "up", deadlines.boot_seconds)
        status = expect(lines, hear, "end", deadlines.run_seconds).get("status")
        try:
            child.wait(OFF_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            # All results are there and synced.
            hear({"event": "note", "text": f"the machine was not off after {OFF_SECONDS_MAX} s"})
        return status if isinstance(status, int) else 1
    finally:
        child.kill()
        child.wait()
        reader.join(OFF_SECONDS_MAX)


def read_lines(child: subprocess.Popen[bytes], lines: "queue.Queue[bytes | None]") -> None:
    assert child.stdout is not None
    while line := child.stdout.readline(LINE_BYTES_MAX):
        lines.put(line)
    lines.put(None)


def expect(lines: "queue.Queue[bytes | None]", hear: Callable[[Report], None], event: str, seconds: float) -> Report:
    """Hands reports on until the one that is waited for has come."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise LabError(f"the lab did not report `{event}` within {seconds:.0f} s") from None
        if line is None:
            raise LabError(f"the lab's machine ended before it reported `{event}`")
        report = parse(line)
        hear(report)
        if report.get("event") == event:
            return report


def parse(line: bytes) -> Report:
    try:
        report = json.loads(line)
    except ValueError:
        return {"event": "noise", "text": line.decode(errors="replace").strip()}
    return report if isinstance(report, dict) else {"event": "noise", "text": str(report)}
