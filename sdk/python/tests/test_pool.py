"""Sandboxes that are used again, and never with anything of the one before."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Reply, Seen, refusal, sandbox_body
from settled import settled
from test_cancelling import Cancel, ways

from dayfly import (
    AsyncClient,
    AsyncSandboxPool,
    Client,
    ClosedPool,
    DayflyError,
    PoolFull,
    PoolStatus,
    SandboxPool,
)

CREATE = "/v1/sandboxes"


class Server:
    """Makes sandboxes one after the other, each with a snapshot of its own."""

    def __init__(self, fake: FakeDaemon) -> None:
        self.fake = fake
        self.made = 0
        fake.on("POST", CREATE, self._create)
        fake.on("POST", "*/exec", Reply(200, {"stdout": "", "stderr": "", "exit_code": 0}))

    def _create(self, _: Seen) -> Reply:
        self.made += 1
        name, path = f"sb-{self.made}", f"{CREATE}/sb-{self.made}"
        snapshot = {"id": f"snap-{self.made}", "sandbox_id": name, "template": "base"}
        self.fake.on("GET", path, Reply(200, sandbox_body(id=name)))
        self.fake.on("DELETE", path, Reply(204))
        self.fake.on("POST", f"{path}/snapshots", Reply(201, snapshot))
        self.fake.on("POST", f"{path}/rollback", Reply(200, sandbox_body(id=name)))
        self.fake.on("DELETE", f"/v1/snapshots/snap-{self.made}", Reply(204))
        return Reply(201, sandbox_body(id=name))

    def deleted(self) -> set[str]:
        gone = [
            seen.path.rpartition("/")[2] for seen in self.fake.requests if seen.method == "DELETE"
        ]
        return set(gone)


@pytest.fixture
def server(fake: FakeDaemon) -> Server:
    return Server(fake)


@pytest.fixture(params=[SandboxPool, AsyncSandboxPool], ids=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def pool_of(kind: Any, server: Server, size: int = 2, **options: Any) -> Any:
    return kind(size, "base", api_url=server.fake.url, api_key="k", **options)


def test_a_pool_takes_a_client(server: Server, kind: Any) -> None:
    async def scenario() -> None:
        client_kind: Any = Client if kind is SandboxPool else AsyncClient
        client = client_kind(server.fake.url, "df_mine")
        pool = kind(1, "base", client=client)
        sandbox = await settled(pool.acquire().get())
        await settled(pool.release(sandbox))
        await settled(pool.close())
        await settled(client.close())

    asyncio.run(scenario())
    assert {seen.headers["authorization"] for seen in server.fake.requests} == {"Bearer df_mine"}


def test_one_is_used_again_after_a_rollback(server: Server, kind: Any) -> None:
    prepared: list[str] = []

    def prepare(sandbox: Any) -> None:
        prepared.append(sandbox.id)

    async def scenario() -> None:
        pool = pool_of(kind, server, prepare=prepare, ttl_seconds=100)
        assert pool.status() == PoolStatus(2, 0, 0, 0)
        for _ in range(3):
            sandbox = await settled(pool.acquire().get())
            assert sandbox.id == "sb-1"
            assert pool.status() == PoolStatus(2, 0, 1, 0)
            await settled(pool.release(sandbox))
            assert pool.status() == PoolStatus(2, 1, 0, 0)
        await settled(pool.close())

    asyncio.run(scenario())
    assert prepared == ["sb-1"]
    rollbacks = server.fake.seen("POST", f"{CREATE}/sb-1/rollback")
    assert [seen.json for seen in rollbacks] == [{"snapshot_id": "snap-1", "env": {}}] * 3
    taken = server.fake.seen("POST", f"{CREATE}/sb-1/snapshots")[0].json
    assert taken == {"retain_seconds": 160}, "a snapshot that nobody deletes would stay for ever"
    assert server.deleted() == {"sb-1", "snap-1"}


def test_one_that_cannot_be_reset_is_replaced(server: Server, kind: Any) -> None:
    async def scenario() -> None:
        pool = pool_of(kind, server, 1)
        sandbox = await settled(pool.acquire().get())
        server.fake.on("POST", f"{CREATE}/sb-1/rollback", refusal(409, "snapshot_corrupt"))
        await settled(pool.release(sandbox))
        assert server.deleted() == {"sb-1", "snap-1"}
        assert pool.status() == PoolStatus(1, 0, 0, 0)
        assert (await settled(pool.acquire().get())).id == "sb-2"

    asyncio.run(scenario())


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "failed"])
def test_one_whose_time_is_over_is_replaced(server: Server, kind: Any, is_gone: bool) -> None:
    async def scenario() -> None:
        pool = pool_of(kind, server, 1)
        await settled(pool.release(await settled(pool.acquire().get())))
        failed = Reply(200, sandbox_body(id="sb-1", status="failed"))
        server.fake.on("GET", f"{CREATE}/sb-1", refusal(404, "not_found") if is_gone else failed)
        assert (await settled(pool.acquire().get())).id == "sb-2"
        assert pool.status() == PoolStatus(1, 0, 1, 0)
        assert "snap-1" in server.deleted()

    asyncio.run(scenario())


def test_a_full_pool_says_so_in_time(server: Server, kind: Any) -> None:
    async def scenario() -> None:
        pool = pool_of(kind, server, 1)
        await settled(pool.acquire().get())
        with pytest.raises(PoolFull, match="all 1 sandboxes"):
            await settled(pool.acquire(timeout_seconds=0.01).get())

    asyncio.run(scenario())


def test_what_cannot_be_made_leaves_its_place_free(server: Server, kind: Any) -> None:
    def failing(_: Any) -> None:
        raise KeyError("prepare")

    async def scenario() -> None:
        pool = pool_of(kind, server, 1, prepare=failing)
        for _ in range(2):
            with pytest.raises(KeyError):
                await settled(pool.acquire().get())
            assert pool.status() == PoolStatus(1, 0, 0, 0)

    asyncio.run(scenario())
    assert server.deleted() == {"sb-1", "sb-2"}


def test_a_closed_pool_gives_nothing_and_takes_everything(server: Server, kind: Any) -> None:
    async def scenario() -> None:
        pool = pool_of(kind, server)
        sandbox = await settled(pool.acquire().get())
        await settled(pool.close())
        await settled(pool.release(sandbox))
        with pytest.raises(ClosedPool):
            await settled(pool.acquire().get())
        with pytest.raises(ValueError, match="at least one"):
            pool_of(kind, server, 0)

    asyncio.run(scenario())
    assert server.deleted() == {"sb-1", "snap-1"}


def test_what_is_not_of_the_pool_is_refused(server: Server, kind: Any) -> None:
    async def scenario() -> None:
        pool, other = pool_of(kind, server), pool_of(kind, server)
        sandbox = await settled(other.acquire().get())
        with pytest.raises(ValueError, match="not in use of this pool"):
            await settled(pool.release(sandbox))

    asyncio.run(scenario())


def test_threads_share_a_pool(server: Server) -> None:
    failures: list[BaseException] = []
    users: dict[str, int] = {}
    lock = threading.Lock()

    def work() -> None:
        try:
            for _ in range(5):
                with pool.acquire() as sandbox:
                    with lock:
                        users[sandbox.id] = users.get(sandbox.id, 0) + 1
                        assert users[sandbox.id] == 1, "two have the same"
                    sandbox.exec("true")
                    with lock:
                        users[sandbox.id] -= 1
        except BaseException as error:
            failures.append(error)

    with pool_of(SandboxPool, server, 2) as pool:
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert server.made == 2
    assert server.deleted() == {"sb-1", "sb-2", "snap-1", "snap-2"}


def test_tasks_wait_for_each_other(server: Server) -> None:
    async def scenario() -> None:
        async with pool_of(AsyncSandboxPool, server, 1) as pool:

            async def work() -> None:
                async with pool.acquire() as sandbox:
                    await sandbox.exec("true")

            await asyncio.gather(*(work() for _ in range(5)))
            assert pool.status() == PoolStatus(1, 1, 0, 0)

    asyncio.run(scenario())
    assert server.made == 1


@ways
def test_a_cancelled_user_gives_back(server: Server, cancel: Cancel) -> None:
    async def scenario() -> None:
        pool = pool_of(AsyncSandboxPool, server, 1)
        inside = asyncio.Event()

        async def use() -> None:
            async with pool.acquire():
                inside.set()
                await asyncio.Event().wait()

        await cancel(use, inside.is_set)
        assert pool.status() in (PoolStatus(1, 1, 0, 0), PoolStatus(1, 0, 0, 0))
        assert pool.status().in_use == 0

    asyncio.run(scenario())


@ways
def test_a_cancelled_acquire_leaves_its_place_free(server: Server, cancel: Cancel) -> None:
    preparing = threading.Event()

    async def never(_: Any) -> None:
        preparing.set()
        await asyncio.Event().wait()

    async def scenario() -> None:
        pool = pool_of(AsyncSandboxPool, server, 1, prepare=never)

        async def use() -> None:
            await pool.acquire().get()

        await cancel(use, preparing.is_set)
        assert pool.status() == PoolStatus(1, 0, 0, 0)

    asyncio.run(scenario())
    assert {f"sb-{number + 1}" for number in range(server.made)} == server.deleted()


def test_the_errors_are_of_this_package() -> None:
    assert issubclass(PoolFull, DayflyError)
    assert issubclass(PoolFull, TimeoutError)
