#!/usr/bin/env python3
"""Makes a directory with another Debian suite's engine and what a daemon runs beside it.

    tests/kvm-lab/plain_root.py SUITE

Packages are only unpacked: a daemon that finds the `usr` of this root in the place of the host's runs the
suite's programs with the suite's libraries. It is kept outside the clone; its path is printed.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import archives

PACKAGES = ("qemu-system-x86", "qemu-utils", "nftables", "iproute2", "e2fsprogs", "erofs-utils", "util-linux",
            "mount", "coreutils", "dash", "bash", "libc-bin")
BUILD_SECONDS_MAX = 20 * 60


def make(suite: str, root: Path, work: Path) -> None:
    (work / "sources").write_text(archives.of_machine().stanza([suite]))
    (work / "options").write_text(archives.apt_options())
    command = ["mmdebstrap", "--mode=root", "--format=directory", "--variant=extract", f"--aptopt={work / 'options'}",
               '--aptopt=APT::Install-Recommends "false"', f"--include={','.join(PACKAGES)}",
               suite, str(root), str(work / "sources")]
    # In namespaces of its own: what is killed takes its mounts and children along.
    alone = ["unshare", "--mount", "--propagation", "private", "--pid", "--mount-proc", "--fork", "--kill-child", "--"]
    subprocess.run([*alone, *command], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr,
                   timeout=BUILD_SECONDS_MAX)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    suite = sys.argv[1]
    cache = Path(os.environ.get("DAYFLY_CI_CACHE", "/var/cache/dayfly-ci")) / "roots"
    root = cache / suite
    if not root.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".root-", dir=cache) as work:
            made = Path(work) / "root"
            make(suite, made, Path(work))
            made.rename(root)
    print(root)


main()
