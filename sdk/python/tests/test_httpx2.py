"""The driver on httpx2, under trio and under asyncio."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from certificates import Authority
from conftest import ME
from fake_daemon import (
    SANDBOX,
    Answer,
    FakeDaemon,
    Lost,
    Reply,
    Seen,
    Stream,
    refusal,
    sandbox_body,
)
from raw_server import RawServer
from socks_server import SocksServer
from tunnel import Tunnel

from dayfly import (
    AnswerLost,
    AnswerTimeout,
    AsyncSandbox,
    CertificateRefused,
    InvalidSettings,
    NotFound,
    ProtocolError,
    ServerUnreachable,
    async_me,
)

anyio: Any = pytest.importorskip("anyio")
pytest.importorskip("httpx2")
pytest.importorskip("trio")

from dayfly.httpx2 import AsyncClient  # noqa: E402

CREATE = "/v1/sandboxes"
ONE = f"{CREATE}/{SANDBOX}"
Scenario = Callable[[AsyncClient], Awaitable[Any]]


@pytest.fixture(params=["trio", "asyncio"])
def use(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("http_proxy", "https_proxy", "all_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def use(scenario: Scenario, url: str, **options: Any) -> Any:
        async def main() -> Any:
            async with AsyncClient(url, "df_key", **options) as client:
                return await scenario(client)

        return anyio.run(main, backend=request.param)

    return use


async def ask(client: AsyncClient) -> Any:
    return await async_me(client=client)


def test_calls_and_streams(fake: FakeDaemon, use: Any) -> None:
    lines = [("stdout", {"chunk": f"{number}\n"}) for number in range(20)]
    events = [("started", {"exec_id": "x"}), *lines, ("exit", {"exit_code": 0})]
    fake.on("POST", "*/stream", lambda seen: Stream(events))
    fake.on("POST", f"{ONE}/exec", Lost(), Reply(200, {"stdout": "", "stderr": "", "exit_code": 3}))
    told: list[str] = []

    async def scenario(client: AsyncClient) -> None:
        async with AsyncSandbox.create("base", client=client) as sandbox:
            assert (await sandbox.exec("date")).exit_code == 3
            await sandbox.exec("make", on_stdout=told.append)

    use(scenario, fake.url)
    assert "".join(told).splitlines() == [str(number) for number in range(20)]
    assert {seen.headers["authorization"] for seen in fake.requests} == {"Bearer df_key"}
    assert len({seen.json["exec_id"] for seen in fake.seen("POST", f"{ONE}/exec")}) == 1
    assert len(fake.seen("DELETE", ONE)) == 1


@pytest.mark.parametrize("answer", [Reply(206, b"xx"), Stream([("x", {})])])
def test_more_than_was_asked_for_is_refused(fake: FakeDaemon, use: Any, answer: Answer) -> None:
    fake.on("GET", f"{ONE}/fs", answer)

    async def scenario(client: AsyncClient) -> None:
        sandbox = await AsyncSandbox.create("base", client=client)
        with pytest.raises(ProtocolError, match="longer than the 1 bytes"):
            await sandbox.files.read("/f", length=1)

    use(scenario, fake.url)


def test_a_stream_that_is_cut_goes_on(fake: FakeDaemon, use: Any) -> None:
    begun = [("started", {"exec_id": "x"}), ("stdout", {"chunk": "a"})]
    rest = [("stdout", {"chunk": "b"}), ("exit", {"exit_code": 0})]
    fake.on("POST", "*/stream", lambda seen: Stream(begun, is_cut=True))
    fake.on("GET", "*/attach", lambda seen: Stream(rest))

    async def scenario(client: AsyncClient) -> str:
        sandbox = await AsyncSandbox.create("base", client=client)
        return (await sandbox.exec("make", on_stdout=lambda text: None)).stdout

    assert use(scenario, fake.url) == "ab"


def test_a_cancelled_create_leaves_nothing_behind(fake: FakeDaemon, use: Any) -> None:
    def slowly(_: Seen) -> Reply:
        time.sleep(0.5)
        return Reply(201, sandbox_body())

    fake.on("POST", CREATE, slowly, Reply(201, sandbox_body()))

    async def scenario(client: AsyncClient) -> None:
        with anyio.move_on_after(0.1):
            await AsyncSandbox.create("base", client=client)

    use(scenario, fake.url)
    assert len(fake.seen("DELETE", ONE)) == 1


def test_refusals_are_the_same(fake: FakeDaemon, use: Any) -> None:
    fake.on("GET", "/health", Reply(200, {"status": "ok", "version": "0.0.1"}))
    fake.on("GET", "/v1/me", refusal(404, "no_such_route"))
    with pytest.raises(NotFound, match="older"):
        use(ask, fake.url)
    fake.on("GET", "/v1/me", Reply(308, None, {"Location": "https://a.example/v1/me"}))
    with pytest.raises(ProtocolError, match=r"redirects to https://a\.example"):
        use(ask, fake.url)
    fake.on("GET", "/v1/me", Reply(200, b"<html>", {"Content-Type": "text/html"}))
    with pytest.raises(ProtocolError, match="no Dayfly server"):
        use(ask, fake.url)
    fake.on("GET", "/v1/me", Reply(200, b"", {"Content-Encoding": "zstd"}))
    with pytest.raises(ProtocolError, match="zstd"):
        use(ask, fake.url)


def test_failures_are_the_same(use: Any) -> None:
    with pytest.raises(ServerUnreachable, match="cannot connect"):
        use(ask, "http://127.0.0.1:9", max_retries=0)
    with RawServer(b"", hangs_up=True) as server, pytest.raises(AnswerLost):
        use(ask, server.url, max_retries=0)
    with RawServer(b"HTTP/1.1 200 OK\r\n") as server, pytest.raises(AnswerTimeout):
        use(ask, server.url, timeout=0.1)


def test_a_closed_client(fake: FakeDaemon, use: Any) -> None:
    async def scenario(client: AsyncClient) -> None:
        await client.close()
        with pytest.raises(InvalidSettings, match="closed"):
            await ask(client)

    use(scenario, fake.url)


def test_certificates(authority: Authority, use: Any) -> None:
    secure = FakeDaemon(authority.server("DNS:dayfly.test,IP:127.0.0.1"))
    secure.on("GET", "/v1/me", Reply(200, ME))
    assert use(ask, secure.url, ca_file=authority.file, http2=True).project == "p"
    with pytest.raises(CertificateRefused, match="ca_file"):
        use(ask, secure.url)
    tunnel = Tunnel(secure.port)
    options: dict[str, Any] = {"ca_file": authority.file, "proxy": tunnel.url("ann:secret@")}
    assert use(ask, "https://dayfly.test", **options).project == "p"
    assert "Proxy-Authorization: Basic " in tunnel.heads[0]
    tunnel.close()
    refusing = Tunnel(1, 407)
    with pytest.raises(ServerUnreachable, match="407"):
        use(ask, "https://dayfly.test", proxy=refusing.url())
    assert len(refusing.heads) == 1
    refusing.close()
    secure.close()


def test_a_socks_proxy(fake: FakeDaemon, use: Any) -> None:
    socks = SocksServer(fake.port)
    assert use(ask, "http://dayfly.test", proxy=socks.url).project == "p"
    assert socks.hosts == ["dayfly.test"]
    socks.close()


def test_trio_without_it_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"dayfly\.httpx2"):
        anyio.run(lambda: async_me(api_url="http://127.0.0.1:9", api_key="k"), backend="trio")
