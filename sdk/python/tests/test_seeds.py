"""Each call shape of the documents that this SDK must be able to follow, one by one.

They need a real daemon. Sandboxes here reach no network; ``tests/seeds`` of the repository runs
whole programs, with what they clone and install.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator

import pytest
from daemon import daemon_settings

from dayfly import DayflyError, NotFound, Sandbox, Volume

TEMPLATE = "code-interpreter"


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    """For shapes that leave nothing behind; making one for each would take long."""
    daemon_settings()
    with Sandbox.create(template=TEMPLATE, ttl_seconds=900) as sandbox:
        yield sandbox


def is_gone(sandbox: Sandbox) -> bool:
    try:
        Sandbox.connect(sandbox.id)
    except NotFound:
        return True
    return False


def test_constructor_as_context_manager() -> None:
    daemon_settings()
    with Sandbox(template="base") as sandbox:
        assert sandbox.info().status == "running"
    assert is_gone(sandbox)


def test_create_with_ttl_and_metadata_as_context_manager() -> None:
    daemon_settings()
    with Sandbox.create(
        template="base", ttl_seconds=300, metadata={"task": "agent-tool-call"}
    ) as sandbox:
        assert sandbox.metadata == {"task": "agent-tool-call"}
        assert sandbox.lifecycle().ttl_seconds == 300
        assert [one.id for one in Sandbox.list(metadata={"task": "agent-tool-call"})]
    assert is_gone(sandbox)


def test_an_exception_inside_deletes_all_the_same() -> None:
    daemon_settings()
    made: list[Sandbox] = []

    def interrupted() -> None:
        with Sandbox(template="base") as sandbox:
            made.append(sandbox)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert is_gone(made[0])


def test_persistent_is_left_by_with_and_ended_by_kill() -> None:
    daemon_settings()
    with Sandbox.create(template="base", persistent=True, ttl_seconds=900) as sandbox:
        pass
    try:
        assert sandbox.exec("echo still here").stdout == "still here\n"
    finally:
        sandbox.kill()
    assert is_gone(sandbox)


def test_run_code_gives_stdout_and_exit_code(shared: Sandbox) -> None:
    result = shared.run_code("print(sum(range(101)))", language="python")
    assert (result.stdout, result.exit_code) == ("5050\n", 0)


def test_run_code_that_fails_gives_exit_code_and_stderr(shared: Sandbox) -> None:
    result = shared.run_code("import nothing_of_that_name", language="python")
    assert result.exit_code != 0
    assert "nothing_of_that_name" in result.stderr


def test_a_run_code_tool(shared: Sandbox) -> None:
    def tool(code: str) -> str:
        result = shared.run_code(code, language="python")
        said = result.stdout
        if result.exit_code != 0:
            said += f"\n[exit {result.exit_code}] {result.stderr}"
        return said.strip() or "(nothing)"

    assert tool("print('seen')") == "seen"
    assert "[exit 1]" in tool("raise SystemError('broken')")
    assert "broken" in tool("raise SystemError('broken')")


def test_exec_of_an_agents_command_with_timeout(shared: Sandbox) -> None:
    command = "python3 -c 'import statistics; print(statistics.mean([2, 4, 6, 8]))'"
    result = shared.exec(command, timeout_seconds=60)
    assert (result.stdout, result.exit_code) == ("5\n", 0)


def test_filesystem_write_then_exec(shared: Sandbox) -> None:
    shared.filesystem.write("/workspace/cell.py", "import sys\nprint('python', sys.version[0])\n")
    result = shared.exec("python3 /workspace/cell.py", timeout_seconds=60)
    assert (result.exit_code, result.stdout) == (0, "python 3\n")


def test_filesystem_read_gives_bytes_and_text(shared: Sandbox) -> None:
    shared.filesystem.write("/workspace/notes.txt", "grüße\n")
    assert shared.filesystem.read("/workspace/notes.txt").decode() == "grüße\n"
    assert shared.filesystem.read_text("/workspace/notes.txt") == "grüße\n"


def test_run_of_a_command_line_in_code_interpreter(shared: Sandbox) -> None:
    code = "import sys; print('said'); print('warned', file=sys.stderr)"
    result = shared.run(f"python -c {shlex.quote(code)}")
    assert result.stdout + result.stderr == "said\nwarned\n"
    assert result.exit_code == 0


def test_volume_get_or_create_and_mount() -> None:
    daemon_settings()
    name = f"user-{uuid.uuid4().hex[:12]}-workspace"
    volume = Volume.get_or_create(name=name, size_gb=1)
    try:
        assert Volume.get_or_create(name=name, size_gb=2).size_gb == 1
        with Sandbox(template=TEMPLATE, volumes=[volume.mount("/workspace")]) as sandbox:
            started = sandbox.run("cd /workspace && git init -q . && git status")
            assert started.exit_code == 0, started
            sandbox.filesystem.write("/workspace/left.txt", "for next time")
        with Sandbox(template=TEMPLATE, volumes=[volume.mount("/workspace")]) as sandbox:
            assert "left.txt" in sandbox.run("cd /workspace && git status").stdout
    finally:
        volume.delete()


def test_run_of_python_that_keeps_its_state_in_forks() -> None:
    daemon_settings()
    made: list[Sandbox] = []
    try:
        parent = Sandbox(template="python-data", ttl_seconds=900)
        made.append(parent)
        parent.filesystem.write("/workspace/data.csv", "n\n1\n\n3\n")
        loaded = parent.run(
            "import pandas\n"
            "df = pandas.read_csv('/workspace/data.csv', skip_blank_lines=False)\n"
            "print(df.head())"
        )
        assert loaded.exit_code == 0, loaded
        assert "NaN" in loaded.stdout
        branches: list[Sandbox] = []
        for approach in ("dropna", "interpolate"):
            child = parent.fork()
            made.append(child)
            told = child.run(f"df_{approach} = df.{approach}(); print(len(df_{approach}))")
            assert told.stdout == {"dropna": "2\n", "interpolate": "3\n"}[approach], told
            branches.append(child)
        winner, *rest = branches
        for branch in rest:
            branch.close()
            assert is_gone(branch)
        assert winner.run("len(df_dropna)").text == "2"
        assert parent.run("df_dropna").error is not None
    finally:
        for sandbox in made:
            sandbox.close()


def test_egress_allowlist_at_create() -> None:
    daemon_settings()
    with Sandbox(template="base", egress_allowlist=["example.com"]) as sandbox:
        policy = sandbox.network.get()
        assert (policy.mode, policy.allow) == ("allowlist", ["example.com"])


def test_hibernate_and_wake_by_the_next_request() -> None:
    daemon_settings()
    with Sandbox.create(template="base", ttl_seconds=600) as sandbox:
        sandbox.filesystem.write("/workspace/kept", "yes")
        sandbox.hibernate()
        assert sandbox.status == "hibernated"
        assert sandbox.exec("cat /workspace/kept").stdout == "yes"
        sandbox.hibernate()
        sandbox.wake()
        assert sandbox.status == "running"


def test_kill_twice_and_close_after_kill_are_fine() -> None:
    daemon_settings()
    sandbox = Sandbox.create(template="base", ttl_seconds=300)
    sandbox.kill()
    sandbox.kill()
    sandbox.close()
    with pytest.raises(DayflyError) as caught:
        sandbox.exec("true")
    assert caught.value.code == "not_found"
