"""Files as Inspect wants them: with Python's own exceptions."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from .._async_sandbox import AsyncSandbox
from ..errors import Forbidden, InvalidRequest, NotFound


async def read_at_most(sandbox: AsyncSandbox, path: str, limit: int) -> bytes | None:
    """The content of a file, or nothing when there is more of it than the limit."""
    with _as_os_errors(path):
        try:
            content = await sandbox.files.read(path, length=limit + 1)
        except InvalidRequest as error:
            # An empty file has no first byte.
            if error.code != "range_not_satisfiable":
                raise
            content = b""
    return content if len(content) <= limit else None


async def write_in_place(sandbox: AsyncSandbox, path: str, content: str | bytes) -> None:
    """Writes a file if its user may write it.

    A write of Dayfly replaces the file, for which the directory must be writable and the file need
    not be. Adding nothing to it asks for the permission that Inspect means.
    """
    with _as_os_errors(path):
        await sandbox.files.write(path, b"", append=True)
        await sandbox.files.write(path, content)


@contextmanager
def _as_os_errors(path: str) -> Generator[None]:
    try:
        yield
    except NotFound as error:
        raise FileNotFoundError(errno.ENOENT, error.message, path) from error
    except Forbidden as error:
        raise PermissionError(errno.EACCES, error.message, path) from error
    except InvalidRequest as error:
        if "is a directory" in error.message:
            raise IsADirectoryError(errno.EISDIR, error.message, path) from error
        if "not a directory" in error.message:
            raise NotADirectoryError(errno.ENOTDIR, error.message, path) from error
        raise
