"""An explicit client: where the server is, which key it gets, and how it is reached."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Self

from ._connections import Pool
from ._facts import CONNECTIONS_DEFAULT, ClientFacts, Logger
from ._settings import load_settings
from ._sync import Session
from .errors import InvalidSettings


class Client:
    """A client of one server, with connections of its own.

    ::

        with Client("https://dayfly.example", api_key, ca_file="company.pem") as client:
            with Sandbox("base", client=client) as sandbox:
                sandbox.exec("date")

    Without one, calls take ``api_url`` and ``api_key`` and share connections.

    - ``api_url``, ``api_key``: by default ``DAYFLY_API_URL`` and ``DAYFLY_API_KEY``, then the
      current context of ``dayfly login``.
    - ``ca_file``: a file with the certificates to trust instead of the system's; by default
      ``SSL_CERT_FILE``, then ``REQUESTS_CA_BUNDLE``. ``ssl_context``: everything about TLS, client
      certificates included.
    - ``proxy``: as ``http://user:password@host:3128``; by default ``HTTPS_PROXY``, ``HTTP_PROXY``
      or ``ALL_PROXY``, but for what ``NO_PROXY`` names. Never used for this host itself.
    - ``timeout``: how many seconds a response may take, 60 by default. Calls that take longer by
      their nature (a fork, a command with a timeout) have as much more.
    - ``max_retries``: how often a request is sent again after a lost connection, 3 by default; only
      where that cannot do anything twice.
    - ``max_connections``: at most so many at once; further calls wait for one.
    - ``headers``: sent with every request. ``logger``: instead of the logger ``dayfly``.

    May be used by several threads. ``close()``, or the end of ``with``, closes its connections;
    sandboxes stay as they are.
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
        self._session: Session = Session(facts, Pool(checked_limit(max_connections), ssl_context))

    @property
    def api_url(self) -> str:
        """The address of the server."""
        return self._session.settings.url

    @property
    def session(self) -> Session:
        """What carries its calls out. Not for users of this package."""
        return self._session

    def close(self) -> None:
        """Closes its connections; calls that are under way end first. Repeating that is fine."""
        self._session.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self.api_url}>"


def checked_limit(max_connections: int) -> int:
    if max_connections < 1:
        raise InvalidSettings(f"max_connections= is {max_connections!r}, and has to be 1 or more")
    return max_connections


def refuse_both(client: object, api_url: str | None, api_key: str | None) -> None:
    """A key that is given must be the one that is used."""
    if client is not None and (api_url is not None or api_key is not None):
        raise TypeError("client= has an address and a key; give it, or api_url= and api_key=")


# Of calls that name no client. A connection serves every key, so there is no map of keys to fill.
_pool = Pool(CONNECTIONS_DEFAULT)


def session_of(client: Client | None, api_url: str | None, api_key: str | None) -> Session:
    """What carries a call out: the given client, or the default one with this address and key."""
    refuse_both(client, api_url, api_key)
    if client is not None:
        return client.session
    return Session(ClientFacts(load_settings(api_url, api_key)), _pool)
