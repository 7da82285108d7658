"""What the bridge needs of an interpreter, and the parts that its kinds share."""

import asyncio
import codecs
import dataclasses
import os
import signal

from . import events
from .limits import LATE_CHARACTERS_MAX


@dataclasses.dataclass
class Outcome:
    """How one piece of code ended: `ok`, `error` or `died`."""

    status: str
    execution_count: int
    # The process ended as the code wanted it to; a new one shall take its place.
    needs_restart: bool = False


class StartFailed(Exception):
    """An interpreter did not come up. The text is for the caller."""


class Driver:
    """One interpreter process. A new object for every process."""

    # Whether an interrupt that changes nothing may end the process.
    may_be_ended_by_interrupt = False
    # Whether one interrupt can go unnoticed, and a second does no harm.
    needs_repeated_interrupts = False

    def __init__(self):
        self.pid = None
        # Set to a text that says how, once the process has ended.
        self.ended = asyncio.get_running_loop().create_future()
        self._sink = None
        self._late = []
        self._late_characters = 0

    async def start(self, cwd):
        raise NotImplementedError

    async def execute(self, code, sink):
        """Runs code and hands its events to `sink`. One at a time."""
        raise NotImplementedError

    def interrupt(self):
        """What the interpreter runs, and programs that it waits for, are told to stop."""
        self.signal(signal.SIGINT)

    def kill(self):
        self.signal(signal.SIGKILL)

    def signal(self, number):
        if self.pid is None or self.ended.done():
            return
        try:
            # Each interpreter leads a session, so its children are meant too.
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    async def close(self):
        """Gives back what the bridge holds of an interpreter that has ended."""

    def note_end(self, how):
        if not self.ended.done():
            self.ended.set_result(how)

    def attend(self, sink):
        """Hands what was printed since the last run to this one, and what follows too."""
        self._sink = sink
        late = self._late
        self.forget_late()
        for kind, text in late:
            self.print(kind, text)

    def forget_late(self):
        self._late, self._late_characters = [], 0

    def dismiss(self):
        self._sink = None

    def print(self, kind, text):
        if self._sink is not None:
            for event in events.stream(kind, text):
                self._sink(event)
            return
        room = LATE_CHARACTERS_MAX - self._late_characters
        if room > 0:
            self._late.append((kind, text[:room]))
            self._late_characters += len(text)


def exit_text(program, status):
    """`status` as from `subprocess`: an exit code, or a signal's number below zero."""
    if status >= 0:
        return f"the {program} process ended with exit code {status}"
    number = -status
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    reason = " (the guest may have run out of memory)" if number == signal.SIGKILL else ""
    return f"the {program} process was ended by {name}{reason}"


# What whoever started the bridge may have ignored, as a shell does for what runs behind it. A program
# passes that on to its children, and an interrupt would end none of them.
INHERITED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def prepare_child():
    """Runs in a new process before its program does."""
    for number in INHERITED:
        signal.signal(number, signal.SIG_DFL)
    # The bridge is protected when memory runs out; what it starts must not be.
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("0")
    except OSError:
        pass


class OutputPipe:
    """Reads one output of a process as text, and can be asked to read what is there now."""

    def __init__(self, on_text):
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_end, False)
        asyncio.get_running_loop().add_reader(self._read_end, self._read)

    def started(self):
        """The process has its own copy of the other end now."""
        os.close(self.write_end)
        self.write_end = None

    def _read(self):
        """Reads once. True if there may be more."""
        try:
            data = os.read(self._read_end, 65536)
        except BlockingIOError:
            return False
        text = self._decoder.decode(data, final=not data)
        if text:
            self._on_text(text)
        if not data:
            self.close()
        return bool(data)

    def drain(self):
        """What a process wrote before it said something elsewhere is read before that is told."""
        # A pipe holds less than this; something in the background may write for ever.
        for _ in range(64):
            if self._read_end is None or not self._read():
                return

    def close(self):
        if self.write_end is not None:
            self.started()
        if self._read_end is not None:
            asyncio.get_running_loop().remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = None
