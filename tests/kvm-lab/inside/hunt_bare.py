"""The bare engine's part of the hunt: restores, copies of a machine at work, sleeps."""
import shutil
import time

import bare
from trial import Tally

# Enough to be at work: what it has in memory is there, and it has slept a few times.
TICKS_AT_WORK = 20
MORE_TICKS = 5
BOOTS_MAX = 5


class BareHunt:
    def __init__(self, tally: Tally, session_mib: int) -> None:
        self.tally = tally
        self.number = 0
        shutil.rmtree(bare.DIRECTORY, ignore_errors=True)
        bare.DIRECTORY.mkdir(parents=True)
        self.initrd = bare.make_initrd(session_mib)
        template = self.boot()
        self.template = template.save("template")
        template.remove()
        self.source: bare.BareMachine | None = None

    def boot(self) -> bare.BareMachine:
        """A machine at work. One that does not boot is counted, and the next one tried."""
        for _ in range(BOOTS_MAX):
            start = time.monotonic()
            self.number += 1
            try:
                machine = bare.boot(f"boot-{self.number}", self.initrd, TICKS_AT_WORK)
            except RuntimeError as error:
                files = tuple((bare.DIRECTORY / f"boot-{self.number}").glob("*.log"))
                self.tally.add("bare boot", "stalls", time.monotonic() - start, str(error), files)
                continue
            self.tally.add("bare boot", "answers", time.monotonic() - start)
            return machine
        raise RuntimeError(f"{BOOTS_MAX} bare machines in a row did not boot")

    def judge(self, kind: str, machine: bare.BareMachine, after: int, start: float) -> bool:
        """Whether a machine goes on, and if not how it ended."""
        wanted = after + MORE_TICKS
        if machine.goes_on(wanted, bare.ANSWER_SECONDS_MAX):
            self.tally.add(kind, "answers", time.monotonic() - start)
            return True
        seconds = time.monotonic() - start
        why = {"ticks": machine.ticks(), "wanted": wanted, **machine.state()}
        if machine.child.poll() is not None:
            end = "ends"
        else:
            end = "late" if machine.goes_on(wanted, bare.LATE_SECONDS_MAX) else "stalls"
        self.tally.add(kind, end, seconds, why, tuple(machine.directory.glob("*.log")))
        return False

    def create(self, at_once: int = 1) -> None:
        """Machines from the snapshot, as creates are. All of them run until each has been judged."""
        running = []
        try:
            for _ in range(at_once):
                start = time.monotonic()
                self.number += 1
                running.append((bare.restore(f"create-{self.number}", self.template), start))
            for machine, start in running:
                self.judge("bare restore", machine, self.template.ticks, start)
        finally:
            for machine, _ in running:
                machine.remove()

    def fork(self, count: int) -> None:
        """Copies of a machine at work, which goes on."""
        source = self.source = self.source or self.boot()
        self.number += 1
        saved = source.save(f"fork-{self.number}")
        start = time.monotonic()
        source.execute("cont")
        for child in range(count):
            started = time.monotonic()
            machine = bare.restore(f"child-{self.number}-{child}", saved)
            self.judge("bare child", machine, saved.ticks, started)
            machine.remove()
        if not self.judge("bare source", source, saved.ticks, start):
            self.drop_source()
        saved.memory.unlink()
        saved.devices.unlink()

    def sleep(self) -> None:
        """Saved, ended and restored."""
        source = self.source = self.source or self.boot()
        self.number += 1
        saved = source.save(f"sleep-{self.number}")
        source.remove()
        source.memory.unlink(missing_ok=True)
        start = time.monotonic()
        self.source = bare.restore(f"awake-{self.number}", saved, keep=True)
        if not self.judge("bare wake", self.source, saved.ticks, start):
            self.drop_source()
        saved.devices.unlink()

    def drop_source(self) -> None:
        if self.source is not None:
            self.source.remove()
            self.source.memory.unlink(missing_ok=True)
            self.source = None
