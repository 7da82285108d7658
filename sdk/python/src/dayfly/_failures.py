"""What to say when no connection could be made."""

from __future__ import annotations

import errno
import socket
import ssl

from ._facts import ClientFacts
from .errors import CertificateRefused, ServerUnreachable

# What OpenSSL says when the other side answers in plain text.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
_TRUST = (
    "ca_file= or the environment variable SSL_CERT_FILE names the file of the authority that"
    " signed it"
)
# The certificate is for another host name, or another address.
_NAME_MISMATCHES = (62, 64)


def connect_failure(facts: ClientFacts, error: BaseException) -> ServerUnreachable:
    """The error for a connection that could not be made."""
    if isinstance(error, ServerUnreachable):
        # Said already, by who knew more. As an OSError it is caught with the others.
        return error
    url = facts.settings.url
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(facts, error)
    if isinstance(error, ssl.SSLError):
        return _not_tls(facts, error)
    through = f" through the proxy {facts.route.proxy.address}" if facts.route.proxy else ""
    failure = ServerUnreachable(
        f"cannot connect to {url}{through} ({words(error)})",
        hint="is dayflyd running there? DAYFLY_API_URL says where to look",
    )
    if isinstance(error, socket.gaierror):
        failure.hint = "is the name right? DAYFLY_API_URL says where to look"
    if facts.route.proxy is not None:
        failure.hint = "is the proxy right? proxy=, HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names it"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        failure.hint = "this process may not open more files: `ulimit -n`, or max_connections="
    return failure


def _certificate(facts: ClientFacts, error: ssl.SSLCertVerificationError) -> CertificateRefused:
    hint = _TRUST
    if error.verify_code in _NAME_MISMATCHES:
        hint = (
            "use the name that the certificate is for as address; if this is the wrong server or"
            f" authority: {_TRUST}"
        )
    return CertificateRefused(
        f"the certificate of {facts.settings.url} is not trusted: {error.verify_message}", hint=hint
    )


def _not_tls(facts: ClientFacts, error: ssl.SSLError) -> ServerUnreachable:
    url = facts.settings.url
    reason = error.reason or words(error)
    failure = ServerUnreachable(f"no TLS connection to {url} could be made ({reason})")
    failure.hint = f"if that server has no TLS, its address is http://{facts.route.authority}"
    if reason in _NOT_TLS:
        failure.message = f"{url} is an https address, and the server there speaks plain HTTP"
        failure.args = (failure.message,)
        failure.hint = f"use http://{facts.route.authority}"
        failure.may_pass = False
    return failure


def proxy_refusal(facts: ClientFacts, status: int) -> ServerUnreachable:
    """The error for a proxy that does not let us through."""
    proxy = facts.route.proxy
    address = "in between" if proxy is None else proxy.address
    failure = ServerUnreachable(
        f"the proxy {address} does not connect to {facts.settings.url} (HTTP status {status})",
        status=status,
        hint="NO_PROXY names hosts that are reached without it",
    )
    if status == 407:
        failure.hint = "it wants a name and a password: http://user:password@host:port"
    failure.may_pass = status >= 500
    return failure


def no_place(limit: int, seconds: float) -> ServerUnreachable:
    failure = ServerUnreachable(
        f"all {limit} connections of this client have been in use for {seconds:g} s",
        hint="max_connections= raises the limit; each command that is followed holds one",
    )
    failure.may_pass = False
    return failure


def words(error: BaseException) -> str:
    return str(error) or type(error).__name__
