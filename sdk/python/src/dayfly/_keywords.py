"""Keyword arguments that a call does not know are refused with the one that was meant.

Python refuses them as well, but without a suggestion; and ``timeout`` for ``timeout_seconds`` is
what fingers write that know other libraries.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

# What other libraries call it, where no letters give it away.
_OTHER_WORDS = {
    "cmd": ("command", "args"),
    "cwd": ("workdir", "working_dir", "directory"),
    "env": ("envs", "environment", "env_vars", "variables"),
    "stdin": ("input",),
    "count": ("n", "number"),
    "egress_allowlist": ("allow", "allowlist", "hosts"),
}


def known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Refuses unknown keywords of a function or a coroutine function, and says what was meant."""
    name = function.__qualname__
    known = _keywords(function)

    def check(given: Iterable[str]) -> None:
        for word in given:
            if word not in known:
                raise TypeError(_refusal(name, word, known))

    if inspect.iscoroutinefunction(function):
        asking: Callable[P, Coroutine[Any, Any, Any]] = function

        @functools.wraps(function)
        async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
            check(kwargs)
            return await asking(*args, **kwargs)

        return cast("Callable[P, R]", later)

    @functools.wraps(function)
    def now(*args: P.args, **kwargs: P.kwargs) -> R:
        check(kwargs)
        return function(*args, **kwargs)

    return now


def _keywords(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return [one.name for one in found if one.kind in kinds and one.name not in ("self", "cls")]


def _refusal(name: str, word: str, known: list[str]) -> str:
    text = f"{name}() got an unexpected keyword argument {word!r}"
    nearest = _nearest(word, known)
    if nearest is not None:
        return f"{text}; did you mean {nearest!r}?"
    return f"{text}; it takes {', '.join(known)}"


def _nearest(word: str, known: list[str]) -> str | None:
    lower = word.lower()
    for name in known:
        if lower in _OTHER_WORDS.get(name, ()):
            return name
    # `ttl` for `ttl_seconds`: too short for a comparison of letters.
    begun = [name for name in known if name.startswith(f"{lower}_")]
    if begun:
        return begun[0]
    close = difflib.get_close_matches(lower, known, n=1)
    return close[0] if close else None
