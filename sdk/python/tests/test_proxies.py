"""Proxies: when they are used, and what goes through them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from certificates import Authority
from conftest import ME, Worlds
from fake_daemon import FakeDaemon, Reply, Stream
from settled import settled
from tunnel import Tunnel

from dayfly import ServerUnreachable

START = "*/stream"
EXIT = ("exit", {"exit_code": 0})


def test_plain_http_goes_in_absolute_form(
    fake: FakeDaemon, worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = fake.url.replace("http://", "http://ann:p%40ss@")
    monkeypatch.setenv("HTTP_PROXY", address)
    fake.on("GET", "/prefix/v1/me", Reply(200, ME))
    assert worlds.use(worlds.me, "http://dayfly.test:7070/prefix").project == "p"
    seen = fake.requests[0]
    assert seen.target == "http://dayfly.test:7070/prefix/v1/me"
    assert seen.headers["host"] == "dayfly.test:7070"
    pair = base64.b64decode(seen.headers["proxy-authorization"].removeprefix("Basic "))
    assert pair == b"ann:p@ss"


@pytest.fixture
def secure(authority: Authority) -> Any:
    daemon = FakeDaemon(authority.server("DNS:dayfly.test,IP:127.0.0.1"))
    daemon.on("GET", "/v1/me", Reply(200, ME))
    yield daemon
    daemon.close()


def test_https_goes_through_a_tunnel(
    secure: FakeDaemon, authority: Authority, worlds: Worlds
) -> None:
    tunnel = Tunnel(secure.port)
    lines = [("stdout", {"chunk": f"{number}\n"}) for number in range(50)]
    secure.on(
        "POST", START, lambda seen: Stream([("started", {"exec_id": "x"}), *lines, EXIT])
    )
    told: list[str] = []

    async def scenario(client: Any) -> None:
        await settled(worlds.me(client))
        sandbox = await settled(worlds.create(client))
        assert (await settled(sandbox.exec("make", on_stdout=told.append))).exit_code == 0

    options: dict[str, Any] = {"ca_file": authority.file, "proxy": tunnel.url("ann:secret@")}
    worlds.use(scenario, "https://dayfly.test", "df_key", **options)
    assert "".join(told).splitlines() == [str(number) for number in range(50)]
    assert tunnel.heads[0].startswith("CONNECT dayfly.test:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic " in tunnel.heads[0]
    assert "df_key" not in "".join(tunnel.heads)
    assert {seen.target for seen in secure.seen("GET", "/v1/me")} == {"/v1/me"}
    assert "proxy-authorization" not in secure.requests[0].headers
    tunnel.close()


@pytest.mark.parametrize(("status", "attempts"), [(407, 1), (403, 1), (502, 4)])
def test_a_proxy_that_refuses_is_named(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, status: int, attempts: int
) -> None:
    monkeypatch.setattr("dayfly._retry.LOST_PAUSES", (0.01,))
    tunnel = Tunnel(1, status)
    monkeypatch.setenv("https_proxy", tunnel.url("ann:secret@"))
    with pytest.raises(ServerUnreachable) as caught:
        worlds.use(worlds.me, "https://dayfly.test")
    assert f"the proxy {tunnel.url()}" in str(caught.value)
    assert str(status) in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(tunnel.heads) == attempts
    tunnel.close()


def test_a_proxy_that_wants_a_password_in_absolute_form(
    fake: FakeDaemon, worlds: Worlds
) -> None:
    fake.on("GET", "/v1/me", Reply(407, b"<html>"))
    with pytest.raises(ServerUnreachable, match="user:password@"):
        worlds.use(worlds.me, "http://dayfly.test", proxy=fake.url)
    assert len(fake.requests) == 1


def test_this_host_is_never_asked_through_a_proxy(
    fake: FakeDaemon, worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert worlds.use(worlds.me, fake.url).project == "p"
    assert worlds.use(worlds.me, fake.url, proxy="http://127.0.0.1:9").project == "p"


def test_another_protocol_goes_through_a_tunnel_without_tls_too(
    fake: FakeDaemon, worlds: Worlds
) -> None:
    tunnel = Tunnel(fake.port)
    head = b"GET /v1/me HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    async def scenario(client: Any) -> bytes:
        if worlds.is_async:
            reader, writer = await client.session.connect()
            writer.write(head)
            found: bytes = await reader.read()
            writer.close()
            return found
        with client.session.connect() as connection:
            connection.sendall(head)
            return connection.makefile("rb").read()

    assert b'"project": "p"' in worlds.use(scenario, "http://dayfly.test", proxy=tunnel.url())
    assert tunnel.heads[0].startswith("CONNECT dayfly.test:80 HTTP/1.1\r\n")
    tunnel.close()
