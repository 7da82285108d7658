"""Several candidates, each in a fork of its own, of which the best is kept."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply, Seen, sandbox_body
from settled import settled

from dayfly import Exploration

CREATE = "/v1/sandboxes"
ONE = f"{CREATE}/{SANDBOX}"


def children(fake: FakeDaemon, count: int) -> None:
    made = [sandbox_body(id=f"sb-{number}") for number in range(count)]
    fake.on("POST", f"{ONE}/fork-tree", Reply(201, {"children": made}))
    for number in range(count):
        child = f"{CREATE}/sb-{number}"
        fake.on("POST", f"{child}/exec", ended)
        fake.on("POST", f"{child}/promote", Reply(200, {"winner": child, "tree_id": "t"}))
        fake.on("DELETE", child, Reply(204))


def ended(seen: Seen) -> Reply:
    command = seen.json["cmd"]
    return Reply(200, {"stdout": command, "stderr": "", "exit_code": int(command != "true")})


def explore(create: Create, candidates: list[Any], *more: Any, **options: Any) -> Exploration[Any]:
    async def scenario() -> Any:
        sandbox = await settled(create())
        return await settled(sandbox.explore(candidates, *more, **options))

    return asyncio.run(scenario())


def test_the_first_success_is_kept(fake: FakeDaemon, create: Create) -> None:
    children(fake, 3)
    found = explore(create, ["false", "true", "true"])
    assert [attempt.score for attempt in found.attempts] == [0.0, 1.0, 1.0]
    assert found.winner is not None
    assert found.winner.id == "sb-1"
    assert found.best is not None
    assert found.best.command == "true"
    assert fake.seen("POST", f"{CREATE}/sb-1/promote")[0].json == {"cleanup_siblings": True}


def test_functions_are_candidates(fake: FakeDaemon, create: Create) -> None:
    children(fake, 3)

    async def later(child: Any) -> float:
        return len((await child.exec("abc")).stdout)

    def now(child: Any) -> Any:
        outcome = child.exec("abc")
        return later(child) if hasattr(outcome, "__await__") and not outcome.close() else 3.0

    def failing(_: Any) -> None:
        raise KeyError("nothing")

    found = explore(create, [now, failing, "true"])
    scores = [attempt.score for attempt in found.attempts]
    assert scores == [3.0, None, 1.0]
    assert isinstance(found.attempts[1].error, KeyError)
    assert found.winner is not None
    assert found.winner.id == "sb-0"


def test_what_a_function_returns_is_judged(fake: FakeDaemon, create: Create) -> None:
    children(fake, 2)

    def long(_: Any) -> str:
        return "long"

    def longer(_: Any) -> str:
        return "longer"

    found = explore(create, [long, longer], len)
    assert [attempt.score for attempt in found.attempts] == [4.0, 6.0]


def test_it_stops_when_one_is_good_enough(fake: FakeDaemon, create: Create) -> None:
    children(fake, 4)
    found = explore(create, ["false", "true", "true", "true"], stop_at=1.0, max_parallel=1)
    assert [attempt.score for attempt in found.attempts] == [0.0, 1.0, None, None]
    assert not fake.seen("POST", f"{CREATE}/sb-2/exec")


def test_four_are_tried_at_once(fake: FakeDaemon, create: Create) -> None:
    children(fake, 9)
    lock = threading.Lock()
    state = {"now": 0, "most": 0}
    full = threading.Event()

    def busy(seen: Seen) -> Reply:
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
            if state["now"] == 4:
                full.set()
        assert full.wait(20)
        with lock:
            state["now"] -= 1
        return ended(seen)

    for number in range(9):
        fake.on("POST", f"{CREATE}/sb-{number}/exec", busy)
    explore(create, ["true"] * 9)
    assert state["most"] == 4


def test_nothing_is_left_when_all_failed(fake: FakeDaemon, create: Create) -> None:
    children(fake, 2)

    def failing(_: Any) -> None:
        raise KeyError

    found = explore(create, [failing, failing])
    assert (found.winner, found.best) == (None, None)
    assert fake.seen("DELETE", f"{CREATE}/sb-0")
    assert fake.seen("DELETE", f"{CREATE}/sb-1")


@pytest.mark.parametrize(
    ("candidates", "options", "error"),
    [([], {}, ValueError), ("true", {}, TypeError), (["true"], {"max_parallel": 0}, ValueError)],
)
def test_what_makes_no_sense_is_refused(
    fake: FakeDaemon, create: Create, candidates: Any, options: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        explore(create, candidates, **options)
    assert not fake.seen("POST", f"{ONE}/fork-tree")
