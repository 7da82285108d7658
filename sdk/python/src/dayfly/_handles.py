"""What the blocking and the asyncio handles have in common: the data, and nothing that waits."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ._contexts import KnownContexts
from ._options import Status
from ._settings import Settings
from ._tool_result import ToolTarget
from ._wire import path_of
from .models import (
    ContextInfo,
    ProcessInfo,
    SandboxInfo,
    SnapshotInfo,
    VolumeInfo,
    VolumeMount,
)

SessionT = TypeVar("SessionT")
HandleT = TypeVar("HandleT", bound="SandboxHandle[Any]")


class SandboxHandle(Generic[SessionT]):
    """A sandbox by its id, with what was last heard of it."""

    def __init__(self, session: SessionT, settings: Settings, info: SandboxInfo) -> None:
        self._session = session
        self._settings = settings
        self._info = info
        self._contexts = KnownContexts()
        self._is_deleted = False
        self._is_detached = False

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def name(self) -> str | None:
        """What its project calls it; it stands for the id."""
        return self._info.name

    @property
    def template(self) -> str:
        return self._info.template

    @property
    def status(self) -> Status:
        """``running``, ``paused``, ``hibernated``, ... as it was known last: see ``refresh``."""
        return self._info.status

    @property
    def metadata(self) -> dict[str, str]:
        return self._info.metadata

    @property
    def persistent(self) -> bool:
        return self._info.persistent

    @property
    def is_held(self) -> bool:
        """Whether the end of ``with`` deletes it."""
        return not (self._is_deleted or self._is_detached or self.persistent)

    def detach(self: HandleT) -> HandleT:
        """Leaves it alone at the end of ``with``. Gives itself: ``connect(id).detach()``."""
        self._is_detached = True
        return self

    def port_url(self, port: int, path: str = "/") -> str:
        """The address of a service for programs that send the API key.

        For those who have no key, see ``port_link``.
        """
        base = path_of("sandboxes", self.id, "ports", str(port), "http")
        return f"{self._settings.url}{base}/{path.removeprefix('/')}"

    def _tool_target(self) -> ToolTarget:
        return ToolTarget(self.id, self._contexts, self._info.memory_mb)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.template}>"


class ProcessHandle(Generic[SessionT]):
    """A command by its id."""

    def __init__(self, session: SessionT, sandbox: str, info: ProcessInfo) -> None:
        self._session = session
        self._sandbox = sandbox
        self._info = info
        self._stdin_offset = info.stdin_bytes

    @property
    def exec_id(self) -> str:
        return self._info.exec_id

    @property
    def pid(self) -> int:
        return self._info.pid

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.exec_id}>"


class ContextHandle(Generic[SessionT]):
    """A context by its id."""

    def __init__(
        self, session: SessionT, sandbox: str, info: ContextInfo, known: KnownContexts
    ) -> None:
        self._session = session
        self._sandbox = sandbox
        self._info = info
        self._known = known

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def language(self) -> str:
        return self._info.language

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.language}>"


class SnapshotHandle(Generic[SessionT]):
    """A snapshot, with what was last heard of it."""

    def __init__(self, session: SessionT, settings: Settings, info: SnapshotInfo) -> None:
        self._session = session
        self._settings = settings
        self.info: SnapshotInfo = info

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def sandbox_id(self) -> str:
        return self.info.sandbox_id

    @property
    def template(self) -> str:
        return self.info.template

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class VolumeHandle(Generic[SessionT]):
    """A volume, with what was last heard of it."""

    def __init__(self, session: SessionT, info: VolumeInfo) -> None:
        self._session = session
        self.info: VolumeInfo = info

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def size_gb(self) -> float:
        return self.info.size_mb / 1024

    def mount(self, path: str | None = None, read_only: bool = False) -> VolumeMount:
        """For ``volumes=[...]`` of a create. Default path: ``/volumes/NAME``.

        One sandbox writes, or many read.
        """
        return VolumeMount(self.name, path, read_only)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def snapshot_id(snapshot: SnapshotHandle[SessionT] | str) -> str:
    return snapshot if isinstance(snapshot, str) else snapshot.id


def context_id(context: ContextHandle[SessionT] | str) -> str:
    return context if isinstance(context, str) else context.id


def session_in(handle: SandboxHandle[SessionT]) -> SessionT:
    """What a handle does its calls by."""
    return handle._session  # pyright: ignore[reportPrivateUsage]


def info_in(handle: SandboxHandle[Any]) -> SandboxInfo:
    """What a handle last heard of its sandbox."""
    return handle._info  # pyright: ignore[reportPrivateUsage]
