"""Which certificates are trusted."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

from .errors import InvalidSettings


def authorities_of(environment: Mapping[str, str]) -> str | None:
    """The file or directory that the environment names; None for what the system trusts.

    ``SSL_CERT_FILE`` is OpenSSL's own word and comes first. ``REQUESTS_CA_BUNDLE`` is what most
    other Python programs go by.
    """
    return environment.get("SSL_CERT_FILE") or environment.get("REQUESTS_CA_BUNDLE") or None


def make_context(authorities: str | None) -> ssl.SSLContext:
    """What checks a server's certificate and its name."""
    if authorities is None:
        return ssl.create_default_context()
    try:
        if os.path.isdir(authorities):
            return ssl.create_default_context(capath=authorities)
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSettings(
            f"cannot read certificates from {authorities} ({error.strerror or error})",
            hint="ca_file=, SSL_CERT_FILE and REQUESTS_CA_BUNDLE name a file in PEM format",
        ) from None
