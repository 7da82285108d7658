"""As ``client``, for asyncio."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Self

from ._async import AsyncioTransport, AsyncSession, AsyncTransport
from ._facts import CONNECTIONS_DEFAULT, ClientFacts, Logger
from ._settings import load_settings
from .client import checked_limit, refuse_both


class AsyncClient:
    """As ``Client``, for asyncio. ``close`` is awaited, and ``async with`` closes it.

    It may be used in several event loops, which share no connections; ``close`` closes those of the
    running one.
    """

    def __init__(
        self,
        api_url: str | None = None,
        api_key: str | None = None,
        *,
        ca_file: str | os.PathLike[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        max_connections: int = CONNECTIONS_DEFAULT,
        headers: Mapping[str, str] | None = None,
        logger: Logger | None = None,
    ) -> None:
        facts = ClientFacts(
            load_settings(api_url, api_key),
            ca_file=ca_file,
            ssl_context=ssl_context,
            proxy=proxy,
            timeout=timeout,
            max_retries=max_retries,
            headers=headers,
            logger=logger,
        )
        transport: AsyncTransport = AsyncioTransport(checked_limit(max_connections), ssl_context)
        self._session: AsyncSession = AsyncSession(facts, transport)

    @property
    def api_url(self) -> str:
        """The address of the server."""
        return self._session.settings.url

    @property
    def session(self) -> AsyncSession:
        """What carries its calls out. Not for users of this package."""
        return self._session

    async def close(self) -> None:
        """Closes its connections; calls that are under way end first. Repeating that is fine."""
        await self._session.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.api_url}>"


_transport = AsyncioTransport(CONNECTIONS_DEFAULT)


def async_session_of(
    client: AsyncClient | None, api_url: str | None, api_key: str | None
) -> AsyncSession:
    """What carries a call out: the given client, or the default one with this address and key."""
    refuse_both(client, api_url, api_key)
    if client is not None:
        return client.session
    return AsyncSession(ClientFacts(load_settings(api_url, api_key)), _transport)
