"""A terminal over a WebSocket, against a server that follows a script."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from conftest import Worlds
from fake_daemon import SANDBOX, sandbox_body
from settled import settled
from socket_server import Conversation, SocketServer, frame
from tunnel import Tunnel

from dayfly import (
    AnswerLost,
    AnswerTimeout,
    AsyncSandbox,
    NotFound,
    ProtocolError,
    Sandbox,
)
from dayfly._async_client import async_session_of
from dayfly._websocket import Message, MessageReader, Opcode, encode, masked
from dayfly.client import session_of
from dayfly.models import SandboxInfo, from_wire

EXIT = {"type": "exit", "exit_code": 3, "reason": "exited", "duration_ms": 5}


def begin(conversation: Conversation) -> Any:
    start = conversation.next_call()
    conversation.tell(type="attached", exec_id=start["exec_id"], pid=7)
    return start


def end(conversation: Conversation) -> None:
    conversation.tell(**EXIT)
    conversation.send(frame(8, (1000).to_bytes(2, "big")))
    assert conversation.next() == (8, (1000).to_bytes(2, "big"))


@pytest.fixture(params=[Sandbox, AsyncSandbox], ids=["sync", "async"])
def converse(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Has a client and a script talk to each other."""
    kind: Any = request.param

    def converse(
        script: Callable[[Conversation], None],
        client: Callable[[Any], Awaitable[Any]],
        *,
        is_upgraded: bool = True,
        **options: Any,
    ) -> tuple[SocketServer, Any]:
        server = SocketServer(script, is_upgraded=is_upgraded)

        async def scenario() -> Any:
            session: Any = session_of if request.param is Sandbox else async_session_of
            sandbox = kind.of(
                session(None, server.url, "df_key"), from_wire(SandboxInfo, sandbox_body())
            )
            pty = await settled(sandbox.pty(**options))
            try:
                return await client(pty)
            finally:
                await settled(pty.close())

        result = asyncio.run(scenario())
        server.finish()
        return server, result

    return converse


async def all_of(pty: Any) -> bytes:
    found = b""
    while piece := await settled(pty.read(timeout_seconds=20)):
        found += piece
    return found


def test_a_shell_is_typed_into(converse: Any) -> None:
    starts: list[Any] = []

    def script(conversation: Conversation) -> None:
        starts.append(begin(conversation))
        assert conversation.next() == (2, b"ls\n")
        assert conversation.next_call() == {"type": "resize", "columns": 100, "rows": 30}
        assert conversation.next_call() == {"type": "signal", "signal": 2}
        conversation.print("a\x1b[1m é".encode())
        conversation.send(frame(9, b"alive"))
        assert conversation.next() == (10, b"alive")
        conversation.print(b" b\r\n", 8)
        end(conversation)

    async def client(pty: Any) -> bytes:
        await settled(pty.write("ls\n"))
        await settled(pty.resize(100, 30))
        await settled(pty.signal(2))
        found = await all_of(pty)
        assert (await settled(pty.wait(timeout_seconds=20))).exit_code == 3
        assert pty.pid == 7
        return found

    server, found = converse(script, client, cols=120, rows=40, env={"A": "b"}, cwd="/tmp")
    assert found.decode() == "a\x1b[1m é b\r\n"
    (start,) = starts
    assert start["terminal"] == {"columns": 120, "rows": 40}
    assert start["env"] == {"TERM": "xterm-256color", "A": "b"}
    assert (start["type"], start["cwd"], start["cmd"][0]) == ("start", "/tmp", "/bin/sh")
    assert server.line == f"GET /v1/sandboxes/{SANDBOX}/exec/socket HTTP/1.1"
    assert server.headers["authorization"] == "Bearer df_key"
    assert server.headers["sec-websocket-version"] == "13"


def test_a_terminal_goes_through_the_proxy_of_its_client(worlds: Worlds) -> None:
    def script(conversation: Conversation) -> None:
        begin(conversation)
        conversation.print(b"hello")
        end(conversation)

    server = SocketServer(script)
    tunnel = Tunnel(server.port)

    async def scenario(client: Any) -> bytes:
        kind: Any = AsyncSandbox if worlds.is_async else Sandbox
        sandbox = kind.of(client.session, from_wire(SandboxInfo, sandbox_body()))
        pty = await settled(sandbox.pty())
        found = await all_of(pty)
        await settled(pty.close())
        return found

    options: dict[str, Any] = {"proxy": tunnel.url(), "headers": {"X-Team": "blue"}}
    assert worlds.use(scenario, "http://dayfly.test", **options) == b"hello"
    server.finish()
    assert tunnel.heads[0].startswith("CONNECT dayfly.test:80 HTTP/1.1\r\n")
    assert server.headers["host"] == "dayfly.test"
    assert server.headers["x-team"] == "blue"
    tunnel.close()


def test_waiting_keeps_what_was_not_read(converse: Any) -> None:
    def script(conversation: Conversation) -> None:
        assert begin(conversation)["cmd"] == ["make", "test"]
        conversation.print(b"x" * 70_000)
        end(conversation)

    async def client(pty: Any) -> Any:
        return await settled(pty.wait())

    _, result = converse(script, client, command=["make", "test"])
    assert (len(result.stdout), result.exit_code, result.reason) == (70_000, 3, "exited")


