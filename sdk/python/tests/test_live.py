"""What neither the shared cases nor the seeds show, against a real daemon."""

from __future__ import annotations

import asyncio
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cutting_proxy import CuttingProxy
from daemon import daemon_settings

from dayfly import (
    AnswerTimeout,
    AsyncSandbox,
    AsyncVolume,
    CommandFailed,
    NotFound,
    Sandbox,
    SandboxTimeout,
    Snapshot,
    Volume,
    async_me,
    me,
    templates,
)


@pytest.fixture(scope="module")
def base() -> Iterator[Sandbox]:
    daemon_settings()
    with Sandbox("base", ttl_seconds=900) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Sandbox]:
    daemon_settings()
    with Sandbox("code-interpreter", ttl_seconds=900) as sandbox:
        yield sandbox


def test_who_and_what(base: Sandbox) -> None:
    assert me().project
    assert "base" in [template.name for template in templates()]
    assert Sandbox.connect(base.id).template == "base"
    assert base.id in [one.id for one in Sandbox.list(template="base", status="running")]


def test_check_raises_with_the_result(base: Sandbox) -> None:
    with pytest.raises(CommandFailed) as caught:
        base.exec("echo why >&2; exit 4", check=True)
    assert caught.value.result.exit_code == 4
    assert caught.value.stderr == "why\n"


def test_a_list_is_not_read_by_a_shell(base: Sandbox) -> None:
    assert base.exec(["echo", "$HOME; ls"]).stdout == "$HOME; ls\n"


def test_a_time_limit_keeps_what_was_said(base: Sandbox) -> None:
    with pytest.raises(SandboxTimeout) as caught:
        base.exec("echo first; sleep 60", timeout_seconds=1)
    assert caught.value.stdout == "first\n"


def test_a_stream_survives_cut_connections(base: Sandbox) -> None:
    settings = daemon_settings()
    proxy = CuttingProxy(settings.url)
    try:
        sandbox = Sandbox.connect(base.id, api_url=proxy.url, api_key=settings.key)
        told: list[str] = []
        proxy.cut_after, proxy.cuts = 2000, 4
        result = sandbox.exec(
            "for i in $(seq 1 600); do echo line $i é; done; sleep 1; seq 601 900; exit 5",
            on_stdout=told.append,
        )
    finally:
        proxy.close()
    lines = [f"line {number} é" for number in range(1, 601)] + list(map(str, range(601, 901)))
    assert result.stdout.splitlines() == lines
    assert "".join(told) == result.stdout
    assert result.exit_code == 5
    assert proxy.made == 4, "the connection was not cut"


def test_a_plain_exec_survives_a_cut_connection(base: Sandbox) -> None:
    settings = daemon_settings()
    proxy = CuttingProxy(settings.url)
    try:
        sandbox = Sandbox.connect(base.id, api_url=proxy.url, api_key=settings.key)
        proxy.cut_after, proxy.cuts = 10, 1
        result = sandbox.exec("echo once >> /workspace/times; cat /workspace/times")
    finally:
        proxy.close()
    assert result.stdout == "once\n"
    assert proxy.made == 1


def test_a_process_in_the_background(base: Sandbox) -> None:
    process = base.exec_background("read name; echo hello $name; sleep 60", stdin_open=True)
    process.send_stdin("wor")
    process.send_stdin("ld\n")
    deadline = time.monotonic() + 20
    while process.output().stdout != "hello world\n" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert process.output_bytes("stdout", offset=6) == b"world\n"
    assert process.exec_id in [one.exec_id for one in base.processes()]
    with pytest.raises(AnswerTimeout):
        process.wait(timeout_seconds=0.5)
    process.signal(signal.SIGTERM)
    assert process.wait(timeout_seconds=20).exit_code == 143


def test_a_killed_process_keeps_its_output_until_it_is_deleted(base: Sandbox) -> None:
    process = base.exec_background("echo before; sleep 60")
    for chunk in process.attach():
        assert str(chunk) == "before\n"
        break
    process.kill()
    process.kill()
    assert process.wait(timeout_seconds=20).exit_code == 137
    assert process.output().stdout == "before\n"
    process.delete()
    with pytest.raises(NotFound):
        process.info()


