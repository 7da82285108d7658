"""Everything that can go wrong, as one tree under :class:`DayflyError`.

The class of a refusal is chosen by the server's stable ``code``, never by its text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ._hints import worded


class DayflyError(Exception):
    """Base of all errors of this package. ``str()`` shows the hint and the request id."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status: int = 0,
        hint: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.hint = hint
        self.request_id = request_id

    def __str__(self) -> str:
        text = self.message
        if self.code:
            text += f" [{self.code}]"
        if self.hint:
            text += f"\nhint: {self.hint}"
        if self.request_id:
            text += f"\nrequest: {self.request_id}"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel between processes; keyword arguments would be lost by the default.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[DayflyError], args: tuple[Any, ...], state: dict[str, Any]) -> DayflyError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidSettings(DayflyError):
    """The address, the key or the context file cannot be used. Nothing was sent."""


class ServerUnreachable(DayflyError, ConnectionError):
    """No connection could be made. Nothing was sent."""

    may_pass = True
    """Whether trying again could help."""


class CertificateRefused(ServerUnreachable):
    """The server's certificate is of an authority that is not trusted, or for another name.

    Nothing was sent. ``ca_file=`` or ``SSL_CERT_FILE`` names the authority to trust.
    """

    may_pass = False


class AnswerLost(DayflyError):
    """The request was sent and no response came: whether it was carried out is not known."""


class AnswerTimeout(AnswerLost, TimeoutError):
    """The server did not respond in time."""


class ProtocolError(DayflyError):
    """The response does not come from a Dayfly server."""


class ApiError(DayflyError):
    """A refusal of the server."""

    retry_after: float | None = None
    percent: int | None = None


class InvalidRequest(ApiError):
    """The request does not fit the documented shape."""


class Unauthorized(ApiError):
    """No key, or not a known one."""


class Forbidden(ApiError):
    """The key, or the guest, does not permit it."""


class NotFound(ApiError):
    """No such sandbox, file, snapshot, volume or template in this project."""


class Conflict(ApiError):
    """It does not go together with what is there."""


class WrongState(Conflict):
    """The sandbox is in a state that does not allow it."""


class VolumeBusy(Conflict):
    """A sandbox has the volume in a way that excludes this."""


class AlreadyExists(Conflict):
    """Something else of that name exists."""


class SnapshotUnusable(Conflict):
    """The snapshot is needed, broken, or does not fit this host any more; see ``code``."""


class IdempotencyConflict(Conflict):
    """The idempotency key was used with another request."""


class TooLarge(ApiError):
    """A body, a file or a list is over its limit."""


class TooMany(ApiError):
    """Too many at once."""


class QuotaExceeded(ApiError):
    """The project may not have more of this; waiting does not help."""


class RateLimited(TooMany):
    """The project asks too fast."""


class ServerError(ApiError):
    """The server's own fault; the request id finds it in its log."""


class Unsupported(ApiError):
    """The server, or the template, does not do this."""


class GuestUnavailable(ApiError):
    """The guest stopped responding or is gone."""


class NothingListens(ApiError):
    """Nothing in the sandbox listens on this port."""


class Unavailable(ApiError):
    """Not now."""


class NoCapacity(Unavailable):
    """The host has no room; nothing was created."""


class TemplateBaking(Unavailable):
    """The template is still being baked; nothing was created. ``percent`` says how far it is."""


class TemplateFailed(ApiError):
    """The template could not be baked."""


class NodeUnavailable(Unavailable):
    """The node process cannot be reached just now."""


class StoreUnavailable(Unavailable):
    """The server cannot write its database (``store_unavailable``) or its audit record
    (``audit_unavailable``) just now; nothing was changed."""


class DiskFull(ApiError):
    """The disk of the guest (``disk_full``) or of the host (``storage_full``) is full."""


class SandboxTimeout(ApiError, TimeoutError):
    """A command or code ran past ``timeout_seconds`` and was ended.

    ``stdout`` and ``stderr`` hold what it said until then, as far as it could be read.
    """

    exec_id: str | None = None
    stdout: str = ""
    stderr: str = ""


class CommandFailed(DayflyError):
    """A command with ``check=True`` ended with another status than 0. ``result`` has it all."""

    def __init__(self, result: models.ExecResult) -> None:
        tail = result.stderr.strip()[-500:] or result.stdout.strip()[-500:]
        text = f"the command ended with status {result.exit_code} ({result.reason})"
        super().__init__(f"{text}: {tail}" if tail else text, hint=result.hint)
        self.args: tuple[Any, ...] = (result,)
        self.result = result
        self.exit_code: int = result.exit_code
        self.stdout: str = result.stdout
        self.stderr: str = result.stderr


class ForkFailed(DayflyError):
    """Not every child of a fork could be made. Those that were made are deleted again.

    ``failures`` says why, by the id that a child would have had; ``children`` are the ids of those
    that were deleted. With ``fork(count, partial=True)`` they are kept instead.
    """

    def __init__(self, failures: Mapping[str, str], children: list[str]) -> None:
        first = next(iter(failures.values()), "no reason was given")
        count = len(failures) + len(children)
        super().__init__(
            f"{len(failures)} of {count} children could not be made: {first}",
            hint="partial=True keeps those that can be made",
        )
        self.args: tuple[Any, ...] = (failures, children)
        self.failures: dict[str, str] = dict(failures)
        self.children: list[str] = list(children)


