"""Certificates: which are trusted, and what is said about the others."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from conftest import ME, Worlds
from fake_daemon import FakeDaemon, Reply
from settled import settled

from dayfly import CertificateRefused, Client, InvalidSettings, ServerUnreachable


def serve(context: ssl.SSLContext) -> FakeDaemon:
    daemon = FakeDaemon(context)
    daemon.on("GET", "/v1/me", Reply(200, ME))
    return daemon


@pytest.fixture
def secure(authority: Authority) -> Iterator[FakeDaemon]:
    daemon = serve(authority.server("IP:127.0.0.1"))
    yield daemon
    daemon.close()


def test_a_file_of_authorities(secure: FakeDaemon, authority: Authority, worlds: Worlds) -> None:
    async def twice(client: Any) -> Any:
        await settled(worlds.me(client))
        return await settled(worlds.me(client))

    assert worlds.use(twice, secure.url, ca_file=authority.file).project == "p"
    assert len({seen.connection for seen in secure.requests}) == 1


def test_a_context(secure: FakeDaemon, authority: Authority, worlds: Worlds) -> None:
    context = ssl.create_default_context(cafile=authority.file)
    assert worlds.use(worlds.me, secure.url, ssl_context=context).project == "p"
    with pytest.raises(InvalidSettings, match="ssl_context="):
        Client(secure.url, "k", ssl_context=context, ca_file=authority.file)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_environment_names_authorities(
    secure: FakeDaemon,
    authority: Authority,
    worlds: Worlds,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv(name, str(authority.file))
    assert worlds.use(worlds.me, secure.url).project == "p"


def test_an_untrusted_certificate_is_an_error_of_its_own(
    secure: FakeDaemon, worlds: Worlds, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dayfly")
    with pytest.raises(CertificateRefused) as caught:
        worlds.use(worlds.me, secure.url)
    assert isinstance(caught.value, ConnectionError)
    assert "ca_file" in str(caught.value)
    assert "SSL_CERT_FILE" in str(caught.value)
    assert secure.requests == []
    assert len(caplog.records) == 1, "it was tried again"


def test_a_certificate_for_another_name(authority: Authority, worlds: Worlds) -> None:
    other = serve(authority.server("DNS:other.example"))
    with pytest.raises(CertificateRefused) as caught:
        worlds.use(worlds.me, other.url, ca_file=authority.file)
    assert "ca_file" in str(caught.value)
    assert "SSL_CERT_FILE" in str(caught.value)
    assert "name" in (caught.value.hint or "")
    assert other.requests == []
    other.close()


def test_https_to_a_plain_server_is_said(
    fake: FakeDaemon, worlds: Worlds, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dayfly")
    with pytest.raises(ServerUnreachable) as caught:
        worlds.use(worlds.me, fake.url.replace("http:", "https:"))
    assert "plain HTTP" in str(caught.value)
    assert f"use {fake.url}" in str(caught.value)
    assert len(caplog.records) == 1, "it was tried again"


def test_a_file_that_is_none(worlds: Worlds, tmp_path: Path) -> None:
    file = tmp_path / "a.pem"
    file.write_text("nothing")
    with pytest.raises(InvalidSettings, match="certificates"):
        worlds.use(worlds.me, "https://127.0.0.1:9", ca_file=file)
    with pytest.raises(InvalidSettings, match="https"):
        worlds.use(worlds.me, "http://127.0.0.1:9", ca_file=file)
