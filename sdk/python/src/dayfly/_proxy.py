"""Which proxy stands between this process and a server, if any.

As other programs do it: ``HTTPS_PROXY`` and ``HTTP_PROXY`` by the scheme of the address, then
``ALL_PROXY``, each in lower case first; ``NO_PROXY`` names what is reached without one. A server on
this host never is asked through a proxy, which could not reach it and would see the key.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from .errors import InvalidSettings


@dataclass(frozen=True)
class Proxy:
    """A proxy. Its password is in no text that this prints."""

    host: str
    port: int
    credentials: tuple[str, str] | None = field(repr=False, default=None)
    scheme: str = "http"

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def authorization(self) -> str | None:
        """The header that an HTTP proxy wants."""
        if self.credentials is None:
            return None
        return "Basic " + base64.b64encode(":".join(self.credentials).encode()).decode()


def parse_proxy(text: str, source: str, *, allows_socks: bool = False) -> Proxy:
    """The proxy of an address such as ``http://user:password@host:3128``."""
    address = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        # The address may hold a password.
        raise InvalidSettings(f"{source} is not the address of a proxy") from None
    if scheme.startswith("socks") and not allows_socks:
        raise InvalidSettings(
            f"{source} names a SOCKS proxy, which this client does not speak",
            hint="dayfly.httpx2.AsyncClient does: pip install 'dayfly[httpx2]'",
        )
    schemes = ("http", "socks5", "socks5h") if allows_socks else ("http",)
    if scheme not in schemes or not host:
        raise InvalidSettings(
            f"{source} is not the address of an HTTP proxy",
            hint="it looks like http://host:3128 or http://user:password@host:3128",
        )
    credentials = None
    if parts.username is not None:
        credentials = (unquote(parts.username), unquote(parts.password or ""))
    return Proxy(host, port or (80 if scheme == "http" else 1080), credentials, scheme)


def proxy_for(
    scheme: str,
    host: str,
    port: int,
    given: str | None,
    environment: Mapping[str, str],
    *,
    allows_socks: bool = False,
) -> Proxy | None:
    """The proxy for a server: the given one, else that of the environment."""
    if is_loopback(host):
        return None
    if given is not None:
        return parse_proxy(given, "proxy=", allows_socks=allows_socks)
    found = proxy_variable(scheme, environment)
    if found is None or _is_exempt(host, port, environment):
        return None
    return parse_proxy(environment[found], found, allows_socks=allows_socks)


def proxy_variable(scheme: str, environment: Mapping[str, str]) -> str | None:
    """The environment variable that names the proxy for a scheme."""
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
        if name == "HTTP_PROXY" and "REQUEST_METHOD" in environment:
            # In a CGI program this is a header that anybody may send.
            continue
        if environment.get(name, "").strip():
            return name
    return None


def is_loopback(host: str) -> bool:
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    return address is not None and address.is_loopback


def _is_exempt(host: str, port: int, environment: Mapping[str, str]) -> bool:
    listed = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    return any(_covers(entry.strip().lower(), host.lower(), port) for entry in listed.split(","))


def _covers(entry: str, host: str, port: int) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        wanted = rest.removeprefix(":")
    else:
        name, _, wanted = entry.partition(":")
    if wanted and wanted != str(port):
        return False
    if address is not None:
        return _address(name) == address
    name = name.removeprefix("*").removeprefix(".")
    return bool(name) and (host == name or host.endswith("." + name))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
