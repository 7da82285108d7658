"""Sandboxes for the OpenAI Agents SDK (``openai-agents``): a client for its ``SandboxAgent``.

::

    from agents import RunConfig, Runner
    from agents.sandbox import SandboxAgent, SandboxRunConfig
    from dayfly.adapters.openai_agents import sandbox_client

    agent = SandboxAgent(name="worker", model="...")
    config = RunConfig(sandbox=SandboxRunConfig(client=sandbox_client("code-interpreter")))
    result = await Runner.run(agent, "...", run_config=config)

Each session has a sandbox of its own, which is deleted with the session; its TTL ends it when the
process is killed. Not supported: ports of the sandbox, and terminals (commands get none).
"""

# mypy: allow-subclassing-any

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from .._async_sandbox import AsyncSandbox
from ..errors import DayflyError, NotFound, SandboxTimeout
from ._framework import framework

_session = framework("openai-agents", "agents.sandbox.session")
_base = framework("openai-agents", "agents.sandbox.session.base_sandbox_session")
_helpers = framework("openai-agents", "agents.sandbox.session.runtime_helpers")
_tar = framework("openai-agents", "agents.sandbox.session.tar_workspace")
_tar_utils = framework("openai-agents", "agents.sandbox.util.tar_utils")
_errors = framework("openai-agents", "agents.sandbox.errors")
_sandbox = framework("openai-agents", "agents.sandbox")

# By a name of its own: mypy takes no attribute of `Any` as a base.
_SandboxSessionState: Any = _session.SandboxSessionState
_BaseSandboxSession: Any = _base.BaseSandboxSession
_BaseSandboxClient: Any = _session.BaseSandboxClient

__all__ = ["sandbox_client"]

NAME: Literal["dayfly"] = "dayfly"
# What the framework puts before a command of another user.
AS_USER = ("sudo", "-u", "--")


def sandbox_client(
    template: str = "base",
    *,
    ttl_seconds: int = 3600,
    egress_allowlist: Sequence[str] = (),
    cpu: float | None = None,
    memory_mb: int | None = None,
    disk_gb: float | None = None,
) -> Any:
    """A ``BaseSandboxClient``; the arguments are those of ``Sandbox``, for each that it makes."""
    options: dict[str, Any] = {
        "template": template,
        "ttl_seconds": ttl_seconds,
        "egress_allowlist": list(egress_allowlist) or None,
        "cpu": cpu,
        "memory_mb": memory_mb,
        "disk_gb": disk_gb,
    }
    return _Client(options)


class _State(_SandboxSessionState):
    """What is stored of a session: the sandbox that it had."""

    type: Literal["dayfly"] = NAME
    sandbox_id: str


