"""Agents, for code that waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .._closing import Closing
from .._handles import info_in, session_in
from .._keywords import known_keywords
from .._pulling import Pulled, Sign
from .._sync import Session
from ..client import Client, session_of
from ..sandbox import Sandbox
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


class Agent(AgentCore[Session], Closing):
    """A model that works in a sandbox: it proposes, the sandbox carries out, it sees the result.

    ::

        agent = Agent(AnthropicModel(anthropic.Anthropic(), "claude-..."), budget=Budget(steps=20))
        result = agent.run("How many primes are there below a million?")
        print(result.text, result.reason, result.spent)

    - ``model``: ``AnthropicModel``, ``OpenAIChatModel`` or ``OpenAIResponsesModel`` of a client, or
      any function ``(messages, tools) -> Turn``.
    - ``sandbox``: one of yours, which is not deleted. Without it each run makes one from
      ``template`` (or ``from_snapshot``) and deletes it, whatever happens; ``ttl_seconds`` ends it
      when this process is killed. Its network is closed but for ``egress_allowlist``.
    - ``scope``: ``"task"``, the default; ``"session"``: one sandbox for all runs, until ``close``;
      ``"user"`` with ``user="ann"``: the sandbox of that name, which sleeps when it is idle.
    - ``tools``: names of tools, by default all of ``Sandbox.tools``. ``system``: for the model.
    - ``budget``: see ``Budget``. ``step_timeout_seconds``: for each tool call.
    - ``before_execution``: gets each ``ToolCall`` before it is carried out, and gives ``None`` or a
      ``Refusal``. It is advice: the sandbox is the boundary.
    - ``checkpoint="step"``: a snapshot before each tool call that may change something, so that
      ``undo`` can go back; with ``undo_tool`` the model can as well. There are at most
      ``max_checkpoints``; they are deleted at the end of the run unless ``keep_checkpoints``.
    """

    @known_keywords
    def __init__(
        self,
        model: Model | ModelFunction,
        sandbox: Sandbox | None = None,
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
        client: Client | None = None,
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
            is_async=False,
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
        session = session_in(sandbox) if sandbox else session_of(client, api_url, api_key)
        super().__init__(session, rules, place, Keeping(max_checkpoints, keep_checkpoints))

    @known_keywords
    def run(
        self,
        task: str | None = None,
        *,
        transcript: Transcript | None = None,
        on_event: OnEvent | None = None,
    ) -> AgentResult:
        """Works on a task until the model is done or a budget is used up.

        ``transcript`` is a conversation to go on with, of this agent or a stored one. What went
        wrong with the model or the sandbox is in the result; ``transcript`` of the agent has all
        that was said, also after an exception.
        """
        return self._session.run(self._conduct(Task(task, transcript), on_event))

    @known_keywords
    def stream(
        self, task: str | None = None, *, transcript: Transcript | None = None
    ) -> Iterator[Event]:
        """As ``run``, as events to iterate over; the last is ``RunEnded``.

        Who stops before it ends the run: close the iterator, or let it go.
        """
        operation = self._conduct(Task(task, transcript), Sign())
        pulled: Pulled[AgentResult] = Pulled()
        pulled.begin(operation)
        is_over = False
        try:
            while True:
                try:
                    said = self._session.run(pulled.next())
                except BaseException:
                    is_over = True
                    raise
                if said is None:
                    is_over = True
                    return
                yield said[0]
        finally:
            if not is_over:
                self._session.run(abandon(operation))

    def undo(self, steps: int = 1) -> int:
        """Undoes the last tool calls that may have changed something: files, memory, interpreters.

        While a run goes on, in a callback of ``CallEnded`` or of a turn, or in
        ``before_execution``; or after it with ``keep_checkpoints`` in a sandbox that is still
        there. The model gets to know. Gives how many were undone; ``UndoRefused`` if there are not
        so many checkpoints, or while a call is carried out.
        """
        return self._session.run(self._undo(steps))

    @known_keywords
    def best_of(
        self,
        count: int,
        task: str,
        score: Judge[Sandbox] | None = None,
        *,
        stop_at: float | None = None,
        max_parallel: int = 4,
    ) -> BestOf[Sandbox]:
        """Has a task done several times, each in a fork of the same moment, and keeps the best.

        - ``score(result, sandbox)``: judges a run, for example by the tests in its sandbox; more is
          better. Without it a run counts that came to its end.
        - ``stop_at``: once a score reaches it, no further run is begun.

        ``winner`` is the sandbox of the best run, and yours to delete; the others are deleted.
        Budgets count for each run.
        """
        checked_count(count)
        info = self._session.run(self._place.enter())
        base = Sandbox.of(self._session, info)
        try:

            def attempt(child: Sandbox) -> Trial:
                result = self._alone(child).run(task)
                return judged(result, None if score is None else score(result, child))

            found = base.explore(
                [attempt] * count,
                score_of,
                stop_at=stop_at,
                max_parallel=max_parallel,
                ttl_seconds=self._place.ttl_seconds,
            )
        finally:
            self._session.run(self._place.leave(info))
        return best_of(found)

    def _alone(self, sandbox: Sandbox) -> Agent:
        """An agent of the same rules in a sandbox of its own."""
        one = Agent.__new__(Agent)
        place = AgentSandbox(Given(info_in(sandbox)))
        super(Agent, one).__init__(self._session, self._rules, place, self._keeping)
        return one

    def close(self) -> None:
        """Deletes the sandbox of ``scope="session"``."""
        self._session.run(self._place.close())
