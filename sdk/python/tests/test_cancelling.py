"""What is cancelled leaves nothing behind, whoever cancels it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_daemon import SANDBOX, Answer, FakeDaemon, Reply, Seen, sandbox_body

from dayfly import AsyncSandbox
from dayfly._async_ending import run_and_undo, run_to_end

CREATE = "/v1/sandboxes"
ONE = f"{CREATE}/{SANDBOX}"
FORK = f"{ONE}/fork"
CHILDREN = ["sb-child-1", "sb-child-2"]

Cancel = Callable[[Callable[[], Awaitable[Any]], Callable[[], bool]], Awaitable[None]]


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


class FirstWaits:
    """The first request waits until there is a second, as one whose answer is on its way."""

    def __init__(self, answer: Reply) -> None:
        self._answer = answer
        self._second = threading.Event()
        self.count = 0

    def __call__(self, _: Seen) -> Answer:
        self.count += 1
        if self.count == 1:
            self._second.wait(20)
        else:
            self._second.set()
        return self._answer

    def has_arrived(self) -> bool:
        return self.count > 0


async def by_a_time_limit(call: Callable[[], Awaitable[Any]], _: Callable[[], bool]) -> None:
    timeout: Any = getattr(asyncio, "timeout", None)
    if timeout is None:
        pytest.skip("asyncio.timeout came with Python 3.11")
    with pytest.raises(TimeoutError):
        async with timeout(0.2):
            await call()


async def by_a_task(call: Callable[[], Awaitable[Any]], is_time: Callable[[], bool]) -> None:
    async def work() -> None:
        await call()

    task = asyncio.create_task(work())
    await until(is_time)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_a_task_that_is_cancelled_again(
    call: Callable[[], Awaitable[Any]], is_time: Callable[[], bool]
) -> None:
    async def work() -> None:
        await call()

    task = asyncio.create_task(work())
    await until(is_time)
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.001)
    assert task.cancelled()


async def by_an_anyio_scope(call: Callable[[], Awaitable[Any]], _: Callable[[], bool]) -> None:
    anyio = pytest.importorskip("anyio", reason="pip install anyio")
    with anyio.move_on_after(0.2) as scope:
        await call()
    assert scope.cancelled_caught


async def by_an_anyio_group(
    call: Callable[[], Awaitable[Any]], is_time: Callable[[], bool]
) -> None:
    anyio = pytest.importorskip("anyio", reason="pip install anyio")

    async def work() -> None:
        await call()

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await until(is_time)
        group.cancel_scope.cancel()


WAYS: list[Cancel] = [
    by_a_time_limit,
    by_a_task,
    by_a_task_that_is_cancelled_again,
    by_an_anyio_scope,
    by_an_anyio_group,
]
ways = pytest.mark.parametrize("cancel", WAYS, ids=[way.__name__ for way in WAYS])


def options(fake: FakeDaemon) -> dict[str, Any]:
    return {"api_url": fake.url, "api_key": "k"}


@ways
def test_a_create_leaves_nothing_behind(fake: FakeDaemon, cancel: Cancel) -> None:
    answer = FirstWaits(Reply(201, sandbox_body()))
    fake.on("POST", CREATE, answer)

    async def scenario() -> None:
        await cancel(lambda: AsyncSandbox.create("base", **options(fake)), answer.has_arrived)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left"

    asyncio.run(scenario())
    assert len({seen.headers["idempotency-key"] for seen in fake.seen("POST", CREATE)}) == 1
    assert len(fake.seen("DELETE", ONE)) == 1


@ways
def test_a_create_by_async_with_leaves_nothing_behind(fake: FakeDaemon, cancel: Cancel) -> None:
    answer = FirstWaits(Reply(201, sandbox_body()))
    fake.on("POST", CREATE, answer)

    async def use() -> None:
        async with AsyncSandbox.create("base", **options(fake)):
            pytest.fail("it was made")

    asyncio.run(cancelled(cancel, use, answer.has_arrived))
    assert len(fake.seen("DELETE", ONE)) == 1


async def cancelled(
    cancel: Cancel, call: Callable[[], Awaitable[Any]], is_time: Callable[[], bool]
) -> None:
    await cancel(call, is_time)


@ways
def test_a_fork_leaves_nothing_behind(fake: FakeDaemon, cancel: Cancel) -> None:
    children = [sandbox_body(id=child) for child in CHILDREN]
    answer = FirstWaits(Reply(201, {"children": children}))
    fake.on("POST", FORK, answer)
    for child in CHILDREN:
        fake.on("DELETE", f"{CREATE}/{child}", Reply(204))

    async def scenario() -> None:
        sandbox = await AsyncSandbox.create("base", **options(fake))
        await cancel(lambda: sandbox.fork(2), answer.has_arrived)

    asyncio.run(scenario())
    for child in CHILDREN:
        assert len(fake.seen("DELETE", f"{CREATE}/{child}")) == 1


@ways
def test_the_end_of_async_with_deletes(fake: FakeDaemon, cancel: Cancel) -> None:
    async def scenario() -> None:
        inside = asyncio.Event()

        async def use() -> None:
            async with AsyncSandbox.create("base", **options(fake)):
                inside.set()
                await asyncio.Event().wait()

        await cancel(use, inside.is_set)

    asyncio.run(scenario())
    assert len(fake.seen("DELETE", ONE)) == len(fake.seen("POST", CREATE)) == 1


def test_a_sandbox_that_nobody_will_get_is_deleted(fake: FakeDaemon) -> None:
    """The answer and the cancellation come in the same turn of the loop."""

    async def scenario() -> None:
        async def work() -> AsyncSandbox:
            return await AsyncSandbox.create("base", **options(fake))

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        (inner,) = asyncio.all_tasks() - {task, asyncio.current_task()}
        inner.add_done_callback(lambda _: task.cancel())
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert len(fake.seen("DELETE", ONE)) == 1


def test_a_create_is_a_coroutine_that_a_task_can_be_made_of(fake: FakeDaemon) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(AsyncSandbox.create("base", **options(fake)))
        assert (await task).id == SANDBOX

    asyncio.run(scenario())


class OtherSession:
    """A session on a loop that is not asyncio's; it does nothing."""

    def __init__(self) -> None:
        self.transport = self
        self.is_shielded = False

    def shield(self) -> contextlib.AbstractContextManager[None]:
        self.is_shielded = True
        return contextlib.nullcontext()

    async def run(self, operation: str) -> str:
        return operation


@pytest.mark.parametrize("run", [run_to_end, run_and_undo])
def test_no_task_of_asyncio_is_made_on_another_loop(run: Any) -> None:
    session = OtherSession()
    with pytest.raises(StopIteration) as stopped:
        run(session, "done").send(None)
    assert stopped.value.value == "done"
    assert session.is_shielded == (run is run_to_end)
