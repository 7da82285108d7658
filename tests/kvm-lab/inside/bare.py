"""The bare engine: QEMU, a distribution's kernel and a shell that counts, with nothing of ours in it.

Memory and device state are saved and restored as a sandbox's are: memory is a file that a restored
machine maps privately, device state is saved apart from it. So a machine that stalls or ends here
does so for reasons that Dayfly has no part in.
"""
import json
import re
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from product import until

DIRECTORY = Path("/lab/work/bare")
MEMORY_MIB = 512
BOOT_SECONDS_MAX = 240
MONITOR_SECONDS_MAX = 30
# As long as Dayfly waits for a guest that it restored.
ANSWER_SECONDS_MAX = 20
# And how long to look whether it was only slow.
LATE_SECONDS_MAX = 60
# Work between two counts: a MiB of memory is written.
INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /dev /proc /tmp
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
$b mount -t tmpfs -o size=256m tmp /tmp
exec >/dev/ttyS0 2>&1 </dev/null
$b dd if=/dev/urandom of=/tmp/session bs=1M count=@MIB@
n=0
while :; do
    n=$((n+1))
    echo "tick $n"
    $b dd if=/tmp/session of=/tmp/session bs=64k count=16 skip=$((n % 900)) seek=$((n % 900)) conv=notrunc 2>/dev/null
    $b usleep 50000
done
"""


def make_initrd(session_mib: int) -> Path:
    """An initial ram disk with one shell and one script."""
    root = DIRECTORY / "initrd.d"
    (root / "bin").mkdir(parents=True)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    (root / "init").write_text(INIT.replace("@MIB@", str(session_mib)))
    (root / "init").chmod(0o755)
    initrd = DIRECTORY / "initrd"
    with open(initrd, "wb") as file:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=root, input=b"bin\nbin/busybox\ninit\n",
                       stdout=file, check=True, timeout=60)
    return initrd


@dataclass(frozen=True)
class Saved:
    """A machine at an instant."""

    memory: Path
    devices: Path
    ticks: int


class BareMachine:
    """One engine process, with its console in a file."""

    def __init__(self, name: str, memory: dict[str, Any], more: list[str]) -> None:
        self.directory = DIRECTORY / name
        self.directory.mkdir()
        self.console = self.directory / "console.log"
        self.memory = Path(memory["mem-path"])
        backend = {"qom-type": "memory-backend-file", "id": "memory", "size": MEMORY_MIB << 20, **memory}
        socket_path = self.directory / "monitor.sock"
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
                 "-M", "microvm,acpi=on,memory-backend=memory", "-accel", "kvm", "-cpu", "host",
                 "-m", f"{MEMORY_MIB}M", "-smp", "1", "-bios", "qboot.rom",
                 "-global", "migration.send-configuration=off", "-object", json.dumps(backend),
                 "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console",
                 "-chardev", f"socket,id=monitor,server=on,wait=off,path={socket_path}",
                 "-mon", "chardev=monitor,mode=control", *more]
        with open(self.directory / "engine.log", "wb") as log:
            self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.monitor = socket.socket(socket.AF_UNIX)
        self.monitor.settimeout(MONITOR_SECONDS_MAX)
        try:
            until("the monitor is there", MONITOR_SECONDS_MAX, lambda: self.connect(socket_path))
            self.lines = self.monitor.makefile("r")
            self.lines.readline()
            self.execute("qmp_capabilities")
        except BaseException:
            self.end()
            raise

    def connect(self, path: Path) -> bool:
        if self.child.poll() is not None:
            raise RuntimeError(f"the engine ended: {(self.directory / 'engine.log').read_text()}")
        try:
            self.monitor.connect(str(path))
            return True
        except OSError:
            return False

    def execute(self, command: str, **arguments: Any) -> Any:
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while line := self.lines.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']}")
            if "return" in answer:
                return answer["return"]
        raise RuntimeError(f"{command}: the engine closed its monitor")

    def ticks(self) -> int:
        """The last count on the console."""
        found = re.findall(rb"tick (\d+)\r?\n", self.console.read_bytes()[-4096:]) if self.console.exists() else []
        return int(found[-1]) if found else 0

    def goes_on(self, after: int, seconds: float) -> bool:
        """Whether it counts beyond a number within so many seconds. One that ended does not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.ticks() > after:
                return True
            if self.child.poll() is not None:
                return False
            time.sleep(0.05)
        return False

    def save(self, name: str) -> Saved:
        """Stops it, and copies what it is at this instant."""
        self.execute("stop")
        devices, memory = DIRECTORY / f"{name}.state", DIRECTORY / f"{name}.memory"
        self.execute("xen-save-devices-state", filename=str(devices), live=False)
        subprocess.run(["cp", "--sparse=always", self.memory, memory], check=True, timeout=120)
        return Saved(memory, devices, self.ticks())

    def state(self) -> dict[str, object]:
        """What can be said about one that does not go on."""
        if self.child.poll() is not None:
            return {"exit": self.child.returncode, "log": (self.directory / "engine.log").read_text()[-500:]}
        told: dict[str, object] = {"status": self.execute("query-status").get("status")}
        for question in ("info registers", "info lapic"):
            told[question] = [self.execute("human-monitor-command", **{"command-line": question}) for _ in range(2)]
        return told

    def end(self) -> None:
        """Ends the process. Its console stays."""
        self.child.kill()
        self.child.wait()
        self.monitor.close()

    def remove(self) -> None:
        self.end()
        shutil.rmtree(self.directory)


def boot(name: str, initrd: Path, ticks: int) -> BareMachine:
    """A machine that has counted so far. Its memory is a file that it shares, so that it can be saved."""
    kernel = next(Path("/lab/images").glob("kernel-*/vmlinuz"))
    words = "console=ttyS0 quiet panic=-1 reboot=t random.trust_cpu=on"
    machine = BareMachine(name, {"mem-path": str(DIRECTORY / name / "memory"), "share": True},
                          ["-kernel", str(kernel), "-initrd", str(initrd), "-append", words])
    if not machine.goes_on(ticks, BOOT_SECONDS_MAX):
        state = machine.state()
        machine.end()
        raise RuntimeError(f"the bare machine {name} did not boot: {state}")
    return machine


def restore(name: str, saved: Saved, *, keep: bool = False) -> BareMachine:
    """The machine again. With `keep` it writes to what was saved, so that it can be saved again."""
    if keep:
        memory: dict[str, Any] = {"mem-path": str(saved.memory), "share": True}
    else:
        memory = {"mem-path": str(saved.memory), "share": False, "readonly": True, "rom": "off"}
    machine = BareMachine(name, memory, ["-incoming", "defer", "-S"])
    try:
        machine.execute("migrate-incoming", uri=f"file:{saved.devices}")
        until("the state is loaded", MONITOR_SECONDS_MAX,
              lambda: machine.execute("query-migrate").get("status") in ("completed", "failed"))
        machine.execute("cont")
    except BaseException:
        machine.end()
        raise
    return machine
