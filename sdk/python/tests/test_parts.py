"""The parts that need no server."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from dayfly import (
    ApiError,
    CommandFailed,
    ExecResult,
    InvalidSettings,
    NetworkRule,
    ProtocolError,
    SandboxTimeout,
    VolumeMount,
)
from dayfly._http1 import BodyReader, Head, parse_head
from dayfly._making import SandboxWish
from dayfly._settings import Settings, load_settings
from dayfly._sse import Event, EventParser
from dayfly._wire import path_of, with_query
from dayfly.errors import CLASS_OF_CODE, CodeFailed, error_of_answer
from dayfly.execution import execution_from_wire
from dayfly.models import SandboxInfo, from_wire


def test_every_documented_code_has_its_class() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "api.md"
    if not page.exists():
        pytest.skip("the documentation is not beside the SDK")
    _, _, table = page.read_text(encoding="utf-8").partition("| code | status |")
    documented: set[str] = set()
    for line in table.splitlines()[2:]:
        cells = line.split("|")
        if len(cells) > 2:
            documented |= {word.strip(" `") for word in cells[1].split(",")}
    assert documented
    assert documented == set(CLASS_OF_CODE)


def test_an_error_shows_its_hint_and_its_request() -> None:
    body = b'{"error":"no","code":"timeout","hint":"try later","request_id":"req-7"}'
    error = error_of_answer(504, {"retry-after": "3"}, body)
    assert isinstance(error, SandboxTimeout)
    assert (error.code, error.status, error.retry_after) == ("timeout", 504, 3.0)
    assert "try later" in str(error)
    assert "req-7" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.hint) == (SandboxTimeout, "try later")


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"[]", b"", b'{"code": 7}'])
def test_the_answer_of_somebody_else_is_still_an_error(body: bytes) -> None:
    error = error_of_answer(502, {}, body)
    assert type(error) is ApiError
    assert "502" in str(error)


def test_a_code_of_a_later_version_is_a_plain_error() -> None:
    error = error_of_answer(418, {}, b'{"error":"no","code":"teapot"}')
    assert type(error) is ApiError
    assert error.code == "teapot"


def test_a_failed_command_carries_its_result() -> None:
    result = ExecResult("out\n", "bad\n", 2)
    with pytest.raises(CommandFailed) as caught:
        result.check()
    assert caught.value.result is result
    assert "bad" in str(caught.value)
    assert str(result) == "out\nbad\n[exit 2]"
    assert pickle.loads(pickle.dumps(caught.value)).exit_code == 2


def test_events_are_the_same_however_they_are_cut() -> None:
    body = (
        "\ufeff: alive\n\nevent: stdout\r\ndata: a\r\ndata: é\r\n\r\n"
        "data:x\nid: 1\n\nevent: nothing\n\ndata: z\revent: error\r\rdata: no end\n"
    ).encode()
    whole = EventParser().push(body)
    assert whole == [Event("stdout", "a\né"), Event("message", "x", "1"), Event("error", "z", "1")]
    for seed in range(200):
        dice = random.Random(seed)
        cuts = sorted(dice.randrange(len(body) + 1) for _ in range(dice.randrange(8)))
        parser, events, start = EventParser(), list[Event](), 0
        for cut in [*cuts, len(body)]:
            events += parser.push(body[start:cut])
            start = cut
        assert events == whole, f"seed {seed}"


def test_an_endless_event_is_refused() -> None:
    parser = EventParser()
    parser.push(b"data: " + b"a" * (1 << 19))
    with pytest.raises(ProtocolError):
        parser.push(b"a" * (1 << 20))


def read_body(head: Head, wire: bytes, cuts: list[int]) -> bytes:
    reader, found, start = BodyReader(head, "GET"), b"", 0
    for cut in [*cuts, len(wire)]:
        if cut > start:
            reader.feed(wire[start:cut])
            start = cut
        while piece := reader.take():
            found += piece
    assert reader.is_over
    assert reader.leaves_connection_clean
    return found


def test_bodies_are_the_same_however_they_are_cut() -> None:
    chunked = parse_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    wire = b"4\r\nWiki\r\n5;x=y\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nTrailer: 1\r\n\r\n"
    sized = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    for seed in range(200):
        dice = random.Random(seed)
        cuts = sorted(dice.randrange(len(wire)) for _ in range(dice.randrange(6)))
        assert read_body(chunked, wire, cuts) == b"Wikipedia in\r\n\r\nchunks."
        assert read_body(sized, b"hello", [cut for cut in cuts if cut < 5]) == b"hello"


def test_a_body_that_ends_early_is_noticed() -> None:
    reader = BodyReader(parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), "GET")
    reader.feed(b"hel")
    assert reader.take() == b"hel"
    with pytest.raises(EOFError):
        reader.feed(b"")


def test_names_cannot_leave_their_place() -> None:
    assert path_of("volumes", "a/b c") == "/v1/volumes/a%2Fb%20c"
    assert (
        with_query("/x", path="/a b&ü", user=None, recursive=True)
        == ("/x?path=%2Fa%20b%26%C3%BC&recursive=true")
        or with_query("/x", path="/a b&ü") == "/x?path=/a%20b%26%C3%BC"
    )
    for name in ("", ".", ".."):
        with pytest.raises(ValueError, match="not a name"):
            path_of("sandboxes", name)


def test_the_body_of_a_create() -> None:
    wish = SandboxWish(
        volumes=[VolumeMount("v", "/workspace"), "w", {"name": "x", "read_only": True}],
        egress_allowlist=[],
        metadata={"a": "b"},
    )
    # Without a template it is the server's default, as with every other client.
    assert wish.body() == {
        "volumes": [
            {"name": "v", "path": "/workspace"},
            {"name": "w"},
            {"name": "x", "read_only": True},
        ],
        "egress_allowlist": [],
        "metadata": {"a": "b"},
    }
    assert SandboxWish(from_snapshot="snap-1", network="public").body() == {
        "from_snapshot": "snap-1",
        "network": {"mode": "public"},
    }
    sizes = {"cpu": 1.5, "memory_mb": 1024, "disk_gb": 4.0}
    assert SandboxWish(cpu=1.5, memory_mb=1024, disk_gb=4.0).body() == sizes
    assert SandboxWish(class_="reserved").body() == {"class": "reserved"}
    shared = {"id": "sb-1", "template": "base", "status": "hibernated", "class": "shared"}
    info = from_wire(SandboxInfo, {**shared, "sleep_reason": "pressure"})
    assert (info.class_, info.sleep_reason) == ("shared", "pressure")
    assert SandboxWish(from_snapshot="snap-1", disk_only=True).body() == {
        "from_snapshot": "snap-1",
        "disk_only": True,
    }
    with pytest.raises(TypeError):
        SandboxWish(egress_allowlist="example.com").body()


def test_the_forms_of_a_result() -> None:
    wire: dict[str, Any] = {
        "results": [
            {"text/plain": "<Figure>", "image/png": "iVBORw0K"},
            {"text/plain": "42", "application/json": '{"a": 1}', "text/html": "<b>42</b>"},
        ],
        "stdout": "out\n",
        "stderr": "",
        "error": "ValueError: bad: value",
        "traceback": ["line 1", "line 2"],
        "exit_code": 1,
    }
    execution = execution_from_wire(wire)
    assert execution.text == "42"
    assert execution.png == b"\x89PNG\r\n"
    assert execution.json == {"a": 1}
    assert execution.html == "<b>42</b>"
    assert execution.svg is None
    assert execution.error is not None
    assert (execution.error.name, execution.error.value) == ("ValueError", "bad: value")
    with pytest.raises(CodeFailed, match="ValueError: bad: value"):
        execution.raise_for_error()
    assert "42" in str(execution)
    assert execution.stderr == "line 1\nline 2\n"


def test_a_picture_is_saved(tmp_path: Path) -> None:
    execution = execution_from_wire({"results": [{"image/png": "iVBORw0K"}]})
    assert execution.save_png(tmp_path / "a.png").read_bytes() == b"\x89PNG\r\n"
    with pytest.raises(ValueError, match="no PNG"):
        execution_from_wire({"results": []}).save_png(tmp_path / "b.png")


def test_a_rule_reads_as_it_is_written() -> None:
    assert str(NetworkRule(host="example.com")) == "example.com"
    assert str(NetworkRule(host="example.com", ports=[22, 8443])) == "example.com:22,8443"
    assert str(NetworkRule(cidr="93.184.216.0/24")) == "93.184.216.0/24"


class TestSettings:
    @pytest.fixture(autouse=True)
    def local(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "local.json"
        # The host of the tests may have a daemon.
        monkeypatch.setattr("dayfly._settings.LOCAL_ACCESS", path)
        return path

    def test_a_daemon_on_this_host_is_the_last_that_is_asked(
        self, local: Path, tmp_path: Path
    ) -> None:
        home = {"HOME": str(tmp_path)}
        assert load_settings(environment=home) == Settings("http://127.0.0.1:7070")
        text = '{"url": "http://127.0.0.1:9/", "key": "local-key", "instance": "x"}'
        local.write_text(text)
        # Its group can read it, which is what it is for.
        local.chmod(0o640)
        assert load_settings(environment=home) == Settings("http://127.0.0.1:9", "local-key")
        # Its key is for its own address.
        elsewhere = {**home, "DAYFLY_API_URL": "http://elsewhere"}
        assert load_settings(environment=elsewhere) == Settings("http://elsewhere")
        assert load_settings("http://127.0.0.1:9", environment=home).key == "local-key"
        own = {**home, "DAYFLY_API_KEY": "env-key"}
        assert load_settings(environment=own) == Settings("http://127.0.0.1:7070", "env-key")
        config = tmp_path / "config.toml"
        config.write_text('current = "lab"\n[contexts.lab]\nurl = "http://lab:1"\n')
        chosen = {**home, "DAYFLY_CONFIG": str(config)}
        assert load_settings(environment=chosen) == Settings("http://lab:1")

    @pytest.mark.parametrize("text", ['{"key": "local-key', "[]", '{"url": "http://a"}'])
    def test_a_foreign_file_of_a_daemon_is_refused_without_its_text(
        self, local: Path, text: str
    ) -> None:
        local.write_text(text)
        with pytest.raises(InvalidSettings, match="dayflyd of this version") as caught:
            load_settings(environment={})
        assert "local-key" not in str(caught.value)

    def test_what_is_not_for_this_user_is_passed_over(
        self, local: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> str:
            raise PermissionError(13, "no")

        monkeypatch.setattr(Path, "read_text", refuse)
        assert load_settings(environment={}) == Settings("http://127.0.0.1:7070")

    def test_arguments_beat_the_environment_beats_the_default(self, tmp_path: Path) -> None:
        home = {"HOME": str(tmp_path)}
        assert load_settings(environment=home).url == "http://127.0.0.1:7070"
        environment = {**home, "DAYFLY_API_URL": "http://e:1/", "DAYFLY_API_KEY": "k"}
        found = load_settings(environment=environment)
        assert (found.url, found.key) == ("http://e:1", "k")
        assert load_settings("https://a/x/", "b", environment).path == "/x"
        assert "k" not in repr(found).replace("key", "")

    @pytest.mark.parametrize("url", ["ftp://a", "a:1", "http://", "http://a:b"])
    def test_an_address_that_is_none_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidSettings):
            load_settings(url, "k", {})

    def test_the_context_file(self, tmp_path: Path) -> None:
        pytest.importorskip("tomllib", reason="the context file needs Python 3.11")
        file = tmp_path / "dayfly" / "config.toml"
        file.parent.mkdir()
        file.write_text('current = "lab"\n[contexts.lab]\nurl = "http://lab:1/"\nkey = "lk"\n')
        file.chmod(0o600)
        environment = {"XDG_CONFIG_HOME": str(tmp_path)}
        found = load_settings(environment=environment)
        assert (found.url, found.key) == ("http://lab:1", "lk")
        # A context's key goes to that context's address and to no other.
        assert load_settings("http://elsewhere", None, environment).key is None
        file.chmod(0o644)
        with pytest.raises(InvalidSettings, match="others can read"):
            load_settings(environment=environment)

    @pytest.mark.parametrize("key", ["", "  "])
    def test_an_empty_key_is_refused(self, key: str) -> None:
        with pytest.raises(InvalidSettings, match="api_key= is empty"):
            load_settings("http://a", key, {"DAYFLY_API_KEY": "df_of_the_operator"})

    def test_an_address_with_v1_is_refused(self) -> None:
        with pytest.raises(InvalidSettings) as caught:
            load_settings("http://127.0.0.1:7070/v1/", "k", {})
        assert "/v1" in str(caught.value)
        assert "use http://127.0.0.1:7070" in str(caught.value)

    @pytest.mark.parametrize("url", ["http://u:secret@h", "http://h/?k=secret", "http://h/#secret"])
    def test_more_than_an_address_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidSettings) as caught:
            load_settings(url, "k", {})
        assert "secret" not in str(caught.value)
