"""What the adapters share, which needs no framework."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_daemon import SANDBOX, FakeDaemon, Reply, refusal

from dayfly import AsyncSandbox, Sandbox
from dayfly.adapters._framework import run_merged
from dayfly.adapters._inspect_files import read_at_most, write_in_place
from dayfly.adapters._long_commands import COMMAND_BYTES_MAX, run_command

ONE = f"/v1/sandboxes/{SANDBOX}"
RAN = Reply(200, {"stdout": "a\nb\n", "stderr": "", "exit_code": 3})


def test_the_streams_of_a_command_come_as_one(fake: FakeDaemon) -> None:
    fake.on("POST", f"{ONE}/exec", RAN)
    with Sandbox(api_url=fake.url, api_key="df_key") as sandbox:
        merged = run_merged(sandbox, "cat <<E\nx\nE", cwd="/tmp")
    assert (merged.output, merged.exit_code, merged.is_timed_out) == ("a\nb\n", 3, False)
    (asked,) = fake.seen("POST", f"{ONE}/exec")
    assert asked.json["cmd"] == "exec 2>&1\ncat <<E\nx\nE"
    assert asked.json["cwd"] == "/tmp"


def test_a_timeout_is_a_result(fake: FakeDaemon) -> None:
    fake.on("POST", f"{ONE}/exec", refusal(504, "timeout"))
    with Sandbox(api_url=fake.url, api_key="df_key") as sandbox:
        merged = run_merged(sandbox, "sleep 60", timeout_seconds=1)
    assert (merged.exit_code, merged.is_timed_out) == (124, True)


def in_sandbox(fake: FakeDaemon, scenario: Callable[[AsyncSandbox], Awaitable[Any]]) -> Any:
    async def play() -> Any:
        async with AsyncSandbox.create(api_url=fake.url, api_key="df_key") as sandbox:
            return await scenario(sandbox)

    return asyncio.run(play())


def test_a_long_command_goes_through_a_file(fake: FakeDaemon) -> None:
    fake.on("POST", f"{ONE}/exec", RAN)
    fake.on("PUT", f"{ONE}/fs", Reply(200, {"bytes": 1}))
    long = ["printf", "%s", "x" * COMMAND_BYTES_MAX]
    in_sandbox(fake, lambda sandbox: run_command(sandbox, long, None, {"user": "root"}))
    (put,) = [one for one in fake.requests if one.method == "PUT"]
    assert put.body == b"".join(word.encode() + b"\0" for word in long)
    assert "user=root" in put.path
    (asked,) = fake.seen("POST", f"{ONE}/exec")
    assert asked.json["cmd"][:2] == ["/bin/bash", "-c"]


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        ("not_found", "no such file or user in the guest", FileNotFoundError),
        ("forbidden", "the guest denies permission", PermissionError),
        ("invalid_request", "/etc: is a directory", IsADirectoryError),
        ("invalid_request", "it is a directory", IsADirectoryError),
        ("invalid_request", "it is not a directory", NotADirectoryError),
    ],
)
def test_refusals_are_pythons_own_errors(
    fake: FakeDaemon, code: str, text: str, kind: type[OSError]
) -> None:
    status = {"not_found": 404, "forbidden": 403, "invalid_request": 400}[code]
    answer = Reply(status, {"error": text, "code": code, "request_id": "req-1"})
    fake.on("GET", f"{ONE}/fs", answer)
    fake.on("PUT", f"{ONE}/fs", answer)
    with pytest.raises(kind, match="/etc"):
        in_sandbox(fake, lambda sandbox: read_at_most(sandbox, "/etc", 10))
    with pytest.raises(kind, match="/etc"):
        in_sandbox(fake, lambda sandbox: write_in_place(sandbox, "/etc", "x"))