class _Session(_BaseSandboxSession):
    def __init__(self, state: _State, sandbox: AsyncSandbox) -> None:
        self.state = state
        self._sandbox = sandbox

    async def _prepare_backend_workspace(self) -> None:
        root = self._workspace_root_path().as_posix()
        await self._sandbox.exec(["mkdir", "-p", "--", root], cwd="/", check=True)

    def _runtime_helpers(self) -> tuple[Any, ...]:
        return (_helpers.RESOLVE_WORKSPACE_PATH_HELPER,)

    def _current_runtime_helper_cache_key(self) -> object | None:
        return self._sandbox.id

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        valid: Path = await self._validate_remote_path_access(path, for_write=for_write)
        return valid

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> Any:
        words = [str(word) for word in command]
        user = None
        if len(words) > 4 and (words[0], words[1], words[3]) == AS_USER:
            user, words = words[2], words[4:]
        try:
            result = await self._sandbox.exec(
                words,
                cwd=self.state.manifest.root,
                env=await self.state.manifest.environment.resolve() or None,
                user=user,
                timeout_seconds=timeout,
            )
        except SandboxTimeout as error:
            raise _errors.ExecTimeoutError(
                command=command, timeout_s=timeout, cause=error
            ) from error
        except DayflyError as error:
            raise _errors.ExecTransportError(command=command, cause=error) from error
        return _sandbox.ExecResult(
            stdout=result.stdout.encode(),
            stderr=result.stderr.encode(),
            exit_code=result.exit_code,
        )

    async def read(self, path: Path, *, user: Any = None) -> io.IOBase:
        return io.BytesIO(await self._read(path, None, user))

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        return await self._read(path, max_bytes, None)

    async def _read(self, path: Path, length: int | None, user: Any) -> bytes:
        valid = await self._validate_path_access(path)
        try:
            return await self._sandbox.files.read(valid.as_posix(), length=length, user=_name(user))
        except NotFound as error:
            raise _errors.WorkspaceReadNotFoundError(path=path, cause=error) from error
        except DayflyError as error:
            if error.code == "range_not_satisfiable":
                return b""
            raise _errors.WorkspaceArchiveReadError(path=path, cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: Any = None) -> None:
        valid = await self._validate_path_access(path, for_write=True)
        try:
            await self._sandbox.files.write(
                valid.as_posix(), _payload(path, data), user=_name(user)
            )
        except DayflyError as error:
            raise _errors.WorkspaceArchiveWriteError(path=path, cause=error) from error

    async def running(self) -> bool:
        try:
            return (await self._sandbox.info()).status == "running"
        except DayflyError:
            return False

    async def persist_workspace(self) -> io.IOBase:
        root = self._workspace_root_path()
        skipped = _tar.shell_tar_exclude_args(self._persist_workspace_skip_relpaths())
        archive = f"/tmp/dayfly-workspace-{uuid.uuid4().hex}.tar"
        command = ["tar", "-c", "-f", archive, *skipped, "-C", root.as_posix(), "."]
        try:
            await self._sandbox.exec(command, cwd="/", check=True)
            content = await self._sandbox.files.read(archive)
            await self._sandbox.files.remove(archive)
        except DayflyError as error:
            raise _errors.WorkspaceArchiveReadError(path=root, cause=error) from error
        return io.BytesIO(content)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root = self._workspace_root_path()
        archive = f"/tmp/dayfly-workspace-{uuid.uuid4().hex}.tar"
        content = _payload(root, data)
        try:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as opened:
                _tar_utils.validate_tarfile(opened, allow_external_symlink_targets=False)
            await self._sandbox.files.write(archive, content)
            unpack = ["tar", "-x", "-f", archive, "-C", root.as_posix()]
            await self._sandbox.exec(unpack, cwd="/", check=True)
            await self._sandbox.files.remove(archive)
        except (DayflyError, tarfile.TarError, _tar_utils.UnsafeTarMemberError) as error:
            raise _errors.WorkspaceArchiveWriteError(path=root, cause=error) from error

    async def _shutdown_backend(self) -> None:
        await self._sandbox.delete()


class _Client(_BaseSandboxClient):
    backend_id = NAME
    supports_default_options = True

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    async def create(self, *, snapshot: Any = None, manifest: Any = None, options: Any) -> Any:
        if options is not None:
            raise TypeError("options of a Dayfly sandbox are arguments of sandbox_client()")
        manifest = manifest if manifest is not None else _sandbox.Manifest()
        self._validate_manifest_for_create(manifest)
        session_id = uuid.uuid4()
        stored = _sandbox.resolve_snapshot(snapshot, str(session_id))
        sandbox = await AsyncSandbox.create(**self._options)
        state = _State(
            session_id=session_id, manifest=manifest, snapshot=stored, sandbox_id=sandbox.id
        )
        return self._wrap_session(_Session(state, sandbox))

    async def delete(self, session: Any) -> Any:
        await session._inner.shutdown()
        return session

    async def resume(self, state: Any) -> Any:
        """Goes on with the sandbox of a session, or with a new one that gets its snapshot."""
        if not isinstance(state, _State):
            raise TypeError("this is not the state of a session of Dayfly")
        state.assert_path_grants_rebound()
        try:
            sandbox, is_preserved = await AsyncSandbox.connect(state.sandbox_id), True
        except NotFound:
            sandbox, is_preserved = await AsyncSandbox.create(**self._options), False
            state.sandbox_id = sandbox.id
            state.workspace_root_ready = False
        session = _Session(state, sandbox)
        session._set_start_state_preserved(is_preserved)
        return self._wrap_session(session)

    def deserialize_session_state(self, payload: dict[str, object]) -> Any:
        return self._deserialize_session_state_payload(payload, _State)


def _name(user: Any) -> str | None:
    return user if user is None or isinstance(user, str) else str(user.name)


def _payload(path: Path, data: io.IOBase) -> bytes:
    content: Any = data.read()
    if isinstance(content, str):
        return content.encode()
    if not isinstance(content, bytes | bytearray):
        raise _errors.WorkspaceWriteTypeError(path=path, actual_type=type(content).__name__)
    return bytes(content)
