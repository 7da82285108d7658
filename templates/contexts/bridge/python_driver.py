"""Python contexts: ipykernel, driven over the Jupyter protocol through sockets in a directory."""

import asyncio
import os
import secrets

import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import write_connection_file

from . import events
from .driver import Driver, Outcome, StartFailed
from .limits import START_SECONDS_MAX

READY_POLL_SECONDS = 0.1


class PythonDriver(Driver):
    def __init__(self, runtime, spawner, zmq_context):
        super().__init__()
        self._prefix = os.path.join(runtime, f"python-{secrets.token_hex(4)}")
        self._spawner = spawner
        self._zmq_context = zmq_context
        self._client = None
        self._listener = None
        self._request = None
        self._is_idle = None
        self._is_executing = False
        self._wants_interrupt = False
        self._heard = asyncio.Event()
        self.execution_count = 0

    async def start(self, cwd):
        if not os.path.isdir(cwd):
            raise StartFailed(f"there is no directory {cwd}")
        connection_file = self._prefix + ".json"
        # A file name as the address means sockets beside it: nothing listens on a port.
        _, connection = write_connection_file(
            connection_file,
            transport="ipc",
            ip=self._prefix,
            key=secrets.token_hex(16).encode(),
        )
        self.pid = await self._spawner.spawn(connection_file, cwd, self.note_end)
        self._client = AsyncKernelClient(context=self._zmq_context)
        self._client.load_connection_info(connection)
        # No heartbeat: a pause of the whole machine is no death, and a death is seen by itself.
        self._client.start_channels(stdin=False, hb=False)
        self._listener = asyncio.ensure_future(self._listen())
        await self._wait_until_ready()

    async def _wait_until_ready(self):
        """An answer, and a sign on the other socket: before that, what it prints may be lost."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_SECONDS_MAX
        while not self._heard.is_set():
            if self.ended.done():
                raise StartFailed(self.ended.result())
            if loop.time() > deadline:
                raise StartFailed("the python process did not answer in time")
            self._client.kernel_info()
            heard = asyncio.ensure_future(self._heard.wait())
            await asyncio.wait(
                {heard, self.ended},
                timeout=READY_POLL_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            heard.cancel()

    async def _listen(self):
        while True:
            message = await self._client.iopub_channel.get_msg()
            self._heard.set()
            kind = message["header"]["msg_type"]
            content = message["content"]
            if kind == "stream":
                self.print(content["name"], content["text"])
            elif message["parent_header"].get("msg_id") == self._request:
                self._take(kind, content)

    def _take(self, kind, content):
        if kind == "status" and content["execution_state"] == "idle":
            if not self._is_idle.done():
                self._is_idle.set_result(None)
        elif kind == "execute_input":
            self._is_executing = True
            if self._wants_interrupt:
                super().interrupt()
        elif self._sink is None:
            return
        elif kind in ("execute_result", "display_data", "update_display_data"):
            event = events.result(content["data"], is_main=kind == "execute_result")
            if event is not None:
                self._sink(event)
        elif kind == "error":
            lines = "\n".join(content["traceback"]).split("\n")
            self._sink(events.error(content["ename"], content["evalue"], lines))

    def interrupt(self):
        # Before it has begun with the code it would ignore the signal.
        if self._is_executing:
            super().interrupt()
        else:
            self._wants_interrupt = True

    async def execute(self, code, sink):
        self.attend(sink)
        try:
            return await self._perform(code, is_silent=False)
        finally:
            self.dismiss()

    async def prepare(self, code):
        """Runs code that no user sees, and tells how it ended."""
        outcome = await self._perform(code, is_silent=True)
        self.forget_late()
        return outcome.status

    async def _perform(self, code, is_silent):
        self._is_idle = asyncio.get_running_loop().create_future()
        self._is_executing = self._wants_interrupt = False
        self._request = self._client.execute(
            code,
            silent=is_silent,
            store_history=not is_silent,
            allow_stdin=False,
            stop_on_error=False,
        )
        reply = asyncio.ensure_future(self._reply())
        try:
            # Both: output comes on one socket and the reply on another.
            for part in (reply, self._is_idle):
                await asyncio.wait({part, self.ended}, return_when=asyncio.FIRST_COMPLETED)
                if not part.done():
                    return Outcome("died", self.execution_count)
            content = reply.result()
        finally:
            reply.cancel()
            self._request = None
        self.execution_count = content.get("execution_count", self.execution_count)
        if is_silent:
            self.execution_count = 0
        return Outcome("ok" if content["status"] == "ok" else "error", self.execution_count)

    async def _reply(self):
        while True:
            message = await self._client.shell_channel.get_msg()
            if message["parent_header"].get("msg_id") == self._request:
                return message["content"]

    async def close(self):
        if self._listener is not None:
            self._listener.cancel()
        if self._client is not None:
            self._client.stop_channels()
        directory, name = os.path.split(self._prefix)
        for entry in os.listdir(directory):
            if entry.startswith(name):
                try:
                    os.unlink(os.path.join(directory, entry))
                except OSError:
                    pass


def make_zmq_context():
    context = zmq.asyncio.Context()
    # The default keeps a thousand messages and drops the rest without a word.
    context.rcvhwm = 0
    context.linger = 0
    return context
