"""A sandbox as the backend of a deep agent (LangChain's ``deepagents``).

::

    from dayfly import Sandbox
    from dayfly.adapters.deepagents import backend
    from deepagents import create_deep_agent

    with Sandbox("code-interpreter", ttl_seconds=3600) as sandbox:
        agent = create_deep_agent(model="...", backend=backend(sandbox))
        agent.invoke({"messages": [{"role": "user", "content": "..."}]})

Its files and its ``execute`` tool are those of the sandbox. Deleting the sandbox is its owner's.
"""

# mypy: allow-subclassing-any

from __future__ import annotations

from typing import Any

from ..errors import ApiError, Forbidden, InvalidRequest, NotFound
from ..sandbox import Sandbox
from ._framework import framework, run_merged

_protocol = framework("deepagents", "deepagents.backends.protocol")
_sandbox = framework("deepagents", "deepagents.backends.sandbox")

# By a name of its own: mypy takes no attribute of `Any` as a base.
_BaseSandbox: Any = _sandbox.BaseSandbox

__all__ = ["backend"]

# Of a command for which the agent names no timeout.
TIMEOUT_SECONDS = 1800


def backend(sandbox: Sandbox, *, timeout_seconds: int = TIMEOUT_SECONDS) -> Any:
    """A sandbox as a ``BaseSandbox`` of ``deepagents``.

    ``timeout_seconds`` ends a command for which the agent named no timeout. Commands start in
    ``/workspace``; paths of files are absolute.
    """
    return _Backend(sandbox, timeout_seconds)


class _Backend(_BaseSandbox):
    # Templates have bash and coreutils, which is all that it assumes.
    enable_capture_offload = True

    def __init__(self, sandbox: Sandbox, timeout_seconds: int) -> None:
        self._sandbox = sandbox
        self._timeout_seconds = timeout_seconds

    @property
    def id(self) -> str:
        """The id of the sandbox."""
        return self._sandbox.id

    def execute(self, command: str, *, timeout: int | None = None) -> Any:
        """Runs a command in the shell. What Dayfly says of a timeout is before the output."""
        limit = self._timeout_seconds if timeout is None else timeout
        # 0 is the framework's word for: no limit.
        result = run_merged(self._sandbox, command, timeout_seconds=limit or None)
        output = result.output
        if result.is_timed_out:
            output = f"timeout after {limit} s, the command was ended; output until then:\n{output}"
        return _protocol.ExecuteResponse(
            output=output, exit_code=result.exit_code, truncated=result.truncated
        )

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        """Writes files, each by itself: one that fails has an error, the others are written."""
        return [
            _protocol.FileUploadResponse(path=path, error=self._upload(path, data))
            for path, data in files
        ]

    def download_files(self, paths: list[str]) -> list[Any]:
        """Reads files, each by itself: one that fails has an error and no content."""
        return [self._download(path) for path in paths]

    def _upload(self, path: str, data: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        try:
            self._sandbox.files.write(path, data)
        except ApiError as error:
            return _word(error)
        return None

    def _download(self, path: str) -> Any:
        if not path.startswith("/"):
            return _protocol.FileDownloadResponse(path=path, content=None, error="invalid_path")
        try:
            content = self._sandbox.files.read(path)
        except ApiError as error:
            return _protocol.FileDownloadResponse(path=path, content=None, error=_word(error))
        return _protocol.FileDownloadResponse(path=path, content=content, error=None)


def _word(error: ApiError) -> str:
    """The framework's word for a refusal, or the refusal itself."""
    if isinstance(error, NotFound):
        return "file_not_found"
    if isinstance(error, Forbidden):
        return "permission_denied"
    if isinstance(error, InvalidRequest):
        return "is_directory" if "is a directory" in error.message else "invalid_path"
    return str(error)
