"""Who deletes a sandbox, and when."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from fake_daemon import SANDBOX, FakeDaemon, Reply, Seen, refusal, sandbox_body

from dayfly import AsyncSandbox, Progress, Sandbox

CREATE = "/v1/sandboxes"
ONE = f"{CREATE}/{SANDBOX}"


def options(fake: FakeDaemon) -> dict[str, Any]:
    return {"api_url": fake.url, "api_key": "k"}


def test_the_end_of_with_deletes(fake: FakeDaemon) -> None:
    with Sandbox("base", **options(fake)):
        assert not fake.seen("DELETE", ONE)
    assert len(fake.seen("DELETE", ONE)) == 1


def test_an_interrupt_deletes(fake: FakeDaemon) -> None:
    with pytest.raises(KeyboardInterrupt), Sandbox("base", **options(fake)):
        raise KeyboardInterrupt
    assert len(fake.seen("DELETE", ONE)) == 1


def test_an_interrupt_while_it_is_made_leaves_nothing_behind(fake: FakeDaemon) -> None:
    baking = refusal(503, "template_baking", "0.1", percent=1)
    fake.on("POST", CREATE, baking, Reply(201, sandbox_body()))

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Sandbox("base", on_progress=stop, **options(fake))
    first, second = fake.seen("POST", CREATE)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert len(fake.seen("DELETE", ONE)) == 1


def test_a_cancelled_create_leaves_nothing_behind(fake: FakeDaemon) -> None:
    def slowly(_: Seen) -> Reply:
        time.sleep(0.5)
        return Reply(201, sandbox_body())

    fake.on("POST", CREATE, slowly, Reply(201, sandbox_body()))

    async def scenario() -> None:
        async def creating() -> AsyncSandbox:
            return await AsyncSandbox.create("base", **options(fake))

        task = asyncio.create_task(creating())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert len(fake.seen("DELETE", ONE)) == 1


def test_an_error_inside_is_not_hidden_by_a_failing_delete(fake: FakeDaemon) -> None:
    fake.on("DELETE", ONE, refusal(500, "internal"))
    with pytest.raises(ZeroDivisionError), Sandbox("base", **options(fake)):
        _ = 1 // 0


def test_persistent_ones_stay_until_they_are_killed(fake: FakeDaemon) -> None:
    fake.on("POST", CREATE, Reply(201, sandbox_body(persistent=True)))
    with Sandbox("base", persistent=True, **options(fake)) as sandbox:
        pass
    sandbox.close()
    assert not fake.seen("DELETE", ONE)
    sandbox.kill()
    assert len(fake.seen("DELETE", ONE)) == 1


def test_deleting_what_is_gone_is_fine(fake: FakeDaemon) -> None:
    fake.on("DELETE", ONE, refusal(404, "not_found"))
    Sandbox("base", **options(fake)).delete()


def test_the_end_of_async_with_deletes(fake: FakeDaemon) -> None:
    async def scenario() -> None:
        async with AsyncSandbox.create("base", **options(fake)):
            pass
        with pytest.raises(KeyError):
            async with await AsyncSandbox.create("base", **options(fake)):
                raise KeyError

    asyncio.run(scenario())
    assert len(fake.seen("DELETE", ONE)) == 2