def test_closing_hangs_up_and_says_goodbye(converse: Any) -> None:
    def script(conversation: Conversation) -> None:
        begin(conversation)
        assert conversation.next_call() == {"type": "signal", "signal": 1}
        assert conversation.next() == (8, (1000).to_bytes(2, "big"))
        conversation.send(frame(8, (1000).to_bytes(2, "big")))

    async def client(pty: Any) -> None:
        await settled(pty.close())
        assert await settled(pty.read()) == b""

    converse(script, client)


def test_silence_is_a_timeout_and_the_terminal_goes_on(converse: Any) -> None:
    def script(conversation: Conversation) -> None:
        begin(conversation)
        conversation.next()
        conversation.print(b"late")
        end(conversation)

    async def client(pty: Any) -> bytes:
        with pytest.raises(AnswerTimeout):
            await settled(pty.read(timeout_seconds=0.01))
        await settled(pty.write("go"))
        return await all_of(pty)

    assert converse(script, client)[1] == b"late"


def test_a_lost_connection_is_no_end(converse: Any) -> None:
    async def client(pty: Any) -> None:
        with pytest.raises(AnswerLost):
            await all_of(pty)

    converse(begin, client)


def test_a_refused_terminal_is_that_refusal(converse: Any) -> None:
    body = b'{"error":"there is no sandbox","code":"not_found"}'
    head = f"HTTP/1.1 404 Not Found\r\ncontent-length: {len(body)}\r\n\r\n".encode()

    def script(conversation: Conversation) -> None:
        conversation.send(head + body)

    with pytest.raises(NotFound, match="there is no sandbox"):
        converse(script, all_of, is_upgraded=False)


def test_a_refused_command_is_that_refusal(converse: Any) -> None:
    def script(conversation: Conversation) -> None:
        conversation.next_call()
        conversation.tell(type="error", error="no such user", code="not_found")

    with pytest.raises(NotFound, match="no such user"):
        converse(script, all_of)


def test_an_accept_for_another_request_is_refused(converse: Any) -> None:
    head = (
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n"
    )

    def script(conversation: Conversation) -> None:
        conversation.send(head)

    with pytest.raises(ProtocolError, match="does not speak WebSocket"):
        converse(script, all_of, is_upgraded=False)


@pytest.mark.parametrize("size", [{"cols": 0}, {"rows": 1001}])
def test_a_size_that_is_none_is_refused(size: dict[str, Any]) -> None:
    session = session_of(None, "http://127.0.0.1:9", "k")
    sandbox = Sandbox.of(session, from_wire(SandboxInfo, sandbox_body()))
    with pytest.raises(ValueError, match="from 1 to 1000"):
        sandbox.pty(**size)


class TestFrames:
    def test_messages_are_the_same_however_they_are_cut(self) -> None:
        wire = (
            frame(1, b"one")
            + frame(2, b"tw", first=0x02)
            + frame(9, b"?")
            + frame(0, b"o" * 300)
            + frame(2, b"x" * 70_000)
            + frame(8, b"\x03\xe8bye")
        )
        expected = [
            Message(Opcode.TEXT, b"one"),
            Message(Opcode.PING, b"?"),
            Message(Opcode.BINARY, b"tw" + b"o" * 300),
            Message(Opcode.BINARY, b"x" * 70_000),
            Message(Opcode.CLOSE, b"\x03\xe8bye"),
        ]
        for seed in range(50):
            dice = random.Random(seed)
            cuts = sorted(dice.randrange(len(wire)) for _ in range(dice.randrange(9)))
            reader, found, start = MessageReader(), list[Message](), 0
            for cut in [*cuts, len(wire)]:
                found += reader.feed(wire[start:cut])
                start = cut
            assert found == expected, f"seed {seed}"
        assert expected[-1].close_code == 1000

    @pytest.mark.parametrize(
        "wire",
        [
            frame(1, b"x", first=0xC1),
            b"\x81\x81\0\0\0\0x",
            frame(3, b"x"),
            frame(0, b"x"),
            frame(1, b"x", first=0x01) + frame(1, b"y"),
            frame(9, b"x" * 126),
            frame(9, b"x", first=0x09),
            frame(8, b"\x03"),
            frame(8, b"\x03\xe8\xff"),
            frame(8) + frame(1, b"x"),
            b"\x82\x7e\x00\x7d",
            b"\x82\x7f" + (70).to_bytes(8, "big"),
            b"\x82\x7f" + (1 << 40).to_bytes(8, "big"),
        ],
    )
    def test_what_the_standard_forbids_is_refused(self, wire: bytes) -> None:
        with pytest.raises(ProtocolError):
            MessageReader().feed(wire)

    @pytest.mark.parametrize("length", [0, 1, 125, 126, 65_535, 65_536])
    def test_frames_of_a_client_are_masked(self, length: int) -> None:
        payload = random.Random(length).randbytes(length)
        sent = encode(Opcode.BINARY, payload)
        head = 2 if length < 126 else 4 if length < 1 << 16 else 10
        assert sent[1] & 0x80
        mask = sent[head : head + 4]
        assert masked(sent[head + 4 :], mask) == payload
        assert encode(Opcode.BINARY, b"abcd") != encode(Opcode.BINARY, b"abcd")
