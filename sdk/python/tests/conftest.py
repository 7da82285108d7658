"""What the tests share."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agent_worlds import Worlds as AgentWorlds
from certificates import Authority, make_authority
from fake_daemon import FakeDaemon, Reply
from settled import settled

from dayfly import AsyncClient, AsyncSandbox, Client, Sandbox, async_me, me

ME = {"project": "p", "key_prefix": "df_", "scopes": ["read"]}

Create = Callable[..., Any]


@pytest.fixture
def fake() -> Iterator[FakeDaemon]:
    daemon = FakeDaemon()
    daemon.on("GET", "/v1/me", Reply(200, ME))
    yield daemon
    daemon.close()


@pytest.fixture(params=[Sandbox, AsyncSandbox], ids=["sync", "async"])
def create(request: pytest.FixtureRequest, fake: FakeDaemon) -> Create:
    """Creates a sandbox of either kind at the fake daemon. The outcome has to be settled."""
    kind: type[Sandbox] | type[AsyncSandbox] = request.param

    def create(template: str = "base", **options: Any) -> Any:
        return kind.create(template, api_url=fake.url, api_key="df_key", **options)

    return create


class Worlds:
    """One text for blocking code and asyncio: makes a client, uses it and closes it."""

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async

    def use(
        self, scenario: Callable[[Any], Any], url: str, key: str = "df_key", **more: Any
    ) -> Any:
        """Gives what ``scenario`` makes of a client; a coroutine is awaited."""

        async def use() -> Any:
            client = (AsyncClient if self.is_async else Client)(url, key, **more)
            try:
                return await settled(scenario(client))
            finally:
                await settled(client.close())

        return asyncio.run(use())

    def me(self, client: Any) -> Any:
        return async_me(client=client) if self.is_async else me(client=client)

    def create(self, client: Any) -> Any:
        kind = AsyncSandbox if self.is_async else Sandbox
        return kind.create("base", client=client)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def worlds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Worlds:
    # What is set around the tests must not decide them.
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return Worlds(is_async=request.param)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def agents(request: pytest.FixtureRequest, fake: FakeDaemon) -> AgentWorlds:
    return AgentWorlds(fake, is_async=request.param)
