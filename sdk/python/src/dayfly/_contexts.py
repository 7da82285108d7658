"""Contexts: what is known of them, and what can be done with them besides running code."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ._effects import Operation
from ._retry import call
from ._wire import (
    STATE_SECONDS,
    Request,
    delete,
    get,
    new_id,
    path_of,
    send_json,
    without_none,
)
from .errors import NotFound
from .models import ContextInfo, from_wire

# The context that the server itself uses for `run` where it keeps its state.
DEFAULT_CONTEXT = "default"
_LANGUAGES = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "node": "javascript",
    "sh": "bash",
    "shell": "bash",
}


class KnownContexts:
    """What the handles of one sandbox know of its contexts."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        # Their interpreters have ended; the next run starts a new one.
        self.dead: set[str] = set()
        self._under_way: dict[str, list[str]] = {}

    def forget(self) -> None:
        """After a rollback any of them may be there, or not."""
        self.made.clear()
        self.dead.clear()

    @contextmanager
    def running(self, context: str, run: str) -> Generator[None, None, None]:
        runs = self._under_way.setdefault(context, [])
        runs.append(run)
        try:
            yield
        finally:
            runs.remove(run)

    def is_first(self, context: str, run: str) -> bool:
        """Whether the run is the one that the context is at, as far as is known here."""
        return self._under_way.get(context, [])[:1] == [run]


def language_name(text: str) -> str:
    return _LANGUAGES.get(text.lower(), text.lower())


def default_of(language: str) -> str:
    """The sandbox's own context of a language."""
    return DEFAULT_CONTEXT if language == "python" else f"{DEFAULT_CONTEXT}-{language}"


def language_of_default(context: str) -> str | None:
    """The language of a context of the sandbox's own; ``None`` for any other."""
    if context == DEFAULT_CONTEXT:
        return "python"
    before, _, language = context.partition(f"{DEFAULT_CONTEXT}-")
    return language if language and not before else None


def create_context(
    sandbox: str, language: str, cwd: str | None, context: str | None = None
) -> Operation[ContextInfo]:
    body = without_none(language=language, cwd=cwd, id=context or new_id("ctx"))
    path = path_of("sandboxes", sandbox, "repl", "sessions")
    # It names itself, so a repeat finds the one that is there.
    request = send_json("POST", path, body, is_repeatable=True, timeout=STATE_SECONDS)
    return from_wire(ContextInfo, (yield from call(request)).json())


def list_contexts(sandbox: str) -> Operation[list[ContextInfo]]:
    answer = yield from call(get(path_of("sandboxes", sandbox, "repl", "sessions")))
    return [from_wire(ContextInfo, item) for item in answer.json()["items"]]


def find_context(sandbox: str, context: str) -> Operation[ContextInfo]:
    """The context of that name. The sandbox's own need not be there yet."""
    language = language_of_default(context)
    if language is not None:
        return ContextInfo(context, language)
    found = yield from list_contexts(sandbox)
    for info in found:
        if info.id == context:
            return info
    names = ", ".join(sorted(info.id for info in found)) or "none"
    raise NotFound(
        f"the sandbox has no context {context!r}",
        code="not_found",
        status=404,
        hint=f"there are: {names}; create_context() makes one",
    )


def context_request(sandbox: str, context: str, verb: str) -> Request:
    path = path_of("sandboxes", sandbox, "repl", "sessions", context, verb)
    return send_json("POST", path, timeout=STATE_SECONDS)


def interrupt_context(sandbox: str, context: str) -> Operation[None]:
    yield from call(context_request(sandbox, context, "interrupt"))


def restart_context(sandbox: str, context: str, known: KnownContexts) -> Operation[None]:
    yield from call(context_request(sandbox, context, "restart"))
    known.dead.discard(context)


def delete_context(sandbox: str, context: str, known: KnownContexts) -> Operation[None]:
    yield from call(delete(path_of("sandboxes", sandbox, "repl", "sessions", context)))
    known.made.discard(context)
    known.dead.discard(context)
