"""What the server tells, as plain values.

Fields that a newer server adds are kept out rather than refused, so an old client goes on working.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ._for_model import (
    MODEL_BYTES,
    NOTHING,
    changed,
    hinted,
    left_out,
    named,
    seconds,
    shaped,
    stream,
)
from ._options import NetworkMode, OnTimeout, PromiseClass, RunMode, Status, StreamName
from .errors import CommandFailed, ProtocolError

T = TypeVar("T")


def from_wire(kind: type[T], data: Mapping[str, Any]) -> T:
    """A dataclass from the fields of the same names; absent ones keep their defaults. A name that
    Python keeps for itself has an underscore behind it."""
    known = {one.name.rstrip("_"): one.name for one in fields(kind)}  # type: ignore[arg-type]
    given = {known[name]: value for name, value in data.items() if name in known}
    try:
        return kind(**given)
    except TypeError:
        raise ProtocolError(f"the response is not a {kind.__name__}") from None


@dataclass(frozen=True)
class ExecResult:
    """How a command ended and what it said.

    ``exit_code`` is always a number, 128 + n for signal n; ``reason`` tells ``exited``,
    ``signaled``, ``out_of_memory``, ``limit_exceeded`` and ``killed`` apart. ``truncated`` says
    that there was more output than is given here.
    """

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int = 0
    reason: str = "exited"
    signal: int | None = None
    truncated: bool = False
    hint: str | None = None
    exec_id: str = ""
    limits_hit: list[str] = field(default_factory=list[str])
    omitted: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    changed_files: list[str] | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def check(self) -> ExecResult:
        """Raises ``CommandFailed`` unless the status is 0."""
        if self.exit_code != 0:
            raise CommandFailed(self)
        return self

    def for_model(self, max_bytes: int = MODEL_BYTES) -> str:
        """Everything as one text: what Dayfly says of it first, then what was printed.

        Of longer output than ``max_bytes`` the head and the tail are given, and a line before all
        output says how much is left out.
        """
        sections = [stream("stdout", self.stdout), stream("stderr", self.stderr)]
        is_silent = not any(one.text for one in sections)
        said = [
            self._end(),
            *changed(self.changed_files),
            *hinted(self.hint, is_silent=is_silent),
            *left_out(self.omitted, is_truncated=self.truncated),
        ]
        return shaped(said, sections, NOTHING, max_bytes)

    def _end(self) -> str:
        """How it ended, in one line."""
        duration = seconds(self.duration_ms)
        if self.reason in ("timeout", "timed_out"):
            return f"timeout after {duration}, the command was ended (exit code {self.exit_code})"
        text = f"exit code {self.exit_code}, {duration}"
        if self.reason == "signaled" and self.signal is not None:
            return f"{text}, ended by signal {self.signal}"
        if self.reason == "limit_exceeded":
            return f"{text}, limit exceeded: {', '.join(map(named, self.limits_hit))}"
        if self.reason == "exited":
            return text
        return f"{text}, {named(self.reason).replace('_', ' ')}"

    def __str__(self) -> str:
        """What a person would have seen, with a failure's status at the end."""
        text = self.stdout
        if self.stderr:
            text += self.stderr if text.endswith("\n") or not text else f"\n{self.stderr}"
        if self.exit_code != 0:
            text = text.rstrip("\n") + f"\n[exit {self.exit_code}]"
        return text.strip("\n")


@dataclass(frozen=True)
class SandboxInfo:
    """One sandbox as it was when the server was asked."""

    id: str
    template: str
    status: Status
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    persistent: bool = False
    created_at: str = ""
    expires_at: str | None = None
    ttl_seconds: int | None = None
    idle_seconds: int | None = None
    on_timeout: OnTimeout = "delete"
    cpu: int = 0
    cpu_limit: float | None = None
    memory_mb: int = 0
    disk_gb: float = 0.0
    boot_ms: int | None = None
    boot_mode: str = ""
    isolation: str = ""
    network_mode: NetworkMode = "deny"
    from_snapshot: str | None = None
    reason: str | None = None
    volumes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    name: str | None = None
    env_names: list[str] = field(default_factory=list[str])
    variant: dict[str, Any] | None = None
    class_: PromiseClass = "reserved"
    sleep_reason: str | None = None


@dataclass(frozen=True)
class Lifecycle:
    """How long a sandbox lives. ``expires_at`` is the server's word."""

    ttl_seconds: int | None = None
    persistent: bool = False
    idle_seconds: int | None = None
    on_timeout: OnTimeout = "delete"
    expires_at: str | None = None
    idle_for_seconds: int = 0


