"""A package archive on a disk: what `apt install` of a package asks for on a host, and nothing more.

The host that is tested reaches no mirror. Its own list of installed packages decides what is missing,
and apt itself decides what that is; so a dependency that cannot be had fails here.
"""
import os
import subprocess
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[1] / "kvm-lab"
sys.path.insert(0, str(LAB))

import archives  # noqa: E402

APT_SECONDS_MAX = 1800
READ_SECONDS_MAX = 120


def installed(root_image: Path, to: Path) -> None:
    """The list of packages of a host, out of its image."""
    subprocess.run(["debugfs", "-R", f"dump /var/lib/dpkg/status {to}", str(root_image)], check=True,
                   capture_output=True, timeout=READ_SECONDS_MAX)


def configuration(work: Path, suites: list[str]) -> Path:
    """Settings of an apt that knows this archive and that host, and touches nothing of this machine."""
    for name in ("state/lists/partial", "cache/archives/partial", "parts", "preferences"):
        (work / name).mkdir(parents=True)
    (work / "lab.sources").write_text(archives.of_machine().stanza(suites))
    text = f"""
        Dir::State "{work}/state";
        Dir::State::status "{work}/status";
        Dir::Cache "{work}/cache";
        Dir::Etc::sourcelist "{work}/lab.sources";
        Dir::Etc::sourceparts "{work}/parts";
        Dir::Etc::preferencesparts "{work}/preferences";
        APT::Sandbox::User "root";
        APT::Install-Recommends "false";
        """
    place = work / "apt.conf"
    place.write_text(text + archives.apt_options())
    return place


def apt(configured: Path, *words: str) -> None:
    subprocess.run(["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", *words], check=True, timeout=APT_SECONDS_MAX,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   env={**os.environ, "APT_CONFIG": str(configured), "DEBIAN_FRONTEND": "noninteractive"})


def make(work: Path, root_image: Path, suite: str, package: Path) -> Path:
    """The archive that the package needs on this host, with an index."""
    work.mkdir()
    installed(root_image, work / "status")
    newer = [f"{suite}-backports"] if suite == "bookworm" else []
    configured = configuration(work, [suite, *newer])
    apt(configured, "update")
    # As a reader of docs/install.md does it: the engine of Debian 12 is too old.
    chosen = ["-t", newer[0]] if newer else []
    apt(configured, "install", "-y", "--download-only", *chosen, str(package.resolve()))
    place = work / "cache/archives"
    index = subprocess.run(["dpkg-scanpackages", "--multiversion", "."], cwd=place, check=True,
                           capture_output=True, timeout=READ_SECONDS_MAX)
    (place / "Packages").write_bytes(index.stdout)
    return place
