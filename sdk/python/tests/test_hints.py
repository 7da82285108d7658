"""What went wrong, in the words of somebody who writes Python."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, Stream, refusal, sandbox_body
from settled import settled

from dayfly import (
    AnswerTimeout,
    AsyncSandbox,
    ExecInterrupted,
    GuestUnavailable,
    NotFound,
    Unsupported,
)
from dayfly._hints import FITTING, WORDS, worded
from dayfly.errors import error_of_fields
from dayfly.execution import execution_from_wire

CREATE = "/v1/sandboxes"
ONE = f"{CREATE}/{SANDBOX}"
KEPT: dict[str, Any] = {
    "hint": "its output is kept: GET processes/ex-1/output",
    "hint_code": "output_kept",
    "hint_parameters": {"exec_id": "ex-1"},
}
REST_WORDS = re.compile(r"\b(GET|PUT|POST|PATCH|DELETE) |/v1/|Bearer|Idempotency-Key")


def call(create: Create, method: str, *arguments: Any, **options: Any) -> Any:
    async def scenario() -> Any:
        target = await settled(create())
        for name in method.split("."):
            target = getattr(target, name)
        return await settled(target(*arguments, **options))

    return asyncio.run(scenario())


def test_every_code_of_a_hint_has_words_for_this_package() -> None:
    root = Path(__file__).resolve().parents[3]
    document = root / "openapi" / "v1.json"
    if not document.exists():
        pytest.skip("the server is not beside the SDK")
    schemas = json.loads(document.read_text(encoding="utf-8"))["components"]["schemas"]
    theirs: dict[str, str] = schemas["HintCode"]["x-enumDescriptions"]
    assert sorted(theirs) == sorted(schemas["HintCode"]["enum"])
    assert sorted([*WORDS, *FITTING]) == sorted(theirs)
    commands = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for code, words in theirs.items():
        names = re.findall(r"\{([a-z_]+)\}", words)
        fields = {"hint": words, "hint_code": code, "hint_parameters": dict.fromkeys(names, "a")}
        told = worded(fields) or ""
        # Words that need what is not sent would be those of the server.
        assert code in FITTING or told != words, code
        assert not REST_WORDS.search(told), f"{code} is told as {told!r}"
        for command in re.findall(r"`(dayfly [a-z ]+)`", told):
            assert f"## `{command}`\n" in commands, f"{told!r} names a command that is none"


def test_known_codes_name_calls_of_this_package() -> None:
    denied: dict[str, Any] = {
        "hint": "`dayfly net allow sb-1 a.org` or POST .../network/allow lets it through",
        "hint_code": "network_denied",
        "hint_parameters": {"sandbox_id": "sb-1", "denied": "a.org (no_rule)", "first": "a.org"},
    }
    assert str(worded(denied)).endswith(
        'denied a.org (no_rule); sandbox.network.allow("a.org") lets it through'
    )
    assert execution_from_wire(denied).hint == worded(denied)
    error = error_of_fields({"code": "unauthorized", "error": "this needs an API key"})
    assert "DAYFLY_API_KEY" in str(error)
    assert "api_key=" in str(error)
    ended = {"hint": "what was begun before may go on", "hint_code": "key_ended"}
    assert error_of_fields({"code": "unauthorized", **ended}).hint == ended["hint"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"hint_code": "of_a_later_server"},
        {"hint_code": "network_denied"},
        {"hint_code": "network_denied", "hint_parameters": {"first": "a"}},
        {"hint_code": 7, "hint_parameters": []},
    ],
)
def test_what_is_not_known_is_told_as_the_server_words_it(fields: dict[str, Any]) -> None:
    assert worded({"hint": "something of another version", **fields}) == (
        "something of another version"
    )


@pytest.mark.parametrize(
    ("result", "options", "said"),
    [
        ({"reason": "out_of_memory"}, {}, "of 512 MiB was used up"),
        (
            {"reason": "limit_exceeded", "limits_hit": ["memory"]},
            {"memory_mb": 64},
            "its own limit of 64 MiB",
        ),
        ({"reason": "out_of_memory", "hint": "told"}, {}, "told"),
    ],
)
def test_a_command_without_memory_says_so(
    fake: FakeDaemon, create: Create, result: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    fake.on("POST", CREATE, Reply(201, sandbox_body(memory_mb=512)))
    fake.on(
        "POST", f"{ONE}/exec", Reply(200, {"stdout": "", "stderr": "", "exit_code": 137, **result})
    )
    found = call(create, "exec", "make", **options)
    assert said in found.hint
    assert said in found.for_model()


def test_of_a_sandbox_that_is_gone_nothing_goes_on(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/exec", refusal(502, "guest_unavailable", **KEPT))
    fake.on("GET", ONE, refusal(404, "not_found"))
    with pytest.raises(GuestUnavailable, match="ttl_seconds") as caught:
        call(create, "exec", "sleep 30")
    assert "kept" not in str(caught.value)
    started = ("started", {"exec_id": "ex-1"})
    fake.on("POST", f"{ONE}/exec/stream", Stream([started], is_cut=True))
    with pytest.raises(ExecInterrupted, match="ttl_seconds") as interrupted:
        call(create, "exec", "sleep 30", on_stdout=len)
    assert "go on" not in str(interrupted.value)


def test_of_a_sandbox_that_is_there_the_output_is_kept(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/exec", refusal(502, "guest_unavailable", **KEPT))
    with pytest.raises(GuestUnavailable, match=re.escape('process("ex-1").output')):
        call(create, "exec", "sleep 30")


@pytest.mark.parametrize(
    ("method", "arguments", "request_line"),
    [
        ("files.read", ("/workspace/a",), ("GET", f"{ONE}/fs")),
        ("files.write", ("/workspace/a", "x"), ("PUT", f"{ONE}/fs")),
        ("files.stat", ("/workspace/a",), ("GET", f"{ONE}/fs/stat")),
        ("files.list", ("/workspace/a",), ("GET", f"{ONE}/fs/dir")),
        ("files.mkdir", ("/workspace/a",), ("POST", f"{ONE}/fs/mkdir")),
        ("files.move", ("/workspace/a", "/b"), ("POST", f"{ONE}/fs/move")),
        ("files.remove", ("/workspace/a",), ("DELETE", f"{ONE}/fs")),
        ("files.chmod", ("/workspace/a", 0o600), ("POST", f"{ONE}/fs/chmod")),
        ("files.watch", ("/workspace/a",), ("GET", f"{ONE}/fs/watch")),
    ],
)
def test_a_refused_file_says_which(
    fake: FakeDaemon,
    create: Create,
    method: str,
    arguments: tuple[Any, ...],
    request_line: tuple[str, str],
) -> None:
    fake.on(*request_line, refusal(404, "not_found"))
    with pytest.raises(NotFound, match=r"^/workspace/a: no: not_found"):
        call(create, method, *arguments)


@pytest.mark.parametrize("data", [{"a": 1}, 7, None])
def test_a_write_says_what_it_takes(fake: FakeDaemon, create: Create, data: Any) -> None:
    with pytest.raises(TypeError, match="takes str or bytes, not"):
        call(create, "files.write", "/workspace/a", data)


def test_a_port_is_waited_for(
    fake: FakeDaemon, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = refusal(504, "timeout", hint="h", hint_code="port_timeout")
    monkeypatch.setattr("dayfly._living.PORT_WAIT_SECONDS_MAX", 30.0)
    fake.on("POST", f"{ONE}/ports/8000/wait", late, Reply(200, {"port": 8000}))
    assert call(create, "wait_for_port", 8000).port == 8000
    # Longer than one request may wait: the next goes on.
    seen = fake.seen("POST", f"{ONE}/ports/8000/wait")
    assert [request.json for request in seen] == [{"timeout_ms": 30_000}] * 2
    fake.on("POST", f"{ONE}/ports/9/wait", late)
    with pytest.raises(AnswerTimeout, match=r"on port 9 after 0\.01 s") as caught:
        call(create, "wait_for_port", 9, timeout_seconds=0.01)
    assert "sandbox.ports()" in str(caught.value)
    assert len(fake.seen("POST", f"{ONE}/ports/9/wait")) == 1


def test_the_asynchronous_one_is_created_by_create() -> None:
    kind: Any = AsyncSandbox
    with pytest.raises(TypeError, match=r"await AsyncSandbox.create\(\.\.\.\)"):
        kind("base")


def test_a_language_says_where_it_is(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/repl/sessions", refusal(501, "not_implemented"))
    with pytest.raises(Unsupported, match="code-interpreter"):
        call(create, "run_code", "1", "javascript")


def test_a_create_that_waits_says_so(
    fake: FakeDaemon, create: Create, caplog: pytest.LogCaptureFixture
) -> None:
    baking = refusal(503, "template_baking", "0.1", percent=40)
    fake.on("POST", CREATE, baking, baking, Reply(201, sandbox_body()))
    with caplog.at_level(logging.WARNING, logger="dayfly"):
        asyncio.run(settled(create()))
    assert [record.getMessage() for record in caplog.records] == [
        "a create waits: no: template_baking (40%)"
    ]


def test_the_status_is_what_was_known_last(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/hibernate", Reply(204))
    fake.on("GET", ONE, Reply(200, sandbox_body(status="waking")))

    async def scenario() -> None:
        sandbox = await settled(create())
        assert sandbox.status == "running"
        await settled(sandbox.hibernate())
        assert sandbox.status == "hibernated"
        assert not fake.seen("GET", ONE)
        assert (await settled(sandbox.refresh())).status == "waking"

    asyncio.run(scenario())


@pytest.mark.parametrize(("options", "sent"), [({}, True), ({"keep_siblings": True}, False)])
def test_a_promote_deletes_siblings_unless_they_are_to_be_kept(
    fake: FakeDaemon, create: Create, options: dict[str, Any], sent: bool
) -> None:
    fake.on("POST", f"{ONE}/promote", Reply(200, {"winner": SANDBOX, "tree_id": "t"}))
    call(create, "promote", **options)
    assert fake.seen("POST", f"{ONE}/promote")[0].json == {"cleanup_siblings": sent}
