"""Agents of either kind at a fake daemon, with a model that follows a script."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from fake_daemon import SANDBOX, FakeDaemon, Reply, Seen, sandbox_body
from settled import settled

from dayfly.agents import (
    Agent,
    AgentResult,
    AsyncAgent,
    CallResult,
    Message,
    Results,
    ToolCall,
    Turn,
    Usage,
)

CREATE = "/v1/sandboxes"
ONE = f"{CREATE}/{SANDBOX}"
RAN: dict[str, Any] = {"stdout": "hi\n", "stderr": "", "exit_code": 0, "duration_ms": 100}


def shell(command: str = "ls", call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, "run_shell", {"command": command})


class Script:
    """A model that says its turns one after the other, the last again and again."""

    def __init__(self, *turns: Turn | Exception) -> None:
        self._turns = list(turns)
        self.seen: list[list[Message]] = []
        self.tools: list[dict[str, Any]] = []

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Turn:
        self.seen.append(messages)
        self.tools = tools
        turn = self._turns[min(len(self.seen), len(self._turns)) - 1]
        if isinstance(turn, Exception):
            raise turn
        return turn

    def results(self, request: int = -1) -> list[CallResult]:
        """The results that a request ended with."""
        last = self.seen[request][-1]
        assert isinstance(last, Results)
        return last.results


def calling(*calls: ToolCall, tokens: int = 10) -> Turn:
    return Turn("let me see", list(calls), Usage(tokens, 0))


DONE = Turn("done", usage=Usage(5, 5))


class Worlds:
    """One text for both kinds of agents."""

    def __init__(self, fake: FakeDaemon, *, is_async: bool) -> None:
        self.fake = fake
        self.is_async = is_async
        fake.on("POST", f"{ONE}/exec", Reply(200, RAN))

    def make(self, model: Any, **options: Any) -> Any:
        kind = AsyncAgent if self.is_async else Agent
        if "sandbox" not in options:
            options = {"api_url": self.fake.url, "api_key": "df_key", **options}
        return kind(model, **options)

    def settle(self, scenario: Callable[[], Any]) -> Any:
        """What a function gives, awaited if it has to be."""

        async def wait() -> Any:
            return await settled(scenario())

        return asyncio.run(wait())

    def run(self, agent: Any, *args: Any, **options: Any) -> AgentResult:
        return self.settle(lambda: agent.run(*args, **options))

    def is_deleted(self) -> bool:
        return bool(self.fake.seen("DELETE", ONE))

    def with_snapshots(self) -> None:
        """Has the daemon take snapshots: snap-1, snap-2, ..."""
        numbers = itertools.count(1)

        def take(_: Seen) -> Reply:
            name = f"snap-{next(numbers)}"
            self.fake.on("DELETE", f"/v1/snapshots/{name}", Reply(204))
            body = {"id": name, "sandbox_id": SANDBOX, "template": "base"}
            return Reply(201, body)

        self.fake.on("POST", f"{ONE}/snapshots", take)
        self.fake.on("POST", f"{ONE}/rollback", Reply(200, sandbox_body()))

    def deleted_snapshots(self) -> list[str]:
        found = [
            one.path.rpartition("/")[2] for one in self.fake.requests if one.method == "DELETE"
        ]
        return [name for name in found if name.startswith("snap-")]
