"""Starts Python interpreters: as copies of one that has imported everything, where that is right.

The first interpreter of its kind imports the scientific stack and then only makes copies of itself
(see `programs/zygote.py`), so that a new context costs a fork and not ten imports. When packages
were installed since, a copy would show old ones; then an interpreter is started from scratch.
"""

import asyncio
import json
import os
import site
import sys
import sysconfig

from .driver import StartFailed, exit_text, prepare_child

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
# More than any answer has.
ANSWER_BYTES_MAX = 1 << 16


class Spawner:
    def __init__(self, python=sys.executable):
        self._python = python
        self._process = None
        self._stamp = None
        # The copy that was asked for: who waits for its process id, and who hears of its end.
        self._asked = None
        self._on_end = {}
        self._turn = asyncio.Lock()

    async def preload(self, modules):
        """Starts the interpreter that copies are made of, and waits until it has imported these."""
        self._stamp = packages_stamp()
        self._process = await asyncio.create_subprocess_exec(
            self._python,
            os.path.join(PROGRAMS, "zygote.py"),
            *modules,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=ANSWER_BYTES_MAX,
            start_new_session=True,
            preexec_fn=prepare_child,
        )
        if not await self._process.stdout.readline():
            await self._process.wait()
            self._process = None
            return False
        asyncio.ensure_future(self._listen(self._process))
        return True

    async def spawn(self, connection_file, cwd, on_end):
        """Starts an interpreter and returns its process id; `on_end` hears how it ended."""
        if self._process is not None and self._stamp == packages_stamp():
            pid = await self._copy(connection_file, cwd, on_end)
            if pid is not None:
                return pid
        return await self._start_anew(connection_file, cwd, on_end)

    async def _copy(self, connection_file, cwd, on_end):
        request = {"connection_file": connection_file, "cwd": cwd}
        async with self._turn:
            answer = asyncio.get_running_loop().create_future()
            self._asked = (answer, on_end)
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                await self._process.stdin.drain()
            except (AttributeError, ConnectionError, RuntimeError):
                self._lose()
            return await answer

    async def _listen(self, process):
        while line := await process.stdout.readline():
            answer = json.loads(line)
            if "pid" in answer:
                waiting, self._on_end[answer["pid"]] = self._asked
                self._asked = None
                waiting.set_result(answer["pid"])
            elif answer["ended"] in self._on_end:
                status = os.waitstatus_to_exitcode(answer["status"])
                self._on_end.pop(answer["ended"])(exit_text("python", status))
        await process.wait()
        self._lose()

    def _lose(self):
        """The interpreter that copies are made of is gone, and they go with it."""
        self._process = None
        if self._asked is not None:
            self._asked[0].set_result(None)
            self._asked = None
        lost, self._on_end = self._on_end, {}
        for on_end in lost.values():
            on_end("the python process ended together with the one that it was copied from")

    async def _start_anew(self, connection_file, cwd, on_end):
        try:
            process = await asyncio.create_subprocess_exec(
                self._python,
                os.path.join(PROGRAMS, "kernel.py"),
                connection_file,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=prepare_child,
            )
        except OSError as error:
            raise StartFailed(f"cannot start python: {error}") from error

        async def watch():
            on_end(exit_text("python", await process.wait()))

        asyncio.ensure_future(watch())
        return process.pid


def packages_stamp():
    """Changes when packages are added, removed or renewed where users install them."""
    places = {site.getusersitepackages(), sysconfig.get_path("purelib"), *site.getsitepackages()}
    return tuple(sorted((place, _modified(place)) for place in places))


def _modified(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
