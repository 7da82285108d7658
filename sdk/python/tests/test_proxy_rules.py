"""Which servers are asked through which proxy."""

from __future__ import annotations

import pytest

from dayfly import InvalidSettings
from dayfly._proxy import proxy_for

HOSTS = [
    ("https", "a.example", {"HTTPS_PROXY": "http://p:1"}, True),
    ("https", "a.example", {"https_proxy": "http://p:1"}, True),
    ("https", "a.example", {"HTTP_PROXY": "http://p:1"}, False),
    ("http", "a.example", {"HTTP_PROXY": "http://p:1"}, True),
    ("http", "a.example", {"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, False),
    ("http", "a.example", {"ALL_PROXY": "p:1"}, True),
    ("http", "a.example", {"all_proxy": "p:1", "http_proxy": ""}, True),
    ("http", "a.example", {"ALL_PROXY": "p:1", "NO_PROXY": "*"}, False),
    ("http", "a.example", {"ALL_PROXY": "p:1", "NO_PROXY": "b.example, a.example"}, False),
    ("http", "a.example", {"ALL_PROXY": "p:1", "NO_PROXY": "example"}, False),
    ("http", "a.example", {"ALL_PROXY": "p:1", "no_proxy": ".example"}, False),
    ("http", "a.example", {"ALL_PROXY": "p:1", "NO_PROXY": "xample"}, True),
    ("http", "a.example", {"ALL_PROXY": "p:1", "NO_PROXY": "a.example:81"}, True),
    ("http", "a.example", {"ALL_PROXY": "p:1", "NO_PROXY": "a.example:80"}, False),
    ("http", "10.1.2.3", {"ALL_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, False),
    ("http", "10.1.2.3", {"ALL_PROXY": "p:1", "NO_PROXY": "11.0.0.0/8"}, True),
    ("http", "fd00::1", {"ALL_PROXY": "p:1", "NO_PROXY": "[fd00::1]"}, False),
    ("http", "fd00::1", {"ALL_PROXY": "p:1", "NO_PROXY": "fd00::/8"}, False),
    ("http", "localhost", {"ALL_PROXY": "p:1"}, False),
    ("http", "a.localhost", {"ALL_PROXY": "p:1"}, False),
    ("http", "127.8.8.8", {"ALL_PROXY": "p:1"}, False),
    ("http", "::1", {"ALL_PROXY": "p:1"}, False),
]


@pytest.mark.parametrize(("scheme", "host", "environment", "is_used"), HOSTS, ids=str)
def test_which_hosts_are_asked_through_it(
    scheme: str, host: str, environment: dict[str, str], is_used: bool
) -> None:
    assert (proxy_for(scheme, host, 80, None, environment) is not None) is is_used


@pytest.mark.parametrize("address", ["socks5://h:1", "ftp://h", "http://", "http://h:x", "https://h"])
def test_what_is_no_http_proxy_is_refused(address: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        proxy_for("http", "a.example", 80, address.replace("h:", "u:secret@h:"), {})
    assert "proxy=" in str(caught.value)
    assert "secret" not in str(caught.value)
