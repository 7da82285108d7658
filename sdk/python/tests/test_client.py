"""Explicit clients, the default one, and how many connections they have."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ME, Worlds
from fake_daemon import SANDBOX, FakeDaemon, Reply, Seen
from raw_server import RawServer
from settled import settled

import dayfly
from dayfly import (
    AnswerLost,
    AnswerTimeout,
    AsyncSandbox,
    Client,
    InvalidSettings,
    Sandbox,
    ServerUnreachable,
    Volume,
    async_me,
    me,
)

EXEC = f"/v1/sandboxes/{SANDBOX}/exec"


def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_a_client_is_used_and_closed(fake: FakeDaemon, worlds: Worlds) -> None:
    fake.on("POST", EXEC, Reply(200, {"stdout": "x", "stderr": "", "exit_code": 0}))

    async def scenario(client: Any) -> None:
        assert client.api_url == fake.url
        assert (await settled(worlds.me(client))).project == "p"
        sandbox = await settled(worlds.create(client))
        await settled(sandbox.exec("date"))
        await settled(client.close())
        await settled(client.close())
        with pytest.raises(InvalidSettings, match="closed"):
            await settled(sandbox.exec("date"))

    worlds.use(scenario, fake.url, "df_mine", headers={"X-Team": "blue"})
    assert {seen.headers["authorization"] for seen in fake.requests} == {"Bearer df_mine"}
    assert {seen.headers["x-team"] for seen in fake.requests} == {"blue"}


def test_everything_takes_a_client(fake: FakeDaemon) -> None:
    fake.on("GET", "/v1/volumes", Reply(200, {"items": []}))
    fake.on("GET", "/v1/sandboxes", Reply(200, {"items": []}))
    with Client(fake.url, "df_mine") as client:
        assert Volume.list(client=client) == []
        assert list(Sandbox.list(client=client)) == []
        assert Sandbox.connect(SANDBOX, client=client).id == SANDBOX
        with Sandbox("base", client=client):
            pass
    assert {seen.headers["authorization"] for seen in fake.requests} == {"Bearer df_mine"}
    assert len({seen.connection for seen in fake.requests}) == 1


def test_whatever_takes_a_key_takes_a_client() -> None:
    public = [getattr(dayfly, name) for name in dayfly.__all__]
    classes = [one for one in public if inspect.isclass(one)]
    calls = [one for one in public if inspect.isfunction(one)]
    for cls in classes:
        members = [getattr(cls, name) for name in dir(cls) if name[0] != "_" or name == "__init__"]
        calls += [one for one in members if inspect.isroutine(one)]
    takers = [
        (one.__qualname__, taken)
        for one in calls
        if inspect.isfunction(getattr(one, "__func__", one))
        and "api_key" in (taken := inspect.signature(one).parameters)
        and one.__qualname__.partition(".")[0] not in ("Client", "AsyncClient")
    ]
    assert len(takers) > 20
    assert [name for name, taken in takers if "client" not in taken] == []


def test_a_client_and_a_key_are_too_much(fake: FakeDaemon) -> None:
    with Client(fake.url, "df_mine") as client, pytest.raises(TypeError, match="client="):
        me(client=client, api_key="df_other")
    assert fake.requests == []


def test_an_empty_key_is_refused(fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYFLY_API_KEY", "df_of_the_operator")
    for call in (me, Sandbox, Client):
        with pytest.raises(InvalidSettings, match="api_key= is empty"):
            call(api_url=fake.url, api_key="")  # pyright: ignore
    assert fake.requests == []


WRONG: list[dict[str, Any]] = [
    {"timeout": 0},
    {"max_retries": -1},
    {"max_connections": 0},
    {"headers": {"Authorization": "x"}},
    {"headers": {"X-A": "b\r\nC: d"}},
    {"headers": {"X A": "b"}},
    {"ca_file": "/nowhere.pem"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        Client("https://dayfly.test", "k", **options)


def test_a_timeout_is_of_the_client(fake: FakeDaemon, worlds: Worlds) -> None:
    done = threading.Event()

    def slowly(_: Seen) -> Reply:
        done.wait(10)
        return Reply(200, ME)

    fake.on("GET", "/v1/me", slowly)
    with pytest.raises(AnswerTimeout):
        worlds.use(worlds.me, fake.url, timeout=0.1)
    done.set()


def test_a_wait_on_the_server_is_not_of_the_clients_timeout(
    fake: FakeDaemon, worlds: Worlds
) -> None:
    path = f"/v1/sandboxes/{SANDBOX}/processes/ex-1"
    later = threading.Event()

    def held_back(seen: Seen) -> Reply:
        later.wait(0.6)
        return Reply(200, {"exec_id": "ex-1", "state": "exited", "exit_code": 3})

    fake.on("GET", path, Reply(200, {"exec_id": "ex-1", "state": "running", "pid": 7}), held_back)
    fake.on("GET", f"{path}/output", Reply(200, b""))

    async def scenario(client: Any) -> int:
        sandbox = await settled(worlds.create(client))
        process = await settled(sandbox.process("ex-1"))
        return (await settled(process.wait(timeout_seconds=5))).exit_code

    assert worlds.use(scenario, fake.url, timeout=0.2, max_retries=0) == 3


def test_retries_are_counted(worlds: Worlds) -> None:
    with RawServer(b"", hangs_up=True) as server, pytest.raises(AnswerLost):
        worlds.use(worlds.me, server.url, max_retries=0)
    assert server.connections == 1


def test_nobody_there_is_a_connection_error(worlds: Worlds) -> None:
    with pytest.raises(ConnectionError) as caught:
        worlds.use(worlds.me, "http://127.0.0.1:9", max_retries=0)
    assert isinstance(caught.value, ServerUnreachable)


def test_two_hundred_keys_leave_nothing_open(
    fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dayfly.client import _pool  # pyright: ignore

    # What earlier tests left has a timer of its own, with the ordinary time.
    _pool.forget()
    monkeypatch.setattr("dayfly._headers.IDLE_SECONDS", 0.3)
    kept = [Sandbox("base", api_url=fake.url, api_key=f"df_{number}") for number in range(200)]
    assert _pool.open_count <= 16
    assert len({seen.connection for seen in fake.requests}) < 20
    until(lambda: _pool.open_count == 0, "connections stay open")
    assert len(kept) == 200


def test_two_hundred_keys_leave_nothing_open_in_asyncio(
    fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dayfly._async_client import _transport  # pyright: ignore

    monkeypatch.setattr("dayfly._headers.IDLE_SECONDS", 0.3)

    async def scenario() -> None:
        calls = [async_me(api_url=fake.url, api_key=f"df_{number}") for number in range(200)]
        await asyncio.gather(*calls)
        pool = _transport.pool()
        assert pool.open_count <= 16
        async with asyncio.timeout(10):
            while pool.open_count:
                await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_more_calls_than_connections_wait_their_turn(fake: FakeDaemon, worlds: Worlds) -> None:
    now, most, lock = [0], [0], threading.Lock()

    def count(_: Seen) -> Reply:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1
        return Reply(200, ME)

    fake.on("GET", "/v1/me", count)

    async def scenario(client: Any) -> None:
        if worlds.is_async:
            await asyncio.gather(*(worlds.me(client) for _ in range(40)))
        else:
            calls = (asyncio.to_thread(worlds.me, client) for _ in range(40))
            await asyncio.gather(*calls)

    worlds.use(scenario, fake.url, max_connections=3)
    assert len(fake.requests) == 40
    assert most[0] <= 3


def test_a_client_whose_connections_are_all_held_says_so(fake: FakeDaemon, worlds: Worlds) -> None:
    done = threading.Event()

    def hold(_: Seen) -> Reply:
        done.wait(10)
        return Reply(200, {"stdout": "", "stderr": "", "exit_code": 0})

    fake.on("POST", EXEC, hold)

    async def scenario(client: Any) -> None:
        sandbox = await settled(worlds.create(client))
        if worlds.is_async:
            held = asyncio.ensure_future(sandbox.exec("sleep inf"))
        else:
            held = asyncio.ensure_future(asyncio.to_thread(sandbox.exec, "sleep inf"))
        async with asyncio.timeout(10):
            while not fake.seen("POST", EXEC):
                await asyncio.sleep(0.01)
        with pytest.raises(ServerUnreachable, match="all 1 connections"):
            await (worlds.me(client) if worlds.is_async else asyncio.to_thread(worlds.me, client))
        done.set()
        await held

    worlds.use(scenario, fake.url, max_connections=1, timeout=0.2)


MANY = """
import asyncio, json, resource, sys
from dayfly import AsyncSandbox

