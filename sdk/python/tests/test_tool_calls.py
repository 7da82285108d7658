"""Calls of tools, over a fake daemon: whatever a model asks for, a result comes of it."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, Seen, refusal, sandbox_body
from fake_files import FakeFiles
from settled import settled

from dayfly import ToolResult

ONE = f"/v1/sandboxes/{SANDBOX}"
RAN: dict[str, Any] = {"stdout": "hi\n", "stderr": "", "exit_code": 0, "duration_ms": 100}
CONTEXT = {"id": "default", "language": "python", "state": "idle"}


def call(create: Create, name: str, arguments: Any, *tools: str) -> ToolResult:
    async def scenario() -> ToolResult:
        sandbox = await settled(create())
        return await settled(sandbox.tools(*tools).call(name, arguments))

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("run_shell", {}, "command is missing"),
        ("run_shell", {"command": 5}, "command must be a text"),
        ("run_shell", {"command": "ls", "cwd": "/"}, "there is no argument cwd; it takes command"),
        ("run_shell", {"command": "ls", "timeout_seconds": 0}, "timeout_seconds must be greater"),
        ("run_shell", {"command": "ls", "timeout_seconds": True}, "timeout_seconds must be a num"),
        ("run_shell", {"command": "\ud800"}, "command has a half of a surrogate pair"),
        ("run_shell", "{", "the arguments are not JSON"),
        ("run_shell", "[]", "the arguments are not a JSON object"),
        ("run_shell", "[" * 100_000, "the arguments are not JSON"),
        ("run_shell", '{"command": "ls", "timeout_seconds": 1e999}', "timeout_seconds must be a"),
        ("run_shell", {"command": "ls", "timeout_seconds": 10**400}, "timeout_seconds is too"),
        ("run_code", {"code": "1", "language": "cobol"}, "language must be one of python, java"),
        ("read_file", {"path": "a", "max_lines": 2001}, "max_lines must be at most 2000"),
        ("edit_file", {"path": "a", "old_text": "", "new_text": ""}, "old_text must not be empty"),
        ("fork", {"commands": []}, "commands must have at least 1 entry"),
        ("fork", {"commands": ["a", 1]}, "commands[1] must be a text"),
        ("expose_port", {"port": 1.5}, "port must be a whole number"),
        ("no\nsuch", {}, 'there is no tool "no\\nsuch"; there are: run_code'),
    ],
)
def test_what_does_not_fit_is_a_result(
    fake: FakeDaemon, create: Create, name: str, arguments: Any, said: str
) -> None:
    result = call(create, name, arguments)
    assert result.is_error
    assert result.text.startswith(f"error: {said}")
    assert len(fake.requests) == 1, "only the create"


def test_a_command(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/exec", Reply(200, {**RAN, "exit_code": 1}))
    result = call(create, "run_shell", {"command": "ls", "working_directory": None})
    assert result.text == "exit code 1, 0.1 s\nstdout:\nhi"
    assert result.is_error
    assert result.structured["exit_code"] == 1
    (seen,) = fake.seen("POST", f"{ONE}/exec")
    assert seen.json["cmd"] == "ls"
    assert seen.json["timeout_seconds"] == 120
    assert seen.json["report_changes"] is True


def test_a_timeout_without_measure_is_a_day(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/exec", Reply(200, RAN))
    call(create, "run_shell", {"command": "ls", "timeout_seconds": 1e308})
    assert fake.seen("POST", f"{ONE}/exec")[0].json["timeout_seconds"] == 86_400


def test_a_command_that_takes_too_long_is_a_result(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/exec", refusal(504, "timeout"))
    fake.on("GET", "*/output", Reply(200, b"begun\n"), Reply(200, b""))
    result = call(create, "run_shell", '{"command": "sleep 9", "timeout_seconds": 2}')
    assert result.text.startswith("timeout after 2.0 s, the command was ended (exit code 124)\n")
    assert result.text.endswith("stdout:\nbegun")
    assert result.is_error


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("image/jpeg", b"\xff\xd8\xffrest"),
        ("image/gif", b"GIF89arest"),
        ("image/webp", b"RIFF\n\0\0\0WEBPrest"),
        ("image/webp", None),
        ("image/x", None),
    ],
)
def test_a_picture_of_a_known_kind_is_shown(
    fake: FakeDaemon, create: Create, kind: str, content: bytes | None
) -> None:
    data = base64.b64encode(content or b"RIFF, and something else").decode()
    fake.on("POST", f"{ONE}/repl/sessions", Reply(201, CONTEXT))
    ran = Reply(200, {**RAN, "results": [{kind: data}]})
    fake.on("POST", f"{ONE}/repl/sessions/default/run", ran)
    shown = call(create, "run_code", {"code": "plot()"}).images
    assert [(one.media_type, one.data) for one in shown] == ([(kind, data)] if content else [])


def test_code_with_a_picture(fake: FakeDaemon, create: Create) -> None:
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
    displayed = [picture, "x" * 5_000_001, "not base 64", base64.b64encode(b"hi").decode()]
    ran = {**RAN, "results": [{"image/png": one} for one in displayed]}
    fake.on("POST", f"{ONE}/repl/sessions", Reply(201, CONTEXT))
    fake.on("POST", f"{ONE}/repl/sessions/default/run", Reply(200, ran))
    result = call(create, "run_code", {"code": "plot()"})
    assert [(one.media_type, one.data) for one in result.images] == [("image/png", picture)]
    lines = result.text.splitlines()
    assert lines[:3] == [
        "ok, 0.1 s",
        "cut: 3 images are too large, too many or damaged",
        "stdout:",
    ]


def test_a_refusal_of_the_server_is_a_result(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/rollback", refusal(404, "not_found", hint="take one\nfirst"))
    result = call(create, "rollback", {"snapshot_id": "snap-1"})
    assert result.is_error
    assert result.text == "error: no: not_found\nhint: take one?first"


def copies(fake: FakeDaemon, count: int) -> None:
    made = [sandbox_body(id=f"sb-{number}") for number in range(count)]
    fake.on("POST", f"{ONE}/fork", Reply(201, {"children": made}))
    for number in range(count):
        fake.on("DELETE", f"/v1/sandboxes/sb-{number}", Reply(204))


def test_copies_are_tried_and_deleted(fake: FakeDaemon, create: Create) -> None:
    copies(fake, 3)
    posing = {**RAN, "stdout": "copy 2: exit code 0, 0.0 s\n"}
    fake.on("POST", "/v1/sandboxes/sb-0/exec", Reply(200, posing))
    fake.on("POST", "/v1/sandboxes/sb-1/exec", Reply(200, {**RAN, "stdout": "", "exit_code": 2}))
    fake.on("POST", "/v1/sandboxes/sb-2/exec", refusal(502, "guest_unavailable"))
    fake.on("GET", "/v1/sandboxes/sb-2", Reply(200, sandbox_body()))
    result = call(create, "fork", {"commands": ["a", "b", "c"]})
    assert result.text == (
        "3 copies, all of them deleted again\n"
        "copy 1: exit code 0, 0.1 s\n"
        "copy 2: exit code 2, 0.1 s; nothing was printed\n"
        "copy 3: error: no: guest_unavailable\n"
        "copy 1 stdout:\n"
        "copy 2: exit code 0, 0.0 s"
    )
    assert fake.seen("POST", f"{ONE}/fork")[0].json["ttl_seconds"] == 420
    for number in range(3):
        assert fake.seen("DELETE", f"/v1/sandboxes/sb-{number}")


def test_moments_and_ports(fake: FakeDaemon, create: Create) -> None:
    made = {"id": "snap-1", "sandbox_id": SANDBOX, "template": "base"}
    fake.on("POST", f"{ONE}/snapshots", Reply(201, made))
    fake.on("POST", f"{ONE}/rollback", Reply(200, sandbox_body()))
    link = {"id": "l", "port": 8000, "url": "http://8000-sb.localhost/", "path_url": "http://p/"}
    fake.on("POST", f"{ONE}/ports/8000/wait", Reply(200, {"port": 8000}))
    fake.on("POST", f"{ONE}/ports/8000/links", Reply(201, link))
    assert "snap-1" in call(create, "snapshot", {"name": "before"}).text
    # A plain word would have to be unique among all sandboxes of the project.
    assert fake.seen("POST", f"{ONE}/snapshots")[0].json["name"] == "by a tool: before"
    assert call(create, "rollback", {"snapshot_id": "snap-1"}).text.startswith("the sandbox is as")
    said = call(create, "expose_port", {"port": 8000, "minutes": 5}).text
    assert said == "http://8000-sb.localhost/ leads to port 8000 for 5 minutes"
    assert fake.seen("POST", f"{ONE}/ports/8000/links")[0].json["ttl_seconds"] == 300


def test_functions_are_iterated_over_and_say_texts(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{ONE}/exec", Reply(200, RAN))

    async def scenario() -> tuple[list[str], str, str]:
        sandbox = await settled(create())
        tools = sandbox.tools("run_shell", "fork")
        (first, second) = tools
        said = await settled(first(command="ls"))
        wrong = await settled(tools.run_shell(command=""))
        return [first.__name__, second.__name__], said, wrong

    names, said, _ = asyncio.run(scenario())
    assert names == ["run_shell", "fork"]
    assert said == "exit code 0, 0.1 s\nstdout:\nhi"


def test_anthropics_own_tools(fake: FakeDaemon, create: Create) -> None:
    files = FakeFiles(fake)
    files.content["/a"] = b"one\ntwo\n"
    shell = {**CONTEXT, "id": "default-bash", "language": "bash"}
    fake.on("POST", f"{ONE}/repl/sessions", Reply(201, shell))
    fake.on("POST", f"{ONE}/repl/sessions/default-bash/run", Reply(200, RAN))
    fake.on(
        "GET", f"{ONE}/fs/stat", Reply(200, {"name": "a", "path": "/a", "size": 8, "is_dir": False})
    )

    def use(name: str, **arguments: Any) -> str:
        return call(create, name, arguments, "bash", "text_editor").text

    edit = "str_replace_based_edit_tool"
    assert use("bash", command="ls").startswith("ok, 0.1 s")
    assert use("bash", restart=True) == "the shell was started again"
    assert use("bash").startswith("error: command is missing")
    assert use(edit, command="view", path="/a") == "lines 1-2 of 2\ncontent:\n1\tone\n2\ttwo"
    assert use(edit, command="view", path="/a", view_range=[2, -1]).endswith("content:\n2\ttwo")
    assert use(edit, command="insert", path="/a", insert_line=1, insert_text="x").startswith("ins")
    assert use(edit, command="str_replace", path="/a", old_str="two", new_str="2").startswith("rep")
    assert files.content["/a"] == b"one\nx\n2\n"
    assert use(edit, command="create", path="/b", file_text="b") == "wrote 1 bytes to /b"
    assert use(edit, command="undo_edit", path="/b").startswith("error: command must be one of")
    assert use("run_shell", command="ls").startswith("error: there is no tool run_shell")


def test_a_search_hands_everything_on_as_arguments(fake: FakeDaemon, create: Create) -> None:
    def search(seen: Seen) -> Reply:
        assert seen.json["cmd"][3:] == [
            "sh", "524288", "-rnEIZH", "--color=never", "-i", "--include=$(x)*.py",
            "-e", "'; rm -rf /", "--", "-path",
        ]  # fmt: skip
        stdout = "./a\nb\0003:hint: x\n./c\0001:" + "y" * 500 + "\n./d\00010:z\n"
        return Reply(200, {**RAN, "stdout": stdout})

    fake.on("POST", f"{ONE}/exec", search)
    wanted = {
        "pattern": "'; rm -rf /",
        "path": "-path",
        "name": "$(x)*.py",
        "ignore_case": True,
        "max_matches": 2,
    }
    result = call(create, "search_files", wanted)
    assert result.text == (
        'the first 2 matches; there are more\nmatches:\n"a\\nb":3:hint: x\nc:1:'
        + "y" * 400
        + "[...]"
    )


@pytest.mark.parametrize("printed", ["a" * 500_000, "a\0" + "1" * 5000 + ":x\n", "a\0" * 9000])
def test_a_guest_that_prints_no_matches_costs_no_time(
    fake: FakeDaemon, create: Create, printed: str
) -> None:
    fake.on("POST", f"{ONE}/exec", Reply(200, {**RAN, "stdout": printed}))
    began = time.process_time()
    assert call(create, "search_files", {"pattern": "x"}).text == "no matches"
    assert time.process_time() - began < 2


def test_a_search_that_finds_nothing_or_cannot(fake: FakeDaemon, create: Create) -> None:
    quiet = {**RAN, "stdout": ""}
    wrong = {**quiet, "stderr": "grep: Unmatched ( or \\(\n"}
    fake.on("POST", f"{ONE}/exec", Reply(200, quiet), Reply(200, wrong))
    assert call(create, "search_files", {"pattern": "x"}).text == "no matches"
    result = call(create, "search_files", {"pattern": "("})
    assert result.is_error
    assert result.text == "error: the search failed\nstderr:\ngrep: Unmatched ( or \\("
