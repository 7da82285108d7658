"""A stage for the scenarios of tests/model: a sandbox, real or rehearsed, and how runs are staged.

With a daemon the calls are carried out. Without one each call gets the result that stands beside
it in the script, so that the loop and the wire formats are tested all the same.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from agent_worlds import CREATE, ONE, Worlds
from fake_daemon import FakeDaemon, Reply, refusal, sandbox_body

from dayfly import GuestUnavailable, ToolResult
from dayfly._effects import Ask
from dayfly._tool_calls import call_tool_aloud

MODEL = Path(__file__).parents[3] / "tests" / "model"
sys.path.insert(0, str(MODEL))

SECONDS_MAX = 30.0


def load(path: Path) -> Any:
    """A script of tests/model, which is no package."""
    return importlib.import_module("scripted_model.script").load_script(path)


def serve(script: Any) -> Any:
    return importlib.import_module("scripted_model.server").ScriptedModel(script)


def calls_of(script: Any) -> list[Any]:
    return [
        part
        for turns in script.conversations
        for turn in turns
        for part in turn.content
        if not isinstance(part, str)
    ]


class Rehearsal:
    """Calls that are not carried out: each has the result that the script has for it."""

    def __init__(self, script: Any, fake: FakeDaemon) -> None:
        self._calls = calls_of(script)
        self._fake = fake
        self._is_lost = False
        self._released = threading.Event()
        Worlds(fake, is_async=False).with_snapshots()
        self._with_forks(script.run.get("candidates", 0))

    def call(
        self, target: Any, selection: Any, name: str, arguments: Any
    ) -> Generator[Any, Any, ToolResult]:
        """In place of ``call_tool_aloud``."""
        planned = self._planned(name, arguments)
        if not planned.fits:
            # Arguments that do not fit are refused by the real thing, without a sandbox.
            return (yield from call_tool_aloud(target, selection, name, arguments))
        if self._is_lost:
            raise GuestUnavailable("the guest is gone", code="guest_unavailable")
        if planned.rehearsal is None:
            # It takes until the caller gives up.
            yield Ask(self._hang, ())
        given: dict[str, Any] = planned.rehearsal or {}
        return ToolResult(given["text"], given.get("is_error", False))

    def lose(self) -> None:
        self._is_lost = True
        self._fake.on("GET", ONE, refusal(404, "not_found"))

    def _planned(self, name: str, arguments: Any) -> Any:
        for number, one in enumerate(self._calls):
            if one.tool == name and _fits(one, arguments):
                # An endless model says the same again and again.
                return self._calls.pop(number) if len(self._calls) > 1 else one
        raise AssertionError(f"the script has no call {name} {arguments}")

    def _hang(self) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._released.wait(SECONDS_MAX)
        return asyncio.sleep(SECONDS_MAX)

    def _with_forks(self, count: int) -> None:
        made = [sandbox_body(id=f"sb-{number}") for number in range(count)]
        self._fake.on("POST", f"{ONE}/fork-tree", Reply(201, {"children": made}))
        for number in range(count):
            promoted = {"winner": f"sb-{number}", "tree_id": "t"}
            self._fake.on("POST", f"{CREATE}/sb-{number}/promote", Reply(200, promoted))
            self._fake.on("DELETE", f"{CREATE}/sb-{number}", Reply(204))


def _fits(planned: Any, arguments: Any) -> bool:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if "{{" in planned.arguments_text:
        return True
    try:
        return json.loads(given) == json.loads(planned.arguments_text)
    except ValueError:
        return given == planned.arguments_text


def interrupt_soon() -> None:
    """Ctrl-C, from outside, as soon as this thread gets on."""
    threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()


def interrupt_when_asked(model: Any, requests: int) -> None:
    """Ctrl-C as soon as the model has so many requests."""

    def watch() -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while len(model.requests) < requests and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch).start()


def held_turn(script: Any) -> int | None:
    """The number of the request that is held, from 1."""
    for number, turn in enumerate(script.conversations[0], 1):
        if turn.hold:
            return number
    return None


def act_before_call(script: Any, number: int) -> str | None:
    """What happens before, or during, a call."""
    acts: list[Mapping[str, Any]] = script.run.get("acts", [])
    return next((one["do"] for one in acts if one.get("before_call") == number), None)


def acts_before_task(script: Any, number: int) -> list[Mapping[str, Any]]:
    acts: list[Mapping[str, Any]] = script.run.get("acts", [])
    return [one for one in acts if one.get("before_task") == number]
