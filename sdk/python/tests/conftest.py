"""What the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_daemon import FakeDaemon

from dayfly import AsyncSandbox, Sandbox

Create = Callable[..., Any]


@pytest.fixture
def fake() -> Iterator[FakeDaemon]:
    daemon = FakeDaemon()
    yield daemon
    daemon.close()


@pytest.fixture(params=[Sandbox, AsyncSandbox], ids=["sync", "async"])
def create(request: pytest.FixtureRequest, fake: FakeDaemon) -> Create:
    """Creates a sandbox of either kind at the fake daemon. The outcome has to be settled."""
    kind: type[Sandbox] | type[AsyncSandbox] = request.param

    def create(template: str = "base", **options: Any) -> Any:
        return kind.create(template, api_url=fake.url, api_key="df_key", **options)

    return create
