"""One context: an interpreter, the runs that wait for it, and those that it has done.

    run -> waiting -> under way -> ended        (one at a time, in the order of asking)
              |           |
              |           +- over its time: interrupted, and ended when that does not help
              +- over its time: ended, and never begun

An interpreter that has ended is started again by the next run, which says that the state is lost.
"""

import asyncio
import collections
import time

from . import events
from .driver import StartFailed
from .limits import (
    INTERRUPT_AGAIN_SECONDS,
    INTERRUPT_SECONDS_MAX,
    KEPT_RUNS_MAX,
    KILL_SECONDS_MAX,
    WAITING_RUNS_MAX,
)
from .run_log import RunLog


class Refused(Exception):
    """Nothing was done. `code` is for programs, the text for people."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Run:
    def __init__(self, name, code, timeout_ms):
        self.name = name
        self.code = code
        self.timeout_ms = timeout_ms
        self.log = RunLog()
        # What cut it short, if something did: `timed_out` or `interrupted`.
        self.cut = None
        self.asked = time.monotonic()
        self.started = None
        # Ends it if it still waits when its time is over.
        self.alarm = None

    def seconds_left(self):
        """The limit counts from the request: whoever set it waits since then."""
        if self.timeout_ms is None:
            return None
        return max(self.asked + self.timeout_ms / 1000 - time.monotonic(), 0)

    def begin(self):
        self.started = time.monotonic()
        self.waits_no_more()

    def waits_no_more(self):
        if self.alarm is not None:
            self.alarm.cancel()

    def end(self, status, execution_count):
        self.waits_no_more()
        begun = self.started or time.monotonic()
        duration_ms = int((time.monotonic() - begun) * 1000)
        self.log.add(
            {
                "type": "end",
                "status": status,
                "execution_count": execution_count,
                "duration_ms": duration_ms,
            }
        )


class Context:
    def __init__(self, name, language, cwd, make_driver):
        self.name = name
        self.language = language
        self.cwd = cwd
        self.created_unix_ms = int(time.time() * 1000)
        self._make_driver = make_driver
        self._driver = None
        self._runs = collections.OrderedDict()
        self._waiting = collections.deque()
        self._current = None
        self._performing = None
        self._worker = None
        self._changing = asyncio.Lock()
        self._execution_count = 0

    async def start(self, driver=None):
        if driver is not None:
            self._driver = driver
            return
        self._driver = self._make_driver()
        try:
            await self._driver.start(self.cwd)
        except StartFailed:
            await self._discard_driver()
            raise

    def describe(self):
        return {
            "context": self.name,
            "language": self.language,
            "state": self._state(),
            "execution_count": self._execution_count,
            "created_unix_ms": self.created_unix_ms,
        }

    def _state(self):
        if self._current is not None or self._waiting or self._changing.locked():
            return "busy"
        return "dead" if self._is_dead() else "idle"

    def _is_dead(self):
        return self._driver is None or self._driver.ended.done()

    def run(self, name, code, timeout_ms):
        """The run of that name, begun now if there is none."""
        known = self._runs.get(name)
        if known is not None:
            if code is not None and code != known.code:
                raise Refused("invalid", f"run {name} has another code")
            return known
        if code is None:
            raise Refused("not_found", f"no run {name} in context {self.name}")
        if len(self._waiting) >= WAITING_RUNS_MAX:
            raise Refused("too_many", f"{WAITING_RUNS_MAX} runs wait for context {self.name}")
        run = Run(name, code, timeout_ms)
        self._runs[name] = run
        self._waiting.append(run)
        if timeout_ms is not None:
            loop = asyncio.get_running_loop()
            run.alarm = loop.call_later(timeout_ms / 1000, self._give_up_waiting, run)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._work())
        return run

    def _give_up_waiting(self, run):
        if run in self._waiting:
            self._waiting.remove(run)
            self._end_unbegun(run)

    def _end_unbegun(self, run):
        text = (
            f"context {self.name} was busy with another run for the whole limit; "
            "interrupt that one, or use a context of its own"
        )
        run.log.add(events.error("ContextBusy", text))
        run.end("timed_out", self._execution_count)

    async def _work(self):
        while self._waiting:
            self._current = self._waiting.popleft()
            try:
                await self._perform(self._current)
            finally:
                self._current = None
                self._forget_old_runs()

    def _forget_old_runs(self):
        ended = [name for name, run in self._runs.items() if run.log.is_ended]
        for name in ended[: max(len(ended) - KEPT_RUNS_MAX, 0)]:
            del self._runs[name]

    async def _perform(self, run):
        run.begin()
        if self._is_dead() and not await self._revive(run):
            return
        if run.seconds_left() == 0:
            self._end_unbegun(run)
            return
        driver = self._driver
        self._performing = asyncio.ensure_future(driver.execute(run.code, run.log.add))
        await asyncio.wait({self._performing}, timeout=run.seconds_left())
        if not self._performing.done():
            run.cut = "timed_out"
            await self._interrupt(driver, self._performing)
        if not self._performing.done():
            await self._end_stubborn(run)
            return
        if self._performing.cancelled() or run.log.is_ended:
            # The context was restarted or deleted; whoever did it has ended the run.
            return
        outcome = self._performing.result()
        self._execution_count = outcome.execution_count
        if outcome.status == "died" and run.cut is not None:
            await self._end_stubborn(run)
            return
        if outcome.needs_restart:
            await self._replace_driver()
        if outcome.status == "died":
            self._add_death(run)
        run.end(self._status(run, outcome), self._execution_count)

    @staticmethod
    def _status(run, outcome):
        if outcome.status == "died":
            return "died"
        if run.cut == "timed_out":
            return "timed_out"
        if run.cut == "interrupted" and outcome.status == "error":
            return "interrupted"
        return outcome.status

    async def _revive(self, run):
        """Starts an interpreter for a run that found none. Says whether there is one now."""
        how = self._how_it_ended()
        await self._replace_driver()
        if run.log.is_ended:
            # The context was restarted or deleted meanwhile; whoever did it has ended the run.
            return False
        if self._driver is None:
            text = f"{how}; a new one for context {self.name} could not be started"
            run.log.add(events.error("ContextDied", text))
            run.end("died", self._execution_count)
            return False
        run.log.add(events.restarted(how))
        return True

    def _how_it_ended(self):
        return "it could not be started" if self._driver is None else self._driver.ended.result()

    def _add_death(self, run):
        text = (
            f"{self._how_it_ended()}; the state of context {self.name} is lost, "
            "and the next run starts a new interpreter"
        )
        run.log.add(events.error("ContextDied", text))

    async def _end_stubborn(self, run):
        """An interrupt did not end the run alone. The context goes on with a new interpreter."""
        await self._replace_driver()
        text = (
            "the run could not be interrupted without its interpreter; "
            f"context {self.name} was started anew and its state is lost"
        )
        run.log.add(events.error("ContextRestarted", text))
        # Whoever set the limit waits to hear of it; what it cost is in the error.
        status = "timed_out" if run.cut == "timed_out" else "died"
        run.end(status, self._execution_count)

    async def interrupt(self):
        run, driver, performing = self._current, self._driver, self._performing
        if run is None or driver is None or performing is None or performing.done():
            return
        run.cut = run.cut or "interrupted"
        if not (driver.needs_repeated_interrupts or driver.may_be_ended_by_interrupt):
            driver.interrupt()
            return
        await self._interrupt(driver, performing)
        if not performing.done() and driver.may_be_ended_by_interrupt:
            driver.kill()

    @staticmethod
    async def _interrupt(driver, performing):
        """Interrupts and waits for the effect, not longer than a user would."""
        deadline = time.monotonic() + INTERRUPT_SECONDS_MAX
        driver.interrupt()
        while not performing.done() and (left := deadline - time.monotonic()) > 0:
            seconds = min(left, INTERRUPT_AGAIN_SECONDS)
            await asyncio.wait({performing}, timeout=seconds)
            if driver.needs_repeated_interrupts and not performing.done():
                driver.interrupt()

    async def restart(self):
        """A new interpreter. Runs that wait or are under way end as interrupted."""
        self._end_runs("ContextRestarted", f"context {self.name} was restarted")
        await self._replace_driver()
        if self._driver is None:
            raise Refused("failed", f"context {self.name} could not be started again")

    async def delete(self):
        self._end_runs("ContextDeleted", f"context {self.name} was deleted")
        async with self._changing:
            await self._discard_driver()

    def _end_runs(self, name, text):
        under_way = [self._current] if self._current is not None else []
        runs = under_way + list(self._waiting)
        self._waiting.clear()
        for run in runs:
            run.log.add(events.error(name, text))
            run.end("interrupted", self._execution_count)
        if under_way and self._performing is not None:
            self._performing.cancel()

    async def _replace_driver(self):
        async with self._changing:
            await self._discard_driver()
            self._execution_count = 0
            try:
                await self.start()
            except StartFailed:
                # The next run says so.
                self._driver = None

    async def _discard_driver(self):
        driver, self._driver = self._driver, None
        if driver is None:
            return
        if self._performing is not None:
            self._performing.cancel()
        driver.kill()
        if driver.pid is not None:
            await asyncio.wait({driver.ended}, timeout=KILL_SECONDS_MAX)
        await driver.close()
