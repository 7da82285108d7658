"""Carries operations out with blocking sockets."""

from __future__ import annotations

import contextvars
import socket
import threading
import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ._connections import Pool, SyncBody
from ._effects import Ask, Effect, Know, Open, Operation, Read, Send, Sleep, Within
from ._facts import ClientFacts
from ._settings import Settings

T = TypeVar("T")


class Session:
    """Carries operations out, blocking the caller."""

    def __init__(self, facts: ClientFacts, pool: Pool) -> None:
        self.facts: ClientFacts = facts
        self.settings: Settings = facts.settings
        self.pool: Pool = pool

    def run(self, operation: Operation[T]) -> T:
        try:
            effect = next(operation)
            while True:
                try:
                    done = self._perform(effect)
                # All of them: an operation may have to clean up after a KeyboardInterrupt.
                except BaseException as error:
                    effect = operation.throw(error)
                else:
                    effect = operation.send(done)
        except StopIteration as stop:
            outcome: T = stop.value
            return outcome

    def connect(self) -> socket.socket:
        """A connection to the server for another protocol than HTTP, by the client's own rules."""
        return self.pool.connect(self.facts).socket

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return self.pool.send(self.facts, effect.request)
        if isinstance(effect, Open):
            return self.pool.open(self.facts, effect.request)
        if isinstance(effect, Read):
            assert isinstance(effect.body, SyncBody)
            return effect.body.read(effect.timeout)
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        if isinstance(effect, Know):
            return self.facts
        if isinstance(effect, Ask):
            return effect.function(*effect.arguments)
        if isinstance(effect, Within):
            return _within(effect)
        return self._together(list(effect.operations), effect.at_once)

    def _together(self, operations: list[Generator[Any, Any, Any]], at_once: int) -> list[Any]:
        threads = ThreadPoolExecutor(max_workers=max(1, at_once))
        try:
            futures: list[Future[Any]] = [threads.submit(self.run, one) for one in operations]
            return [future.exception() or future.result() for future in futures]
        finally:
            # After a KeyboardInterrupt nobody wants to wait for commands that still run.
            threads.shutdown(wait=False, cancel_futures=True)


def _within(effect: Within) -> Any:
    outcome: Future[Any] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(effect.function, *effect.arguments))
        except BaseException as error:
            outcome.set_exception(error)

    # A daemon: one that nobody waits for must not hold up the end of the program.
    threading.Thread(target=work, daemon=True).start()
    return outcome.result(max(0.0, effect.seconds))