@dataclass(frozen=True)
class FileLink:
    """An address of one file that works without a key, by ``method``: ``GET``, or ``PUT`` with the
    content as the body. ``id`` is the prefix of its own key, by which ``dayfly token rm`` ends it.
    """

    url: str = field(repr=False)
    method: str
    expires_at: str
    id: str


@dataclass(frozen=True)
class FileEntry:
    """One file, directory or link. ``mode`` is in octal digits, ``mtime`` in Unix seconds."""

    name: str
    path: str
    size: int
    is_dir: bool
    is_symlink: bool = False
    mode: str = ""
    mtime: int = 0
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class FileChange:
    """One change of a watched directory.

    ``kind`` is ``created``, ``modified``, ``removed`` or ``moved`` (then ``moved_from`` is set when
    both ends are watched), or ``overflow``: some changes were lost, look for yourself.
    """

    kind: str
    path: str = ""
    is_dir: bool = False
    moved_from: str | None = None


@dataclass(frozen=True)
class ChangedFile:
    """What differs on the sandbox's disk: ``added``, ``modified`` or ``removed``."""

    kind: str
    path: str
    is_dir: bool = False
    size: int = 0
    mtime: int = 0


@dataclass(frozen=True)
class ProcessInfo:
    """One command of a sandbox, running or ended."""

    exec_id: str
    state: str
    pid: int = 0
    title: str = ""
    user: str = ""
    started_at: str = ""
    duration_ms: int = 0
    exit_code: int | None = None
    reason: str | None = None
    signal: int | None = None
    takes_stdin: bool = False
    stdin_bytes: int = 0
    terminal: bool = False
    stdout: dict[str, int] = field(default_factory=dict[str, int])
    stderr: dict[str, int] = field(default_factory=dict[str, int])
    limits_hit: list[str] = field(default_factory=list[str])

    @property
    def is_running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True)
class Output:
    """What is kept of a command's output."""

    stdout: str
    stderr: str

    def __str__(self) -> str:
        return self.stdout + self.stderr


@dataclass(frozen=True)
class OutputChunk:
    """A piece of output as it came; as text it is the piece itself."""

    stream: StreamName
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class VolumeMount:
    """A volume in a sandbox; see ``Volume.mount``."""

    name: str
    path: str | None = None
    read_only: bool = False


@dataclass(frozen=True)
class VolumeInfo:
    """A volume as it was when the server was asked, and which sandboxes have it."""

    name: str
    size_mb: int
    created_at: str = ""
    used_bytes: int = 0
    writer: str | None = None
    readers: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class SnapshotInfo:
    """A snapshot as it was when the server was asked. ``capture`` says what it cost."""

    id: str
    sandbox_id: str
    template: str
    name: str | None = None
    created_at: str = ""
    expires_at: str | None = None
    size_bytes: int = 0
    capture: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class TemplateInfo:
    """What can be created. ``run`` says what ``Sandbox.run`` means in it."""

    name: str
    state: str
    description: str = ""
    percent: int = 0
    run: RunMode = "shell"
    contexts: list[str] = field(default_factory=list[str])
    cpu: int = 0
    memory_mb: int = 0
    disk_mb: int = 0
    size_bytes: int = 0
    baked_at: str | None = None
    detail: str | None = None
    alias_of: str | None = None
    is_global: bool = True
    usable: bool = False


@dataclass(frozen=True)
class Port:
    """Something in the sandbox that listens."""

    port: int
    address: str = ""
    url: str = ""
    path_url: str = ""


@dataclass(frozen=True)
class PortLink:
    """A way in for those who have no key. ``token`` is shown once, when the link is made."""

    id: str
    port: int
    url: str
    path_url: str
    public: bool = False
    created_at: str = ""
    expires_at: str = ""
    token: str | None = field(default=None, repr=False)
    made_by: str | None = None


@dataclass(frozen=True)
class Me:
    """Whose key is used."""

    project: str
    key_prefix: str = ""


@dataclass(frozen=True)
class ContextInfo:
    """An interpreter that keeps its state. ``state`` is ``idle``, ``busy`` or ``dead``."""

    id: str
    language: str
    state: str = ""
    execution_count: int = 0
    created_at: str = ""


@dataclass(frozen=True)
class Promoted:
    """Response of a promote: who was kept, who was deleted, and who could not be."""

    winner: str
    tree_id: str
    deleted: list[str] = field(default_factory=list[str])
    failures: dict[str, str] = field(default_factory=dict[str, str])
