"""The list of names that both languages share, as far as Python has them.

What the list says is there, and nothing else is. Its `pending_in_python` has names that are decided
and that the package does not have yet; a name that is there must not be in it.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

import dayfly
import dayfly.agents

NAMES = cast(
    "dict[str, Any]",
    json.loads((Path(__file__).parents[3] / "tests" / "names.json").read_text(encoding="utf-8")),
)
# What the package exports, and what its part for agents does.
CLASSES = cast("dict[str, dict[str, Any]]", NAMES["classes"])
AGENTS = cast("dict[str, dict[str, Any]]", NAMES["agents"])
ALL = {**CLASSES, **AGENTS}

# "Class", "Class.member", "Class.method(option)".
PENDING = frozenset(cast("list[str]", NAMES["pending_in_python"]))


def public(name: str) -> Any:
    """A class by its name, also one that the package does not export by itself."""
    if name == "SandboxNetwork":
        return type(dayfly.Sandbox.network.fget(_no_sandbox()))  # type: ignore[attr-defined]
    return getattr(dayfly.agents if name in AGENTS else dayfly, name, None)


def _no_sandbox() -> Any:
    sandbox = dayfly.Sandbox.__new__(dayfly.Sandbox)
    sandbox.__dict__.update(_session=None, _info=dayfly.SandboxInfo("sb-1", "base", "running"))
    return sandbox


def members(cls: type[Any]) -> set[str]:
    names = {name for name in dir(cls) if not name.startswith("_")}
    # The fields of a dataclass without a default are no attributes of it.
    names |= set(cast("dict[str, Any]", getattr(cls, "__dataclass_fields__", {})))
    # What an object gets when it is made, and its class says of it.
    for base in cls.__mro__:
        source = inspect.getsource(base) if base.__module__.startswith("dayfly") else ""
        names |= set(re.findall(r"^        self\.([a-z]\w*)(?::[^=\n]*)? =", source, re.M))
    return names


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def missing_of(one: dict[str, Any]) -> set[str]:
    """What the list has of a class and the package has not."""
    name = cast("str", one["python"])
    cls = public(name)
    if cls is None:
        return {name}
    there = members(cls)
    missing = {f"{name}.{python}" for python, _ in one["both"] if python not in there}
    for method, pairs in cast("dict[str, Any]", one.get("options", {})).items():
        method = "__init__" if method == "constructor" else snake(method)
        function = getattr(cls, method, None)
        if function is None:
            continue
        has = set(inspect.signature(function).parameters)
        missing |= {f"{name}.{method}({python})" for python, _ in pairs if python not in has}
    return missing


@pytest.mark.parametrize("name", ALL)
def test_members_are_those_of_the_list(name: str) -> None:
    one = ALL[name]
    missing = missing_of(one)
    assert missing <= PENDING, f"in the list and not in the package: {sorted(missing - PENDING)}"
    cls = public(one["python"])
    if cls is None:
        return
    listed = {python for python, _ in one["both"]} | set(one["python_only"])
    extra = members(cls) - listed
    assert not extra, f"in the package and not in the list: {sorted(extra)}"


def test_nothing_that_is_there_is_pending() -> None:
    missing = {name for name in cast("list[str]", NAMES["errors"]) if not hasattr(dayfly, name)}
    for one in ALL.values():
        missing |= missing_of(one)
    stale = PENDING - missing
    assert not stale, f"there by now, and still called pending: {sorted(stale)}"


def test_no_name_is_in_both_parts() -> None:
    assert not set(CLASSES) & set(AGENTS)


def test_an_async_agent_is_the_same() -> None:
    names = {name for name in dir(dayfly.agents.Agent) if not name.startswith("_")}
    assert {name for name in dir(dayfly.agents.AsyncAgent) if not name.startswith("_")} == names
    for name in ("__init__", *names):
        ours, theirs = (
            getattr(kind, name, None) for kind in (dayfly.agents.Agent, dayfly.agents.AsyncAgent)
        )
        if callable(ours) and callable(theirs):
            has = list(inspect.signature(ours).parameters)
            assert list(inspect.signature(theirs).parameters) == has, name


def test_errors_and_functions_are_those_of_the_list() -> None:
    errors = {
        name
        for name in dayfly.__all__
        if inspect.isclass(thing := getattr(dayfly, name)) and issubclass(thing, Exception)
    }
    assert errors - set(NAMES["errors"]) == set(NAMES["errors_python_only"])
    assert set(NAMES["errors"]) - errors <= PENDING
    for python, _ in NAMES["functions"]:
        assert callable(getattr(dayfly, python))
