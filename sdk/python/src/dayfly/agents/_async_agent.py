"""As ``agent``, for asyncio."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Sequence

from .._async import AsyncSession
from .._async_client import AsyncClient, async_session_of
from .._async_ending import run_and_undo, run_to_end
from .._async_sandbox import AsyncSandbox
from .._closing import AsyncClosing
from .._handles import info_in, session_in
from .._keywords import known_keywords
from .._pulling import Pulled, Sign
from ._best_of import BestOf, Judge, Trial, best_of, checked_count, judged, score_of
from ._budget import Budget
from ._checkpoints import CHECKPOINTS_MAX
from ._core import AgentCore, Keeping, Task, abandon
from ._events import AgentResult, Event
from ._loop import BeforeExecution, Checkpointing, OnEvent
from ._models import Model, ModelFunction
from ._options import STEP_TIMEOUT_SECONDS, place_of, rules_of
from ._place import AgentSandbox, Given, Scope
from ._transcript import Transcript


class AsyncAgent(AgentCore[AsyncSession], AsyncClosing):
    """As ``Agent``, for asyncio: calls are awaited, and the client of the model is an async one.

    Functions that it is given may be coroutine functions. A run that is cancelled deletes the
    sandbox that was made for it before the cancellation goes on.
    """

    @known_keywords
    def __init__(
        self,
        model: Model | ModelFunction,
        sandbox: AsyncSandbox | None = None,
        *,
        tools: Sequence[str] | None = None,
        budget: Budget | None = None,
        system: str | None = None,
        template: str | None = None,
        from_snapshot: str | None = None,
        ttl_seconds: int | None = None,
        egress_allowlist: Iterable[str] | None = None,
        scope: Scope | None = None,
        user: str | None = None,
        step_timeout_seconds: float | None = STEP_TIMEOUT_SECONDS,
        before_execution: BeforeExecution | None = None,
        checkpoint: Checkpointing | None = None,
        undo_tool: bool = False,
        max_checkpoints: int = CHECKPOINTS_MAX,
        keep_checkpoints: bool = False,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> None:
        rules = rules_of(
            model,
            tools=tools,
            budget=budget,
            system=system,
            step_timeout_seconds=step_timeout_seconds,
            before_execution=before_execution,
            checkpoint=checkpoint,
            undo_tool=undo_tool,
            is_async=True,
        )
        place = place_of(
            sandbox,
            template=template,
            from_snapshot=from_snapshot,
            ttl_seconds=ttl_seconds,
            egress_allowlist=egress_allowlist,
            scope=scope,
            user=user,
        )
        if sandbox is None:
            session = async_session_of(client, api_url, api_key)
        else:
            session = session_in(sandbox)
        super().__init__(session, rules, place, Keeping(max_checkpoints, keep_checkpoints))

    @known_keywords
    async def run(
        self,
        task: str | None = None,
        *,
        transcript: Transcript | None = None,
        on_event: OnEvent | None = None,
    ) -> AgentResult:
        """As ``Agent.run``."""
        conducting = self._conduct(Task(task, transcript), on_event)
        return await run_and_undo(self._session, conducting)

    @known_keywords
    async def stream(
        self, task: str | None = None, *, transcript: Transcript | None = None
    ) -> AsyncIterator[Event]:
        """As ``Agent.stream``. Who stops before the end has to ``aclose()`` the iterator."""
        operation = self._conduct(Task(task, transcript), Sign())
        pulled: Pulled[AgentResult] = Pulled()
        pulled.begin(operation)
        is_over = False
        try:
            while True:
                try:
                    said = await run_and_undo(self._session, pulled.next())
                except BaseException:
                    is_over = True
                    raise
                if said is None:
                    is_over = True
                    return
                yield said[0]
        finally:
            if not is_over:
                await run_to_end(self._session, abandon(operation))

    async def undo(self, steps: int = 1) -> int:
        """As ``Agent.undo``."""
        return await run_to_end(self._session, self._undo(steps))

    @known_keywords
    async def best_of(
        self,
        count: int,
        task: str,
        score: Judge[AsyncSandbox] | None = None,
        *,
        stop_at: float | None = None,
        max_parallel: int = 4,
    ) -> BestOf[AsyncSandbox]:
        """As ``Agent.best_of``; ``score`` may be a coroutine function."""
        checked_count(count)
        info = await run_and_undo(self._session, self._place.enter(), self._place.leave)
        try:

            async def attempt(child: AsyncSandbox) -> Trial:
                result = await self._alone(child).run(task)
                points = None if score is None else score(result, child)
                return judged(result, await points if inspect.isawaitable(points) else points)

            found = await AsyncSandbox.of(self._session, info).explore(
                [attempt] * count,
                score_of,
                stop_at=stop_at,
                max_parallel=max_parallel,
                ttl_seconds=self._place.ttl_seconds,
            )
        finally:
            await run_to_end(self._session, self._place.leave(info))
        return best_of(found)

    def _alone(self, sandbox: AsyncSandbox) -> AsyncAgent:
        """An agent of the same rules in a sandbox of its own."""
        one = AsyncAgent.__new__(AsyncAgent)
        place = AgentSandbox(Given(info_in(sandbox)))
        super(AsyncAgent, one).__init__(self._session, self._rules, place, self._keeping)
        return one

    async def close(self) -> None:
        """Deletes the sandbox of ``scope="session"``."""
        await run_to_end(self._session, self._place.close())

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            # Connections that stay open until the loop is gone would be complained about.
            self._session.close_idle()
