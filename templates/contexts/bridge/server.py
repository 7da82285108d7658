"""The socket: one request on a connection, then answers until the bridge closes it."""

import asyncio
import json

from .context import Refused
from .events import encode
from .limits import CONNECTIONS_MAX, NAME_CHARACTERS_MAX, REQUEST_BYTES_MAX

TIMEOUT_MS_MAX = 24 * 60 * 60 * 1000
# A reader that stops shall hold no more of a run than this.
WRITE_BUFFER_BYTES = 64 << 10


class Server:
    def __init__(self, registry):
        self._registry = registry
        self._connections = 0

    async def serve(self, listener):
        server = await asyncio.start_unix_server(
            self._connected, sock=listener, limit=REQUEST_BYTES_MAX
        )
        async with server:
            await server.serve_forever()

    async def _connected(self, reader, writer):
        self._connections += 1
        try:
            writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            # The client left. What it began goes on.
            pass
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, reader, writer):
        try:
            if self._connections > CONNECTIONS_MAX:
                raise Refused("too_many", f"{CONNECTIONS_MAX} connections is the limit")
            async for line in self._serve_request(await read_request(reader)):
                writer.write(line)
                await writer.drain()
        except Refused as refused:
            answer = {"type": "refused", "code": refused.code, "message": str(refused)}
            writer.write(encode(answer))
            await writer.drain()

    async def _serve_request(self, request):
        operation = request.get("op")
        if operation == "list":
            answer = {"type": "contexts", "contexts": self._registry.describe()}
            yield encode({**answer, "warm": self._registry.is_warm})
        elif operation == "create":
            context = await self._registry.create(
                name(request, "context"),
                text(request, "language"),
                optional_text(request, "cwd"),
            )
            answer = {"type": "created", "context": context.name, "language": context.language}
            yield encode(answer)
        elif operation == "run":
            async for line in self._run(request):
                yield line
        elif operation in ("interrupt", "restart"):
            context = await self._registry.find(name(request, "context"))
            await getattr(context, operation)()
            yield encode({"type": "done"})
        elif operation == "delete":
            await self._registry.delete(name(request, "context"))
            yield encode({"type": "done"})
        else:
            raise Refused("invalid", "op must be create, list, run, interrupt, restart or delete")

    async def _run(self, request):
        context = await self._registry.find(name(request, "context"))
        run = context.run(
            name(request, "run"),
            optional_text(request, "code"),
            number(request, "timeout_ms", TIMEOUT_MS_MAX),
        )
        async for line in run.log.read(number(request, "after", 1 << 62) or 0):
            yield line


async def read_request(reader):
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise Refused("invalid", f"a request has at most {REQUEST_BYTES_MAX} bytes") from None
    try:
        request = json.loads(line)
    except ValueError:
        raise Refused("invalid", "the request is not JSON") from None
    if not isinstance(request, dict):
        raise Refused("invalid", "the request is not a JSON object")
    return request


def optional_text(request, key):
    value = request.get(key)
    if value is None or isinstance(value, str):
        return value
    raise Refused("invalid", f"{key} must be a text")


def text(request, key):
    value = optional_text(request, key)
    if value is None:
        raise Refused("invalid", f"{key} is missing")
    return value


def name(request, key):
    value = text(request, key)
    if not 0 < len(value) <= NAME_CHARACTERS_MAX or not value.isprintable():
        rule = f"{key} must have 1 to {NAME_CHARACTERS_MAX} printable characters"
        raise Refused("invalid", rule)
    return value


def number(request, key, most):
    value = request.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Refused("invalid", f"{key} must be a number from 0 to {most}")
    return value