def test_trees_go_in_and_out(base: Sandbox, tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a.bin").write_bytes(bytes(range(256)) * 1000)
    (source / "run.sh").write_text("echo ran")
    (source / "run.sh").chmod(0o755)
    base.files.upload(source, "/workspace/tree")
    assert base.exec("./run.sh", cwd="/workspace/tree").stdout == "ran\n"
    base.files.upload(source / "deep" / "a.bin", "/workspace/tree/b.bin")
    target = base.files.download("/workspace/tree", tmp_path / "out")
    assert (target / "deep" / "a.bin").read_bytes() == (target / "b.bin").read_bytes()
    one = base.files.download("/workspace/tree/b.bin", tmp_path)
    assert one.read_bytes() == bytes(range(256)) * 1000
    walked = {path: (names, files) for path, names, files in base.files.walk("/workspace/tree")}
    assert walked["/workspace/tree"][0] == ["deep"]
    assert sorted(walked["/workspace/tree"][1]) == ["b.bin", "run.sh"]
    assert walked["/workspace/tree/deep"] == ([], ["a.bin"])


def test_parts_of_files(base: Sandbox) -> None:
    base.files.write("/workspace/part", b"0123456789", mode=0o600)
    base.files.write("/workspace/part", "ab", append=True)
    assert base.files.read("/workspace/part", offset=8) == b"89ab"
    assert base.files.read("/workspace/part", offset=2, length=3) == b"234"
    base.files.chmod("/workspace/part", 0o644)
    assert base.files.stat("/workspace/part").mode.endswith("644")
    assert "/workspace/part" in [one.path for one in base.files.changes("/workspace")]


def test_changes_are_told(base: Sandbox) -> None:
    base.files.mkdir("/workspace/watched")
    with base.files.watch("/workspace/watched") as watch:
        base.exec("touch /workspace/watched/new; rm /workspace/watched/new")
        kinds = [(change.kind, change.path) for change in (next(watch), next(watch))]
    assert kinds[0] == ("created", "/workspace/watched/new")


def test_a_service_is_reached_by_key_and_by_link(interpreter: Sandbox) -> None:
    settings = daemon_settings()
    interpreter.files.write("/workspace/site/index.html", "served")
    server = interpreter.exec_background(
        ["python3", "-m", "http.server", "8123", "--bind", "127.0.0.1"], cwd="/workspace/site"
    )
    try:
        deadline = time.monotonic() + 60
        while 8123 not in [port.port for port in interpreter.ports()]:
            assert time.monotonic() < deadline
            time.sleep(0.3)
        request = urllib.request.Request(interpreter.port_url(8123))
        request.add_header("Authorization", f"Bearer {settings.key}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.read() == b"served"
        link = interpreter.port_link(8123, ttl_seconds=60)
        assert link.token
        request = urllib.request.Request(link.path_url, headers={"x-dayfly-token": link.token})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.read() == b"served"
        assert [one.id for one in interpreter.port_links(8123)] == [link.id]
        interpreter.revoke_link(link)
        assert interpreter.port_links(8123) == []
    finally:
        server.kill()


def test_the_network_is_recorded_and_changed(base: Sandbox) -> None:
    assert base.exec("curl -sS --max-time 10 https://example.com").exit_code != 0
    records = base.network.log(wait_seconds=5).records
    assert [one for one in records if one.name == "example.com" and one.decision == "denied"]
    assert base.network.suggest().allow == []
    assert base.network.allow("example.com", "git.example.com:22").allow == [
        "example.com",
        "git.example.com:22",
    ]
    assert base.network.set("deny").mode == "deny"


def test_a_context_streams_is_interrupted_and_forgets(interpreter: Sandbox) -> None:
    with interpreter.create_context("python") as context:
        told: list[str] = []
        streamed = context.run_code("for i in range(3): print(i)\ni * 21", on_stdout=told.append)
        assert ("".join(told), streamed.stdout, streamed.text) == ("0\n1\n2\n", "0\n1\n2\n", "42")
        with pytest.raises(SandboxTimeout):
            context.run_code("while True: pass", timeout_seconds=1)
        assert context.run("i").text == "2"
        context.restart()
        assert str(context.run("i").error).startswith("NameError")
    assert context.id not in [one.id for one in interpreter.contexts()]


def test_run_code_keeps_its_state_and_other_languages_work(interpreter: Sandbox) -> None:
    interpreter.run_code("kept = {'a': 1}")
    assert interpreter.run_code("kept").text == "{'a': 1}"
    assert interpreter.run_code("echo $((6 * 7))", language="bash").stdout == "42\n"


def test_run_code_without_contexts_is_a_fresh_interpreter(base: Sandbox) -> None:
    assert base.run_code("print(6 * 7)").stdout == "42\n"
    assert base.run_code("raise ValueError('x')").exit_code == 1
    assert "ValueError" in base.run_code("raise ValueError('x')").stderr


def test_snapshots_are_listed_and_make_sandboxes(base: Sandbox) -> None:
    base.files.write("/workspace/moment", "kept")
    snapshot = base.snapshot(name="moment")
    try:
        assert Snapshot.get(snapshot.id).sandbox_id == base.id
        assert snapshot.id in [one.id for one in Snapshot.list(base.id)]
        with snapshot.create_sandbox(ttl_seconds=300) as copy:
            assert copy.files.read_text("/workspace/moment") == "kept"
    finally:
        snapshot.delete()
    with pytest.raises(NotFound):
        Snapshot.get(snapshot.id)


def test_children_and_the_one_that_is_kept(base: Sandbox) -> None:
    first, second = base.fork(count=2, ttl_seconds=300)
    try:
        kept = first.promote()
        assert kept.deleted == [second.id]
        with pytest.raises(NotFound):
            second.info()
        assert base.info().status == "running"
    finally:
        first.delete()
        second.delete()


def test_the_best_of_several_is_kept(base: Sandbox) -> None:
    before = {one.id for one in Sandbox.list()}
    found = base.explore(
        ["exit 1", "echo 5 > /workspace/found; echo 5", "echo 9 > /workspace/found; echo 9"],
        score=lambda result: float(result.stdout or -1),
        timeout_seconds=60,
        ttl_seconds=300,
    )
    assert found.winner is not None
    with found.winner as winner:
        assert winner.files.read_text("/workspace/found") == "9\n"
        assert [one.score for one in found.attempts] == [-1.0, 5.0, 9.0]
        assert {one.id for one in Sandbox.list()} - before == {winner.id}
    assert not base.files.exists("/workspace/found")


def test_a_volume_grows_and_goes() -> None:
    daemon_settings()
    volume = Volume.create("sdk-python-grows", size_mb=64)
    try:
        volume.grow(size_mb=128)
        assert Volume.get("sdk-python-grows").info.size_mb == 128
        assert "sdk-python-grows" in [one.name for one in Volume.list()]
    finally:
        volume.delete()
    with pytest.raises(NotFound):
        Volume.get("sdk-python-grows")


def test_the_same_with_asyncio() -> None:
    daemon_settings()

    async def scenario() -> None:
        assert (await async_me()).project
        volume = await AsyncVolume.get_or_create("sdk-python-async", size_mb=64)
        try:
            async with AsyncSandbox.create(
                "base", ttl_seconds=300, volumes=[volume.mount("/data")]
            ) as sandbox:
                first, second = await asyncio.gather(
                    sandbox.exec("echo 1 > /data/n; cat /data/n"), sandbox.exec("echo 2")
                )
                assert (first.stdout, second.stdout) == ("1\n", "2\n")
                process = await sandbox.exec_background("cat", stdin_open=True)
                await process.send_stdin("in\n", close=True)
                assert (await process.wait(20)).stdout == "in\n"
                async with await sandbox.files.watch("/workspace") as watch:
                    await sandbox.exec("touch /workspace/new")
                    async for change in watch:
                        assert change.path == "/workspace/new"
                        break
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(sandbox.exec("sleep 30"), 0.5)
                assert (await sandbox.exec("echo on")).stdout == "on\n"
        finally:
            await volume.delete()

    asyncio.run(scenario())


def test_asyncio_explores_too() -> None:
    daemon_settings()

    async def scenario() -> None:
        async with AsyncSandbox.create("base", ttl_seconds=300) as sandbox:
            found = await sandbox.explore(["exit 1", "true"], ttl_seconds=300)
            assert found.winner is not None
            assert found.best is not None
            assert found.best.command == "true"
            await found.winner.delete()

    asyncio.run(scenario())
