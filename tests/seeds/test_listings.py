"""Published Python listings, run against a real daemon as they are printed.

`listings` has them; each says what was changed. What a listing leaves to its reader is given here,
in sight: names that it does not define, a file that it reads, the certificate of a lab.
"""

from __future__ import annotations

import ast
import json
import os
import pathlib
import re
import shlex
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest
from agent_stage import load, serve
from examples import PATCH, ScriptedModel

from dayfly import NetworkPolicy, Sandbox, Volume

HERE = pathlib.Path(__file__).parent
TASKS = HERE.parent.parent / "docs" / "tasks.md"


def run(name: str, blank: str = "", filled: str = "", **given: object) -> dict[str, Any]:
    """Runs a listing with the names that it does not define, and returns those that it made."""
    text = (HERE / "listings" / f"{name}.py").read_text()
    if blank:
        assert text.count(blank) == 1
        text = text.replace(blank, filled)
    names: dict[str, Any] = {"__name__": "__main__", **given}
    exec(compile(text, f"{name}.py", "exec"), names)
    return names


@dataclass
class Seen:
    """What the listings did, and what each new sandbox is given before they go on."""

    sandboxes: list[Sandbox] = field(default_factory=list[Sandbox])
    results: list[Any] = field(default_factory=list[Any])
    prepare: Callable[[Sandbox], object] = lambda sandbox: None

    def said(self) -> list[tuple[int, str]]:
        return [(result.exit_code, result.stdout) for result in self.results]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """Looks at the calls of a listing, which often drops their results. Each is still made."""
    seen = Seen()
    make, calls = Sandbox.__init__, {name: getattr(Sandbox, name) for name in ("exec", "run")}

    def made(sandbox: Sandbox, *arguments: Any, **options: Any) -> None:
        make(sandbox, *arguments, **options)
        with monkeypatch.context() as unseen:
            for name, call in calls.items():
                unseen.setattr(Sandbox, name, call)
            seen.prepare(sandbox)
        seen.sandboxes.append(sandbox)

    def looked_at(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(sandbox: Sandbox, *arguments: Any, **options: Any) -> Any:
            result = call(sandbox, *arguments, **options)
            seen.results.append(result)
            return result

        return called

    monkeypatch.setattr(Sandbox, "__init__", made)
    for name, call in calls.items():
        monkeypatch.setattr(Sandbox, name, looked_at(call))
    yield seen
    monkeypatch.undo()
    left = list(Sandbox.list())
    for sandbox in left:
        sandbox.delete()
    assert left == [], "a listing left sandboxes behind"


@contextmanager
def modelled(name: str) -> Generator[Any]:
    """A model of tests/model that follows the script of a listing, where the packages look."""
    script = load(HERE / "scripts" / f"{name}.json")
    with serve(script) as model, pytest.MonkeyPatch.context() as env:
        for provider, address in ("ANTHROPIC", model.address), ("OPENAI", f"{model.address}/v1"):
            env.setenv(f"{provider}_BASE_URL", address)
            env.setenv(f"{provider}_API_KEY", "none")
        yield model


def assert_played(model: Any) -> None:
    log = model.log()
    assert log["finished"], log
    assert log["violations"] == []


def test_an_agent_with_one_tool(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    with modelled("agent") as model:
        run("agent")
        assert_played(model)
    assert capsys.readouterr().out == "5050\nIt printed 832040\n"
    assert len(seen.sandboxes) == 2, "one for each call of the tool"


def test_one_sandbox_for_a_conversation(seen: Seen) -> None:
    answers: list[str] = []

    def agent_loop(run_code: Callable[[str], str]) -> None:
        answers.extend(map(run_code, ["x = 40", "print(x + 2)", "print(nothing)"]))

    loop = "# ... run the agent loop here, all calls share `sb` ..."
    run("session", loop, "agent_loop(run_code)", Sandbox=Sandbox, agent_loop=agent_loop)
    assert answers[:2] == ["", "42"]
    assert "NameError" in answers[2]
    assert len(seen.sandboxes) == 1


def test_one_computer(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    run("one_computer")
    said = capsys.readouterr().out
    assert re.fullmatch(r"exit: 0\nhello from \S+\npython 3\.\d+\.\d+\n\n", said), said


def test_a_loop_around_any_model(seen: Seen) -> None:
    codes = "open('n', 'w').write('7')", "1 / 0", "print(int(open('n').read()) * 6)"
    client = ScriptedModel(*codes)
    assert run("agent_loop")["agent_loop"](client, "what is 6 * 7?") == "42\n"
    assert [step["exit_code"] for step in client.seen] == [0, 1, 0]
    assert "ZeroDivisionError" in client.seen[1]["stderr"]


def test_best_of_five(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    lab = pathlib.Path(os.environ["DAYFLY_SEEDS_LAB"])
    policies: list[NetworkPolicy] = []

    def trust_the_lab(sandbox: Sandbox) -> None:
        """The repository and the registry are the lab's, and so is who vouches for them."""
        policies.append(sandbox.network.get())
        sandbox.filesystem.write("/tmp/lab.pem", (lab / "authority.pem").read_text())
        trusted = "/etc/ssl/certs/ca-certificates.crt"
        sandbox.exec(f"sudo sh -c 'cat /tmp/lab.pem >> {trusted}'", check=True)

    def generate_n_fixes(n: int) -> list[str]:
        bodies = ["n", "n * 2", "n ** 2", "n + n", "n + 3"]
        return [PATCH.format(body=body) for body in bodies[:n]]

    seen.prepare = trust_the_lab
    names = run("best_of_five", generate_n_fixes=generate_n_fixes)
    assert capsys.readouterr().out == "2/5 candidate fixes passed the test suite\n", seen.results
    assert names["winners"] == [PATCH.format(body=body) for body in ("n * 2", "n + n")]
    assert [result.exit_code for result in seen.results[:2]] == [0, 0], "clone and install"
    assert len(seen.results) == 12
    assert [policy.mode for policy in policies] == ["allowlist"]
    requests = (lab / "requests").read_text().splitlines()
    for wanted in (
        "example.com /repo/info/refs",
        "example.com /repo/git-upload-pack",
        "pypi.org /simple/tiny/",
        "files.pythonhosted.org /packages/tiny-1.0-py3-none-any.whl",
    ):
        assert requests.count(wanted) >= 1, requests


def test_without_a_list_the_clone_fails_and_the_hint_says_why(seen: Seen) -> None:
    with Sandbox(template="base") as sandbox:
        cloned = sandbox.exec("git clone --depth 1 https://example.com/repo /workspace/repo")
    assert cloned.exit_code == 128
    assert "Could not resolve host: example.com" in cloned.stderr
    assert "example.com" in (cloned.hint or "")


def test_the_page_shows_best_of_five_as_it_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", TASKS.read_text(), re.S | re.M)
    shown = [block for block in blocks if "generate_n_fixes" in block]
    assert len(shown) == 1
    listing = (HERE / "listings" / "best_of_five.py").read_text()
    assert ast.dump(ast.parse(shown[0])) == ast.dump(ast.parse(listing))


def test_one_sandbox_for_each_turn(seen: Seen) -> None:
    loop = "            for tc in msg.tool_calls:\n"
    # What the listing leaves out: two modules of the standard library, and what the model said.
    said = 'msg.model_dump(include={"role", "tool_calls"})'
    filled = f"            messages.append({said})\n{loop}"
    with modelled("agent_turn") as model:
        agent_turn = run("agent_turn", loop, filled, json=json, shlex=shlex)["agent_turn"]
        assert agent_turn("the thirtieth Fibonacci number?") == "It printed 832040"
        assert_played(model)
    assert seen.said() == [(0, "832040\n")]


def test_one_sandbox_for_each_turn_as_printed_is_refused_by_the_model(seen: Seen) -> None:
    with modelled("agent_turn"):
        agent_turn = run("agent_turn", json=json, shlex=shlex)["agent_turn"]
        with pytest.raises(openai.BadRequestError, match="tool"):
            agent_turn("the thirtieth Fibonacci number?")
    assert seen.said() == [(0, "832040\n")], "the sandbox did its part"


def test_a_workspace_of_a_user(seen: Seen) -> None:
    user_id = uuid.uuid4().hex[:12]
    try:
        volume = run("workspace", Volume=Volume, Sandbox=Sandbox, user_id=user_id)["vol"]
        assert volume.size_gb == 20
        assert "not a git repository" in seen.results[0].stderr, "a new workspace is empty"
        with Sandbox(template="base", volumes=[volume.mount("/workspace")]) as sandbox:
            sandbox.exec("git init -q . && echo draft > notes", check=True)
        run("workspace", Volume=Volume, Sandbox=Sandbox, user_id=user_id)
        last = seen.results[-1]
        assert (last.exit_code, "notes" in last.stdout) == (0, True), last
    finally:
        Volume.get(f"user-{user_id}-workspace").delete()


def test_three_ways_on_from_one_session(seen: Seen) -> None:
    rows = "a,b\n1,2\n,4\n5,\n"
    # The file that the listing reads, where it reads it.
    seen.prepare = lambda sandbox: sandbox.exec(
        f"printf {shlex.quote(rows)} | sudo tee /data.csv", check=True
    )
    names = run("branches", Sandbox=Sandbox)
    parent, winner = names["parent"], names["winner"]
    loaded, filled, dropped, interpolated = seen.results
    assert "NaN" in loaded.stdout
    # As printed it lacks an argument, and pandas says so.
    assert "ValueError" in filled.stderr
    assert [result.exit_code for result in seen.results] == [0, 1, 0, 0]
    assert "count  1.0  1.0" in dropped.stdout
    assert "mean" in interpolated.stdout
    assert {one.id for one in Sandbox.list()} == {parent.id, winner.id}, "two are thrown away"
    for kept in (winner, parent):
        assert kept.run("print(len(df))").stdout == "3\n"
        kept.close()


def test_one_per_task(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    run("one_per_task")
    assert capsys.readouterr().out == "5\n 0\n"
    assert [sandbox.metadata for sandbox in seen.sandboxes] == [{"task": "agent-tool-call"}]


POOL = """
from process_pool import SandboxConfig, SandboxPool

pool = SandboxPool(pool_size=2)
pool.initialize(SandboxConfig())
one = pool.acquire()
print(one.execute("print(6 * 7)").stdout, end="")
one.config = SandboxConfig(timeout_seconds=1)
print(one.execute("while True: pass"))
print(pool.status())
pool.release(one)
print(pool.status())
"""


def test_child_processes_inside_a_sandbox(seen: Seen) -> None:
    """The one listing without a boundary of its own gets one: all of it runs in a sandbox."""
    with Sandbox(template="base", ttl_seconds=300) as sandbox:
        listing = (HERE / "listings" / "process_pool.py").read_text()
        sandbox.filesystem.write("/workspace/process_pool.py", listing)
        result = sandbox.exec(f"python3 -c {shlex.quote(POOL)}", check=True)
    answer, timed_out, in_use, released = result.stdout.splitlines()
    assert answer == "42"
    assert "timed_out=True" in timed_out
    assert in_use == "{'total': 2, 'available': 1, 'in_use': 1}"
    assert released == "{'total': 2, 'available': 2, 'in_use': 0}"
