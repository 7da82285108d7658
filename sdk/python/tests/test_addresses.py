"""Addresses that are not those of a Dayfly server, and what is said about them."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from conftest import ME, Worlds
from fake_daemon import FakeDaemon, Reply, refusal
from settled import settled

from dayfly import ProtocolError, Unauthorized, me

BODY = json.dumps(ME).encode()


def test_a_redirect_says_where_to(fake: FakeDaemon, worlds: Worlds) -> None:
    target = "https://dayfly.example/v1/me?token=secret"
    fake.on("GET", "/v1/me", Reply(308, None, {"Location": target}))
    with pytest.raises(ProtocolError) as caught:
        worlds.use(worlds.me, fake.url)
    text = str(caught.value)
    assert "redirects to https://dayfly.example/v1/me" in text
    assert "set api_url= or DAYFLY_API_URL to https://dayfly.example" in text
    assert "secret" not in text
    assert len(fake.requests) == 1


def test_a_web_page_is_no_dayfly_server(fake: FakeDaemon, worlds: Worlds) -> None:
    page = Reply(200, b"<html>Welcome</html>", {"Content-Type": "text/html; charset=utf-8"})
    fake.on("GET", "/v1/me", page)
    with pytest.raises(ProtocolError) as caught:
        worlds.use(worlds.me, fake.url)
    text = str(caught.value)
    assert fake.url in text
    assert "responded with text/html" in text
    assert "no Dayfly server" in text
    assert "DAYFLY_API_URL" in text


CODINGS = {
    "gzip": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_what_was_compressed_unasked_is_read(
    fake: FakeDaemon, worlds: Worlds, coding: str
) -> None:
    fake.on("GET", "/v1/me", Reply(200, CODINGS[coding], {"Content-Encoding": coding}))

    async def twice(client: Any) -> Any:
        await settled(worlds.me(client))
        return await settled(worlds.me(client))

    assert worlds.use(twice, fake.url).project == "p"
    assert fake.requests[0].headers["accept-encoding"] == "identity"
    assert len({seen.connection for seen in fake.requests}) == 1


def test_what_cannot_be_unpacked_is_refused(fake: FakeDaemon, worlds: Worlds) -> None:
    fake.on("GET", "/v1/me", Reply(200, BODY, {"Content-Encoding": "br"}))
    with pytest.raises(ProtocolError, match="'br'"):
        worlds.use(worlds.me, fake.url)
    fake.on("GET", "/v1/me", Reply(200, BODY, {"Content-Encoding": "gzip"}))
    with pytest.raises(ProtocolError, match="compressed"):
        worlds.use(worlds.me, fake.url)


def test_a_missing_key_says_how_to_give_one(
    fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv("DAYFLY_API_KEY", raising=False)
    monkeypatch.delenv("DAYFLY_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    hint = "send the header `Authorization: Bearer <key>`"
    fake.on("GET", "/v1/me", refusal(401, "unauthorized", hint=hint))
    with pytest.raises(Unauthorized) as caught:
        me(api_url=fake.url)
    for word in ("no key was given", "DAYFLY_API_KEY", "api_key=", "dayfly login"):
        assert word in str(caught.value)
    with pytest.raises(Unauthorized) as caught:
        me(api_url=fake.url, api_key="df_wrong")
    assert "no key was given" not in str(caught.value)


@pytest.mark.parametrize(
    ("version", "word"), [("0.0.9", "older"), ("9.1.0", "newer"), ("0.1.7", None), ("?", None)]
)
def test_another_version_is_said_once_something_is_wrong(
    fake: FakeDaemon, worlds: Worlds, version: str, word: str | None
) -> None:
    fake.on("GET", "/health", Reply(200, {"status": "ok", "version": version}))
    fake.on("GET", "/v1/me", Reply(200, ME), refusal(404, "no_such_route", hint="see the list"))

    async def scenario(client: Any) -> str:
        await settled(worlds.me(client))
        assert fake.seen("GET", "/health") == []
        for _ in range(2):
            with pytest.raises(Exception, match="no_such_route") as caught:
                await settled(worlds.me(client))
        return str(caught.value)  # pyright: ignore

    text = worlds.use(scenario, fake.url)
    assert len(fake.seen("GET", "/health")) == 1
    assert "see the list" in text
    assert ("is older" in text, "is newer" in text) == (word == "older", word == "newer")