async def main(url):
    sandbox = await AsyncSandbox.create("base", api_url=url, api_key="df_key")
    found = await asyncio.gather(*(sandbox.exec("date") for _ in range(600)))
    return sum(one.exit_code == 0 for one in found)

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
print(json.dumps(asyncio.run(main(sys.argv[1]))))
"""


def test_six_hundred_commands_under_256_descriptors(fake: FakeDaemon) -> None:
    pytest.importorskip("resource", reason="this system has no such limit")

    def answer(_: Seen) -> Reply:
        time.sleep(0.02)
        return Reply(200, {"stdout": "", "stderr": "", "exit_code": 0})

    fake.on("POST", EXEC, answer)
    source = Path(__file__).resolve().parents[1] / "src"
    done = subprocess.run(
        [sys.executable, "-c", MANY, fake.url],
        env={"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == 600


def test_a_call_that_is_cancelled_while_it_waits_leaves_its_place(fake: FakeDaemon) -> None:
    done = threading.Event()

    def hold(_: Seen) -> Reply:
        done.wait(10)
        return Reply(200, ME)

    fake.on("GET", "/v1/me", hold, Reply(200, ME))

    async def scenario() -> None:
        from dayfly import AsyncClient

        async with AsyncClient(fake.url, "k", max_connections=1) as client:
            first = asyncio.ensure_future(async_me(client=client))
            waiting = [asyncio.ensure_future(async_me(client=client)) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            done.set()
            assert (await first).project == "p"
            for one in waiting[1:]:
                assert (await one).project == "p"

    asyncio.run(scenario())


def test_loops_that_ended_are_let_go(fake: FakeDaemon) -> None:
    from dayfly._async_client import _transport  # pyright: ignore

    async def ask() -> None:
        sandbox = await AsyncSandbox.create("base", api_url=fake.url, api_key="k")
        assert sandbox.id == SANDBOX

    for _ in range(5):
        asyncio.run(ask())
    gc.collect()
    assert len(_transport._pools) <= 1  # pyright: ignore