class CodeFailed(DayflyError):
    """Code raised; see ``Execution.raise_for_error``."""

    def __init__(self, name: str, value: str, traceback: str) -> None:
        super().__init__(f"{name}: {value}" if value else name)
        self.args: tuple[Any, ...] = (name, value, traceback)
        self.name = name
        self.value = value
        self.traceback = traceback


class BuildFailed(DayflyError):
    """A template could not be built. ``build`` has what the server says of it.

    When a step failed, ``step`` is its text, ``exit_code`` how it ended, ``lines`` the last that it
    said, and ``sandbox_id`` where that was: ``dayfly template debug`` opens a shell there for some
    minutes. Steps that were done are kept for the next build.
    """

    def __init__(self, build: builds.TemplateBuild, step: Mapping[str, Any] | None = None) -> None:
        told = step or {}
        self.build = build
        self.step: str | None = told.get("text")
        self.exit_code: int | None = told.get("exit_code")
        self.lines: list[str] = list(told.get("tail", []))
        self.sandbox_id: str | None = told.get("sandbox")
        text = build.error or "the template could not be built"
        look = f"to look: dayfly template debug {self.sandbox_id}" if self.sandbox_id else None
        super().__init__("".join([text, *(f"\n  | {line}" for line in self.lines)]), hint=look)
        self.args: tuple[Any, ...] = (build, step)


class ExecInterrupted(DayflyError):
    """The connection to a running command was lost and could not be made again.

    How the command ended is not known; it may still run. ``exec_id`` finds it again:
    ``sandbox.process(error.exec_id).wait()``.
    """

    def __init__(
        self,
        message: str,
        *,
        exec_id: str,
        stdout: str = "",
        stderr: str = "",
        hint: str | None = None,
    ) -> None:
        goes_on = f"the command may go on: sandbox.process({exec_id!r}).wait() tells how it ends"
        super().__init__(message, hint=goes_on if hint is None else hint)
        self.exec_id = exec_id
        self.stdout = stdout
        self.stderr = stderr


CLASS_OF_CODE: dict[str, type[ApiError]] = {
    "invalid_request": InvalidRequest,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "project_suspended": Forbidden,
    "not_found": NotFound,
    "no_such_route": NotFound,
    "method_not_allowed": InvalidRequest,
    "wrong_state": WrongState,
    "volume_busy": VolumeBusy,
    "already_exists": AlreadyExists,
    "snapshot_in_use": SnapshotUnusable,
    "snapshot_corrupt": SnapshotUnusable,
    "snapshot_unfit": SnapshotUnusable,
    "disk_damaged": Conflict,
    "idempotency_conflict": IdempotencyConflict,
    "emulation_not_shared": Conflict,
    "too_large": TooLarge,
    "unsupported_media_type": InvalidRequest,
    "range_not_satisfiable": InvalidRequest,
    "too_many": TooMany,
    "quota_exceeded": QuotaExceeded,
    "rate_limited": RateLimited,
    "internal": ServerError,
    "not_implemented": Unsupported,
    "guest_unavailable": GuestUnavailable,
    "nothing_listens": NothingListens,
    "no_capacity": NoCapacity,
    "template_baking": TemplateBaking,
    "template_failed": TemplateFailed,
    "node_unavailable": NodeUnavailable,
    "store_unavailable": StoreUnavailable,
    "audit_unavailable": StoreUnavailable,
    "timeout": SandboxTimeout,
    "disk_full": DiskFull,
    "storage_full": DiskFull,
}


def error_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error that an answer stands for. Any body will do: a proxy may have written it."""
    try:
        parsed: object = json.loads(body)
    except ValueError:
        parsed = None
    fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    code = fields.get("code")
    if not isinstance(code, str) or "error" not in fields:
        error = ApiError(
            f"HTTP status {status} without an error text",
            status=status,
            hint="is this the address of a Dayfly server?",
        )
    else:
        request_id = fields.get("request_id") or headers.get("x-request-id")
        error = error_of_fields(fields, status=status, request_id=request_id)
        percent = fields.get("percent")
        error.percent = percent if isinstance(percent, int) else None
    error.retry_after = _seconds(headers.get("retry-after"))
    return error


def error_of_fields(
    fields: Mapping[str, Any], *, status: int = 0, request_id: str | None = None
) -> ApiError:
    """The error of a response or an event, by its code; one that this version does not know is a
    plain :class:`ApiError`."""
    code = str(fields.get("code") or "internal")
    kind = CLASS_OF_CODE.get(code, ApiError)
    hint = worded(fields, code)
    message = str(fields.get("error", ""))
    return kind(message, code=code, status=status, hint=hint, request_id=request_id)


def _seconds(text: str | None) -> float | None:
    """``Retry-After`` in seconds. The date form is not one that the server sends."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


# At the end, and the module alone: it takes classes from here, and types of results from there.
from . import builds, models  # noqa: E402
