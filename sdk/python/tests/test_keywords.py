"""Every call names its keywords, in a way that programs can read too."""

from __future__ import annotations

import asyncio
import inspect
import typing
from typing import Any

import pytest
from conftest import Create
from fake_daemon import FakeDaemon, Reply
from settled import settled

import dayfly
import dayfly.agents
from dayfly import AsyncSandbox, Sandbox


def public_functions() -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    named = [(name, getattr(dayfly, name)) for name in dayfly.__all__]
    named += [(f"agents.{name}", getattr(dayfly.agents, name)) for name in dayfly.agents.__all__]
    for name, thing in named:
        if inspect.isfunction(thing):
            found.append((name, thing))
        if not inspect.isclass(thing):
            continue
        for member in dir(thing):
            value: Any = inspect.getattr_static(thing, member)
            value = getattr(value, "__func__", getattr(value, "fget", value))
            is_ours = inspect.isfunction(value) and value.__module__.startswith("dayfly")
            if is_ours and (not member.startswith("_") or member == "__init__"):
                found.append((f"{name}.{member}", value))
    return found


FUNCTIONS = public_functions()


@pytest.mark.parametrize(
    "function", [one for _, one in FUNCTIONS], ids=[one for one, _ in FUNCTIONS]
)
def test_hints_can_be_read_and_no_keyword_is_unnamed(function: Any) -> None:
    hints = typing.get_type_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD
        if parameter.name not in ("self", "cls"):
            assert parameter.name in hints, f"{parameter.name} has no type"


CALLS: list[tuple[str, tuple[Any, ...], str, str]] = [
    ("exec", ("sleep 5",), "timeout", "timeout_seconds"),
    ("exec", ("sleep 5",), "max_ouput_bytes", "max_output_bytes"),
    ("exec", ("sleep 5",), "workdir", "cwd"),
    ("exec_background", ("sleep 5",), "timeout", "timeout_seconds"),
    ("exec_background", ("sleep 5",), "on_stdout", "exec_background() got an unexpected"),
    ("run_code", ("1",), "timeout", "timeout_seconds"),
    ("run", ("1",), "timeout", "timeout_seconds"),
    ("fork", (2,), "ttl", "ttl_seconds"),
    ("fork_tree", (2,), "ttl", "ttl_seconds"),
    ("snapshot", (), "retain", "retain_seconds"),
]


@pytest.mark.parametrize(("method", "arguments", "wrong", "said"), CALLS)
def test_an_unknown_keyword_is_refused_and_nothing_is_sent(
    fake: FakeDaemon,
    create: Create,
    method: str,
    arguments: tuple[Any, ...],
    wrong: str,
    said: str,
) -> None:
    async def scenario() -> None:
        sandbox = await settled(create())
        sent = len(fake.requests)
        with pytest.raises(TypeError) as caught:
            await settled(getattr(sandbox, method)(*arguments, **{wrong: 1}))
        assert said in str(caught.value)
        assert len(fake.requests) == sent

    asyncio.run(scenario())


def test_a_create_refuses_unknown_keywords(fake: FakeDaemon) -> None:
    unknown: dict[str, Any] = {"netwrok": "deny"}
    for kind in (Sandbox, Sandbox.create, AsyncSandbox.create):
        with pytest.raises(TypeError, match="did you mean 'network'"):
            kind("base", api_url=fake.url, **unknown)
    assert not fake.requests


def test_the_keywords_of_a_command_arrive(fake: FakeDaemon, create: Create) -> None:
    given = {"memory_mb": 64, "cpu_seconds": 1.5, "max_processes": 3, "log_when_full": "block"}
    fake.on("POST", "*/exec", Reply(200, {"stdout": "", "stderr": "", "exit_code": 0}))

    async def scenario() -> None:
        await settled((await settled(create())).exec("true", max_output_bytes=999, **given))

    asyncio.run(scenario())
    sent = fake.seen("POST", "*/exec")[0].json
    assert {**given, "max_output_bytes": 999}.items() <= sent.items()


def test_coroutine_functions_are_known_as_such() -> None:
    assert inspect.iscoroutinefunction(AsyncSandbox.exec)
    assert inspect.iscoroutinefunction(AsyncSandbox.run_code)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("exec", {"env": {"A": 1}}, "env['A'] takes str, not int"),
        ("exec", {"timeout_seconds": "5s"}, "timeout_seconds is a number of seconds, not '5s'"),
        ("run_code", {"timeout_seconds": "5s"}, "timeout_seconds is a number"),
        ("create", {"ttl_seconds": "10m"}, "ttl_seconds is a number of seconds, not '10m'"),
        ("create", {"idle_seconds": True}, "idle_seconds is a number of seconds, not True"),
        ("create", {"metadata": {"task": 42}}, "metadata['task'] takes str, not int: 42"),
        ("fork", {"metadata": {7: "a"}}, "metadata[7] takes str, not int"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_name(
    fake: FakeDaemon, create: Create, method: str, options: dict[str, Any], said: str
) -> None:
    async def scenario() -> None:
        if method == "create":
            await settled(create(**options))
            return
        sandbox = await settled(create())
        arguments = [2] if method == "fork" else ["1"]
        await settled(getattr(sandbox, method)(*arguments, **options))

    with pytest.raises(TypeError) as caught:
        asyncio.run(scenario())
    assert said in str(caught.value)
