"""One parser for both drivers: what they read, and what they refuse."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from raw_server import RawServer
from settled import settled

from dayfly import AnswerLost, ProtocolError, async_me, me

ME = b'{"project":"p","key_prefix":"df_","scopes":["read"]}'
LENGTH = f"Content-Length: {len(ME)}\r\n".encode()
SIZED = b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + ME
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(size: str) -> bytes:
    return CHUNKED + size.encode() + b"\r\n" + ME + b"\r\n0\r\n\r\n"


@pytest.fixture(params=[me, async_me], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Any:
    async def ask(url: str) -> Any:
        return await settled(request.param(api_url=url, api_key="df_key"))

    return lambda url: asyncio.run(ask(url))  # pyright: ignore


GOOD = {
    "length": SIZED,
    "100": b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED,
    "103": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + SIZED,
    "100 and 103": b"HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + SIZED,
    "no reason phrase": SIZED.replace(b" OK", b""),
    "chunks": CHUNKED + b"5\r\n" + ME[:5] + b"\r\n" + chunk(f"{len(ME) - 5:X}")[len(CHUNKED) :]
    .replace(ME, ME[5:]),
    "chunk extension": chunk(f'{len(ME):x} ;name="value"'),
    "chunk size with zeros": chunk(f"000{len(ME):x}"),
    "trailer": chunk(f"{len(ME):x}")[:-2] + b"Digest: x\r\nMore: y\r\n\r\n",
}


@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD.keys())
def test_a_response_is_read_and_its_connection_kept(ask: Any, answer: bytes) -> None:
    with RawServer(answer) as server:
        assert ask(server.url).project == "p"
        assert server.connections == 1


UNTIL_THE_END = {
    "1.0": b"HTTP/1.0 200 OK\r\n\r\n" + ME,
    "1.0 with a length": b"HTTP/1.0 200 OK\r\n" + LENGTH + b"\r\n" + ME,
    "no length": b"HTTP/1.1 200 OK\r\n\r\n" + ME,
}


@pytest.mark.parametrize("answer", UNTIL_THE_END.values(), ids=UNTIL_THE_END.keys())
def test_a_response_may_end_with_its_connection(ask: Any, answer: bytes) -> None:
    with RawServer(answer, hangs_up=True) as server:
        assert ask(server.url).project == "p"
        assert ask(server.url).project == "p"


BROKEN = {
    "negative chunk": chunk("-5"),
    "prefixed chunk": chunk(f"0x{len(ME):x}"),
    "underscore in a chunk": chunk("1_0"),
    "sign before a chunk": chunk(f"+{len(ME):x}"),
    "empty chunk size": chunk(""),
    "endless chunk size": chunk("0" * 40 + "5"),
    "chunk longer than its size": chunk(f"{len(ME) - 1:x}"),
    "two lengths": SIZED.replace(LENGTH, LENGTH + b"Content-Length: 1\r\n"),
    "negative length": SIZED.replace(b"Length: ", b"Length: -"),
    "another protocol": b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "switches protocols": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 30_000,
    "transfer coding": SIZED.replace(LENGTH, b"Transfer-Encoding: gzip, chunked\r\n"),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_response_is_refused(ask: Any, answer: bytes) -> None:
    with RawServer(answer) as server, pytest.raises(ProtocolError):
        ask(server.url)
    assert server.connections == 1, "it was asked again"


def test_a_response_that_ends_early_is_lost(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dayfly._retry.LOST_PAUSES", (0.01,))
    with RawServer(SIZED[:-1], hangs_up=True) as server, pytest.raises(AnswerLost):
        ask(server.url)
    assert server.connections == 4


def test_an_ipv6_address(ask: Any) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this host has no IPv6")
    with RawServer(SIZED, host="::1") as server:
        assert ask(server.url).project == "p"
        assert f"\r\nHost: [::1]:{server.port}\r\n" in server.heads[0]


def test_tls_where_none_is_expected_is_said(ask: Any) -> None:
    with RawServer(b"\x15\x03\x01\x00\x02\x02\x46") as server:
        with pytest.raises(ProtocolError) as caught:
            ask(server.url)
        assert "https://" in str(caught.value)
