"""What one client knows, without input or output: where to, as whom, how patiently.

Connections are apart from it: those of one route serve every key.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ._headers import default_headers
from ._http1 import request_head
from ._proxy import Proxy, proxy_for
from ._settings import Settings
from ._tls import authorities_of
from ._wire import CALL_SECONDS, Request
from .errors import InvalidSettings

Logger = logging.Logger | logging.LoggerAdapter[logging.Logger]

LOGGER = logging.getLogger("dayfly")
RETRIES_DEFAULT = 3
CONNECTIONS_DEFAULT = 100
# Headers that say how the request itself is to be read, or who sends it.
_OWN_HEADERS = frozenset(
    [
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "host",
        "idempotency-key",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)


@dataclass(frozen=True)
class Route:
    """How a server is reached. A connection of a route may be used by all who have the same."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = None
    # What its certificate is checked against; None is what the system trusts.
    authorities: str | None = None

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as they stand in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class ClientFacts:
    """The settings of one client, and what it has learnt about its server."""

    def __init__(
        self,
        settings: Settings,
        *,
        ca_file: str | os.PathLike[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        headers: Mapping[str, str] | None = None,
        logger: Logger | None = None,
        allows_socks: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        environment = os.environ if environment is None else environment
        _check(settings, ca_file, ssl_context, timeout, max_retries)
        self.settings: Settings = settings
        self.timeout: float = CALL_SECONDS if timeout is None else timeout
        self.max_retries: int = RETRIES_DEFAULT if max_retries is None else max_retries
        self.logger: Logger = LOGGER if logger is None else logger
        self.headers: dict[str, str] = {**default_headers(settings), **_checked(headers or {})}
        found = proxy_for(
            settings.scheme,
            settings.host,
            settings.port,
            proxy,
            environment,
            allows_socks=allows_socks,
        )
        authorities = None
        if settings.scheme == "https" and ssl_context is None:
            authorities = authorities_of(environment) if ca_file is None else os.fspath(ca_file)
        self.route: Route = Route(
            settings.scheme, settings.host, settings.port, found, authorities
        )
        # None until somebody had a reason to ask.
        self.server_version: str | None = None

    def timeout_of(self, request: Request) -> float | None:
        """How long the response to a request may take.

        Requests say how long it takes with an ordinary network; a client that was given another
        timeout has more or less patience with that.
        """
        timeout = request.timeout
        if timeout is not None and timeout >= CALL_SECONDS:
            timeout += self.timeout - CALL_SECONDS
        limits = [one for one in (timeout, request.seconds_max) if one is not None]
        return min(limits, default=None)

    def body_deadline(self, request: Request, began: float) -> float | None:
        """Until when the body of a response is read, whose head has just come.

        It has as long as the head had; but both together no longer than ``seconds_max``.
        """
        timeout = self.timeout_of(request)
        limits = [] if timeout is None else [time.monotonic() + timeout]
        if request.seconds_max is not None:
            limits.append(began + request.seconds_max)
        return min(limits, default=None)

    def headers_of(self, request: Request) -> dict[str, str]:
        return {**self.headers, **request.headers}

    def head_of(self, request: Request) -> bytes:
        headers = self.headers_of(request)
        proxy = self.route.proxy
        # Through a tunnel the proxy sees nothing of this.
        is_absolute = proxy is not None and not self.route.is_secure
        if is_absolute and proxy is not None and proxy.authorization is not None:
            headers["Proxy-Authorization"] = proxy.authorization
        return request_head(self.settings, request, headers, is_absolute=is_absolute)

    def log_response(
        self, request: Request, status: int, headers: Mapping[str, str], began: float
    ) -> None:
        # Without the query, which may name what is nobody's business.
        self.logger.debug(
            "%s %s %d in %.0f ms, request %s",
            request.method,
            request.path.partition("?")[0],
            status,
            (time.monotonic() - began) * 1000,
            headers.get("x-request-id", "without an id"),
        )

    def log_failure(self, request: Request, error: Exception, began: float) -> None:
        self.logger.debug(
            "%s %s failed after %.0f ms: %s",
            request.method,
            request.path.partition("?")[0],
            (time.monotonic() - began) * 1000,
            getattr(error, "message", error),
        )


def _check(
    settings: Settings,
    ca_file: str | os.PathLike[str] | None,
    ssl_context: ssl.SSLContext | None,
    timeout: float | None,
    max_retries: int | None,
) -> None:
    if ca_file is not None and ssl_context is not None:
        raise InvalidSettings(
            "ca_file= and ssl_context= are given",
            hint="ssl_context.load_verify_locations(ca_file) does both",
        )
    if (ca_file is not None or ssl_context is not None) and settings.scheme != "https":
        raise InvalidSettings(f"{settings.url} has no certificate: it is not an https address")
    if ca_file is not None and not Path(ca_file).exists():
        raise InvalidSettings(f"ca_file= names {ca_file}, which does not exist")
    if timeout is not None and not timeout > 0:
        raise InvalidSettings(f"timeout= is {timeout!r}, and has to be more than 0 seconds")
    if max_retries is not None and max_retries < 0:
        raise InvalidSettings(f"max_retries= is {max_retries!r}, and cannot be less than 0")


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _OWN_HEADERS:
            raise InvalidSettings(f"headers= cannot set {name}, which this client sets itself")
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_name or not value.isprintable() or not value.isascii():
            raise InvalidSettings(f"headers= holds {name!r}, which is not a header of one line")
    return dict(headers)
