"""The sandbox environment ``dayfly`` of Inspect (``inspect-ai``): ``Task(..., sandbox="dayfly")``.

Each sample has a sandbox of its own, which is deleted with the sample; its TTL ends it when the
process is killed. ``sandbox=("dayfly", "python-data")`` names a template, and with options::

    from dayfly.adapters.inspect import spec

    Task(..., sandbox=spec("python-data", egress_allowlist=["pypi.org"], ttl_seconds=7200))

Installing the package is enough for Inspect to find it. It works with asyncio, Inspect's default.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from .._async_sandbox import AsyncSandbox
from ..errors import GuestUnavailable, InvalidRequest, NotFound, ServerUnreachable, WrongState
from ..models import ExecResult
from ._framework import framework
from ._inspect_files import read_at_most, write_in_place
from ._long_commands import run_command

_util = framework("inspect", "inspect_ai.util")
_pydantic = framework("inspect", "pydantic")

# By a name of its own: mypy takes no attribute of `Any` as a base.
_BaseModel: Any = _pydantic.BaseModel
_SandboxEnvironment: Any = _util.SandboxEnvironment

__all__ = ["spec"]

NAME = "dayfly"
WORKSPACE = "/workspace"
TTL_SECONDS = 4 * 3600
# By which `inspect sandbox cleanup dayfly` finds what was left.
LABEL = "inspect-task"
EXIT_NOT_EXECUTABLE = 126


def spec(
    template: str = "base",
    *,
    ttl_seconds: int = TTL_SECONDS,
    egress_allowlist: Sequence[str] = (),
    cpu: float | None = None,
    memory_mb: int | None = None,
    disk_gb: float | None = None,
) -> Any:
    """A ``SandboxEnvironmentSpec``; the arguments are those of ``Sandbox``."""
    options = _Options(
        template=template,
        ttl_seconds=ttl_seconds,
        egress_allowlist=tuple(egress_allowlist),
        cpu=cpu,
        memory_mb=memory_mb,
        disk_gb=disk_gb,
    )
    return _util.SandboxEnvironmentSpec(NAME, options)


class _Options(_BaseModel):
    """What Inspect stores of a sandbox in its log, and reads again."""

    model_config = _pydantic.ConfigDict(extra="forbid", frozen=True)

    template: str = "base"
    ttl_seconds: int = TTL_SECONDS
    egress_allowlist: tuple[str, ...] = ()
    cpu: float | None = None
    memory_mb: int | None = None
    disk_gb: float | None = None


@_util.sandboxenv(name=NAME)
class _Environment(_SandboxEnvironment):
    """One sandbox of one sample."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        _SandboxEnvironment.__init__(self)
        self._sandbox = sandbox

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> Any:
        return _Options(**config)

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: dict[str, str]
    ) -> dict[str, Any]:
        options = config if isinstance(config, _Options) else _Options(template=config or "base")
        sandbox = await AsyncSandbox.create(
            options.template,
            ttl_seconds=options.ttl_seconds,
            egress_allowlist=options.egress_allowlist or None,
            cpu=options.cpu,
            memory_mb=options.memory_mb,
            disk_gb=options.disk_gb,
            metadata={LABEL: task_name[:200]},
        )
        return {"default": cls(sandbox)}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool
    ) -> None:
        for environment in environments.values():
            await environment.as_type(cls)._sandbox.delete()

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        if id is not None:
            await (await AsyncSandbox.connect(id)).delete()
            return
        async for sandbox in AsyncSandbox.list():
            if LABEL in (await sandbox.info()).metadata:
                await sandbox.delete()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> Any:
        """Runs a command. Both streams are given as a whole, or ``OutputLimitExceededError``."""
        options = {
            "cwd": posixpath.join(WORKSPACE, cwd or ""),
            "env": env,
            "user": user,
            "timeout_seconds": timeout,
        }
        try:
            result = await run_command(self._sandbox, cmd, input, options)
        except InvalidRequest:
            if user is None or await self._has(user):
                raise
            return _util.ExecResult(False, 1, "", f"no such user: {user}\n")
        except (NotFound, GuestUnavailable, WrongState, ServerUnreachable) as error:
            raise _util.SandboxUnavailableError(str(error)) from error
        if result.exit_code == EXIT_NOT_EXECUTABLE and "Permission denied" in result.stderr:
            raise PermissionError(result.stderr.strip())
        stdout, stderr = await self._whole(result)
        return _util.ExecResult(result.exit_code == 0, result.exit_code, stdout, stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        await write_in_place(self._sandbox, file, contents)

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        limits = _util.SandboxEnvironmentLimits
        content = await read_at_most(self._sandbox, file, limits.MAX_READ_FILE_SIZE)
        if content is None:
            raise _util.OutputLimitExceededError(limits.MAX_READ_FILE_SIZE_STR, None)
        return content.decode("utf-8") if text else content

    async def connection(self, *, user: str | None = None) -> Any:
        as_user = f" --user {user}" if user else ""
        command = f"dayfly shell{as_user} {self._sandbox.id}"
        return _util.SandboxConnection(type=NAME, command=command)

    async def _has(self, user: str) -> bool:
        """Whether there is such a user; the refusal of a command does not say."""
        return (await self._sandbox.exec(["/usr/bin/id", "--", user])).ok

    async def _whole(self, result: ExecResult) -> tuple[str, str]:
        """Both streams; a result has only the ends of a very long one."""
        limits = _util.SandboxEnvironmentLimits
        limit: int = limits.MAX_EXEC_OUTPUT_SIZE
        streams = (result.stdout, result.stderr)
        if max(result.stdout_bytes, result.stderr_bytes) > limit:
            raise _util.OutputLimitExceededError(
                limits.MAX_EXEC_OUTPUT_SIZE_STR, result.stdout[:limit]
            )
        if result.truncated:
            output = await (await self._sandbox.process(result.exec_id)).output()
            streams = (output.stdout, output.stderr)
        return streams
