"""Makes the machine a host with KVM, and sees that it is one."""
import os
import shutil
import subprocess
from pathlib import Path

# A busy machine emulates slowly.
COMMAND_SECONDS_MAX = 300


def command(*words: str) -> None:
    subprocess.run(words, check=True, timeout=COMMAND_SECONDS_MAX, stdin=subprocess.DEVNULL)


def make_host(kvm_options: list[str]) -> dict[str, str]:
    """Loads KVM, and gives what a figure of this run depends on."""
    command("modprobe", "kvm-amd", *kvm_options)
    command("modprobe", "tun")
    command("ip", "link", "set", "lo", "up")
    if not Path("/dev/kvm").is_char_device():
        raise RuntimeError("there is no /dev/kvm: the processor of this machine does not virtualise")
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        raise RuntimeError("control groups are not of version 2 alone")
    # Programs of a test run as users of their own, and must reach theirs.
    for place in (Path("/lab"), Path("/lab/work")):
        place.mkdir(exist_ok=True)
        place.chmod(0o711)
    return {"kernel": os.uname().release, "processor": processor(), "clock": clock(), "engine": engine()}


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))


def clock() -> str:
    return Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()


def engine() -> str:
    if shutil.which("qemu-system-x86_64") is None:
        return "none yet"
    told = subprocess.run(["qemu-system-x86_64", "--version"], check=True, capture_output=True, text=True,
                          timeout=COMMAND_SECONDS_MAX)
    return told.stdout.splitlines()[0]
