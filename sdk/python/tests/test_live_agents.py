"""Tools and agents in a real sandbox: what a fake daemon cannot show."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon import daemon_settings

from dayfly import NotFound, Sandbox, Snapshot, ToolResult, Tools
from dayfly.agents import (
    Agent,
    AsyncAgent,
    CallBegan,
    CallEnded,
    Event,
    Message,
    Results,
    StopReason,
    ToolCall,
    Turn,
)


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    daemon_settings()
    with Sandbox("code-interpreter", ttl_seconds=900) as sandbox:
        yield sandbox.tools()


def ok(result: ToolResult) -> str:
    assert not result.is_error, result.text
    return result.text


def test_files(tools: Tools) -> None:
    ok(tools.call("write_file", {"path": "site/a.txt", "content": "one\ntwo é\n"}))
    assert tools.read_file("site/a.txt") == "lines 1-2 of 2\ncontent:\n1\tone\n2\ttwo é"
    ok(tools.call("edit_file", {"path": "site/a.txt", "old_text": "two", "new_text": "2"}))
    assert tools.read_file("site/a.txt", first_line=2).endswith("content:\n2\t2 é")
    assert "site/a.txt (" in tools.list_files(depth=2)
    tools.run_shell("touch empty; head -c 100 /dev/zero > zeros; ln -s site/a.txt link")
    assert tools.read_file("empty") == "the file is empty"
    assert tools.read_file("zeros").startswith("error: zeros is not a text file")
    ok(tools.call("edit_file", {"path": "link", "old_text": "one", "new_text": "1"}))
    assert tools.run_shell("test -L link && head -n 1 site/a.txt").endswith("stdout:\n1")
    assert tools.read_file("nowhere").startswith("error: nowhere: ")
    assert tools.read_file("site").startswith("error: ")


def test_searching(tools: Tools) -> None:
    tools.write_file("src/a b.py", "import os\nx = '$(id)'\n")
    tools.write_file("src/-e.txt", "import os\n")
    tools.run_shell("touch \"$(printf 'src/new\\nline.py')\"; echo import > src/new*line.py")
    said = tools.search_files("^import", path="src", name="*.py")
    assert said.startswith("2 matches\nmatches:\n")
    assert '"src/a b.py":1:import os' in said
    assert r'"src/new\nline.py":1:import' in said
    found = tools.search_files(r"\$\(id\)", path="src")
    assert found.endswith("\"src/a b.py\":2:x = '$(id)'")
    assert tools.search_files("import", path="src", max_matches=1).startswith("the first 1 matches")
    assert tools.search_files("nothing of that").startswith("no matches")
    assert tools.search_files("(", path="src").startswith("error: ")
    assert tools.search_files("x", path="-nowhere").startswith("error: ")


def test_running(tools: Tools) -> None:
    assert ok(tools.call("run_code", {"code": "x = 41\nx + 1"})).endswith("result:\n42")
    assert tools.run_code("print(x)").endswith("stdout:\n41")
    assert tools.run_code("y").startswith("error NameError, ")
    assert tools.run_shell("sleep 60", timeout_seconds=1).startswith("timeout after 1.0 s")
    assert tools.run_code("import time; time.sleep(60)", timeout_seconds=1).startswith("timeout")
    cut = tools.run_shell("yes 0123456789 | head -c 5000000")
    assert "\ncut: " in cut.partition("\nstdout:\n")[0]
    assert len(cut) < 20_000
    assert "\nchanged files: /workspace/made" in tools.run_shell("echo x > made")
    chart = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    assert [one.media_type for one in tools.call("run_code", {"code": chart}).images] == [
        "image/png"
    ]


def test_copies_moments_and_ports(tools: Tools) -> None:
    said = tools.fork(["echo first > made; cat made", "exit 7"])
    assert said.splitlines()[1].startswith("copy 1: exit code 0, ")
    assert "copy 2: exit code 7" in said
    assert said.endswith("copy 1 stdout:\nfirst")
    tools.run_code("moment = 1")
    kept = tools.call("snapshot", {})
    tools.run_code("moment = 2")
    ok(tools.call("rollback", kept.structured))
    assert tools.run_code("print(moment)").endswith("stdout:\n1")
    Snapshot.get(kept.structured["snapshot_id"]).delete()
    tools.run_shell("nohup python3 -m http.server 8000 >/dev/null 2>&1 &")
    link = tools.call("expose_port", {"port": 8000})
    ok(link)
    assert urllib.request.urlopen(link.structured["path_url"]).status == 200


def code(text: str, call_id: str) -> Turn:
    return Turn("", [ToolCall(call_id, "run_code", {"code": text})])


def last(messages: list[Message]) -> str:
    found = messages[-1]
    assert isinstance(found, Results)
    return found.results[-1].text


def test_three_steps_are_undone_with_files_and_memory() -> None:
    daemon_settings()
    turns = iter(
        [
            code("count = 0; open('steps', 'w').write('zero')", "a"),
            code("count += 1", "b"),
            Turn("", [ToolCall("c", "write_file", {"path": "steps", "content": "changed"})]),
            code("count += 1", "d"),
            Turn("", [ToolCall("u", "undo", {"steps": 3})]),
            code("print(count, open('steps').read())", "e"),
        ]
    )

    def model(messages: list[Message], tools: Any) -> Turn:
        return next(turns, None) or Turn(last(messages))

    agent = Agent(model, checkpoint="step", undo_tool=True)
    result = agent.run("try it")
    assert result.reason is StopReason.DONE
    assert result.text.endswith("stdout:\n0 zero")
    assert [one for one in Snapshot.list() if one.sandbox_id == result.sandbox_id] == []
    with pytest.raises(NotFound):
        Sandbox.connect(result.sandbox_id)


def test_a_sandbox_that_sleeps_between_turns_wakes() -> None:
    daemon_settings()
    turns = iter([code("number = 1729", "a"), code("number", "b")])

    def model(messages: list[Message], tools: Any) -> Turn:
        return next(turns, None) or Turn(last(messages))

    def sleep(event: Event) -> None:
        if isinstance(event, CallEnded):
            Sandbox.connect(agent.sandbox_id or "").hibernate()

    agent = Agent(model)
    assert agent.run("remember", on_event=sleep).text.endswith("result:\n1729")


def test_a_cancelled_run_leaves_nothing() -> None:
    daemon_settings()
    going: list[asyncio.Task[Any]] = []

    def model(messages: list[Message], tools: Any) -> Turn:
        return Turn("", [ToolCall("a", "run_shell", {"command": "sleep 600"})])

    def cancel(event: Event) -> None:
        if isinstance(event, CallBegan):
            asyncio.get_running_loop().call_later(0.5, going[0].cancel)

    async def scenario() -> str:
        agent = AsyncAgent(model)
        going.append(asyncio.ensure_future(agent.run("sleep", on_event=cancel)))
        with pytest.raises(asyncio.CancelledError):
            await going[0]
        assert agent.transcript.stop == "cancelled"
        return agent.sandbox_id or ""

    with pytest.raises(NotFound):
        Sandbox.connect(asyncio.run(scenario()))


KILLED = """
from dayfly.agents import Agent, ToolCall, Turn

def model(messages, tools):
    return Turn("", [ToolCall("a", "run_shell", {"command": "sleep 600"})])

agent = Agent(model, template="base", ttl_seconds=20, checkpoint="step")
agent.run("sleep", on_event=lambda event: print(agent.sandbox_id, event, flush=True))
"""


def test_of_a_killed_client_nothing_is_left_after_the_ttl() -> None:
    daemon_settings()
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1] / "src"))
    client = subprocess.Popen(
        [sys.executable, "-c", KILLED], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    said = next(line for line in client.stdout if "CallBegan" in line)
    sandbox = said.split()[0]
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    Sandbox.connect(sandbox)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        snapshots = [one for one in Snapshot.list() if one.sandbox_id == sandbox]
        try:
            Sandbox.connect(sandbox)
        except NotFound:
            if not snapshots:
                return
        time.sleep(0.5)
    pytest.fail("the sandbox or its snapshots are still there")
