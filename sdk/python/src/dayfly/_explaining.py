"""What a refusal does not say by itself: that there is no key, or that versions differ."""

from __future__ import annotations

from ._effects import Operation, Send
from ._facts import ClientFacts
from ._hints import NO_KEY
from ._version import VERSION
from ._wire import Answer, get
from .errors import ApiError, DayflyError, Unauthorized

HEALTH_SECONDS = 10.0
# Refusals that a server of another version would give to a request that is right for ours.
_CODES = ("invalid_request", "no_such_route", "method_not_allowed", "unsupported_media_type")


def explain(error: ApiError, facts: ClientFacts) -> Operation[None]:
    """Adds to the hint of an error what this client can find out."""
    if isinstance(error, Unauthorized) and facts.settings.key is None:
        error.hint = f"no key was given: {NO_KEY}"
        return
    if not _may_be_another_version(error):
        return
    if facts.server_version is None:
        # Once, and only when something went wrong: nobody waits for it otherwise.
        facts.server_version = yield from _server_version()
    note = version_note(facts.server_version, VERSION)
    if note:
        error.hint = f"{error.hint}; {note}" if error.hint else note


def _may_be_another_version(error: ApiError) -> bool:
    # A code that has no class here is one of a later version.
    return error.code in _CODES or (bool(error.code) and type(error) is ApiError)


def _server_version() -> Operation[str]:
    try:
        answer: Answer = yield Send(get("/health", timeout=HEALTH_SECONDS))
        version: object = answer.json().get("version")
    except DayflyError:
        return ""
    return version if isinstance(version, str) else ""


def version_note(server: str, client: str) -> str | None:
    """What to say about two versions; nothing when they go together, or one is not known."""
    theirs, ours = _release(server), _release(client)
    if theirs is None or ours is None or theirs == ours:
        return None
    age = "older" if theirs < ours else "newer"
    what = "the server" if theirs < ours else "this package"
    return (
        f"the server is {age} ({server}) than this client ({client}), which may be why;"
        f" update {what}"
    )


def _release(version: str) -> tuple[int, int] | None:
    numbers = version.split(".")
    if len(numbers) < 2 or not all(one.isascii() and one.isdigit() for one in numbers[:2]):
        return None
    return int(numbers[0]), int(numbers[1])
