"""Makes the root of a Debian host that boots under QEMU, and keeps it outside the clone.

A host is an image of a root file system, a kernel and an initial ram disk, all read-only. What is run
in it comes on a second disk (payload.py): its service mounts that disk and runs `/lab/run`.
"""
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import archives

HERE = Path(__file__).resolve().parent
# What every host needs to start, and to run the lab's service.
ALWAYS = ("systemd-sysv", "udev", "kmod", "python3", "dbus", "iproute2")
BUILD_SECONDS_MAX = 45 * 60
IMAGE_SECONDS_MAX = 600
# Grows only as it is written to.
ROOT_BYTES = 8 << 30
# A change of how roots are made, that their description does not show.
BUILDER_VERSION = 1


@dataclass(frozen=True)
class HostSpec:
    """A host to make."""

    suite: str
    packages: tuple[str, ...]
    # Patterns of package names that come from the backports suite.
    from_backports: tuple[str, ...] = ()
    kernel: str = "linux-image-cloud-amd64"

    def key(self) -> str:
        service = [path.read_text() for path in sorted((HERE / "guest").iterdir())]
        text = json.dumps([BUILDER_VERSION, asdict(self), ALWAYS, service])
        return f"{self.suite}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


@dataclass(frozen=True)
class Host:
    """A host that can be booted. Nobody writes to its files."""

    root: Path
    kernel: Path
    initrd: Path


def cache_directory() -> Path:
    return Path(os.environ.get("DAYFLY_CI_CACHE", "/var/cache/dayfly-ci")) / "hosts"


def ensure_host(spec: HostSpec) -> Host:
    """The host from the cache, made first when it is not there."""
    directory = cache_directory() / spec.key()
    if not directory.exists():
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".host-", dir=cache_directory()) as work:
            made = make(spec, Path(work))
            try:
                made.rename(directory)
            except OSError:
                # Somebody else was quicker, with the same.
                if not directory.exists():
                    raise
    return Host(directory / "root.img", directory / "vmlinuz", directory / "initrd.img")


def make(spec: HostSpec, work: Path) -> Path:
    root, made = work / "root", work / "made"
    made.mkdir()
    bootstrap(spec, work, root)
    install_service(root)
    for name in ("vmlinuz", "initrd.img"):
        shutil.copyfile((root / name).resolve(), made / name)
    file_system(root, made / "root.img", ROOT_BYTES, "root")
    return made


def bootstrap(spec: HostSpec, work: Path, root: Path) -> None:
    suites = [spec.suite] + ([f"{spec.suite}-backports"] if spec.from_backports else [])
    (work / "lab.sources").write_text(archives.of_machine().stanza(suites))
    (work / "apt-options").write_text(archives.apt_options())
    pin = f"Package: {' '.join(spec.from_backports)}\nPin: release n={spec.suite}-backports\nPin-Priority: 900\n"
    (work / "pin").write_text(pin if spec.from_backports else "")
    packages = ",".join([*ALWAYS, spec.kernel, *spec.packages])
    # In namespaces of its own: what is killed takes its mounts and children along.
    alone = ["unshare", "--mount", "--propagation", "private", "--pid", "--mount-proc", "--fork", "--kill-child", "--"]
    command = ["mmdebstrap", "--mode=root", "--format=directory", "--variant=important",
               f"--aptopt={work / 'apt-options'}", '--aptopt=APT::Install-Recommends "false"', "--dpkgopt=force-unsafe-io",
               f"--setup-hook=mkdir -p \"$1/etc/apt/preferences.d\" && cp {work / 'pin'} \"$1/etc/apt/preferences.d/lab\"",
               f"--include={packages}", spec.suite, str(root), str(work / "lab.sources")]
    subprocess.run([*alone, *command], check=True, stdin=subprocess.DEVNULL, timeout=BUILD_SECONDS_MAX)
    # The archive is this machine's affair.
    for left in root.glob("etc/apt/sources.list.d/*"):
        left.unlink()


def install_service(root: Path) -> None:
    """Has the root run what the second disk brings, once it is up."""
    shutil.copyfile(HERE / "guest/lab.service", root / "etc/systemd/system/lab.service")
    program = root / "usr/local/sbin/lab-start"
    shutil.copyfile(HERE / "guest/lab-start", program)
    program.chmod(0o755)
    wanted = root / "etc/systemd/system/multi-user.target.wants"
    wanted.mkdir(exist_ok=True)
    (wanted / "lab.service").symlink_to("/etc/systemd/system/lab.service")
    for timer in ("apt-daily", "apt-daily-upgrade", "e2scrub_all", "fstrim", "dpkg-db-backup"):
        (root / f"etc/systemd/system/{timer}.timer").symlink_to("/dev/null")
    (root / "etc/hostname").write_text("lab\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost lab\n")


def file_system(directory: Path, image: Path, size_bytes: int, label: str) -> None:
    """An ext4 image, sparse, with the contents of a directory."""
    with open(image, "xb") as file:
        file.truncate(size_bytes)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", label, "-m", "0", "-d", str(directory), str(image)],
                   check=True, stdin=subprocess.DEVNULL, timeout=IMAGE_SECONDS_MAX)
