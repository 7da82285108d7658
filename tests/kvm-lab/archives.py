"""The package archives of this machine, for a root of any Debian suite.

Whoever builds here already reaches a mirror and trusts its keys. Its entry is read and its suite
replaced; no archive is named in the tree.
"""
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

APT = Path("/etc/apt")
QUESTION_SECONDS_MAX = 30


@dataclass(frozen=True)
class Archive:
    """Where packages come from, and whose signature they carry."""

    uri: str
    signed_by: str | None

    def stanza(self, suites: list[str]) -> str:
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {' '.join(suites)}", "Components: main"]
        if self.signed_by:
            lines.append(f"Signed-By: {self.signed_by}")
        return "\n".join(lines) + "\n"


def stanzas(text: str) -> list[dict[str, str]]:
    """The entries of a `.sources` file. Continuation lines are of keys that nobody asks for here."""
    found = []
    for block in re.split(r"\n\s*\n", text):
        fields = dict(line.split(":", 1) for line in block.splitlines() if re.match(r"[A-Za-z-]+:", line))
        found.append({key.lower(): value.strip() for key, value in fields.items()})
    return found


def of_stanza(fields: dict[str, str], suite: str) -> Archive | None:
    fits = (suite in fields.get("suites", "").split() and "main" in fields.get("components", "").split()
            and "deb" in fields.get("types", "").split())
    return Archive(fields["uris"].split()[0], fields.get("signed-by")) if fits else None


def of_line(line: str, suite: str) -> Archive | None:
    """`deb [options] uri suite component...`"""
    match = re.match(r"deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.*)", line.strip())
    if not match or match[3] != suite or "main" not in match[4].split():
        return None
    key = re.search(r"signed-by=(\S+)", match[1] or "")
    return Archive(match[2], key[1] if key else None)


def own_suite() -> str:
    match = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M)
    if not match:
        raise LookupError("this system does not say which release it is")
    return match[1]


def of_machine(directory: Path = APT) -> Archive:
    """The archive that this machine itself is made of."""
    suite = own_suite()
    for path in sorted([directory / "sources.list", *directory.glob("sources.list.d/*")]):
        if not path.is_file() or path.suffix not in (".list", ".sources"):
            continue
        text = path.read_text()
        if path.suffix == ".sources":
            entries = [of_stanza(fields, suite) for fields in stanzas(text)]
        else:
            entries = [of_line(line, suite) for line in text.splitlines()]
        for entry in entries:
            if entry:
                return entry
    raise LookupError(f"no entry under {directory} has the suite {suite}; the lab is built from the machine's own")


def apt_options() -> str:
    """How this machine's package manager reaches its archives: proxies and the like."""
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True,
                          timeout=QUESTION_SECONDS_MAX)
    wanted = ("Acquire::http::", "Acquire::https::", "Acquire::Check-Valid-Until")
    return "".join(line + "\n" for line in dump.stdout.splitlines() if line.startswith(wanted))
