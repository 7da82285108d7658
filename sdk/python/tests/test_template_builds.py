"""Builds of templates: what is sent, and how they are followed."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import threading
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Lost, Reply, Seen, Stream, refusal
from settled import settled

from dayfly import (
    AnswerLost,
    AsyncSandbox,
    AsyncTemplate,
    BuildEvent,
    BuildFailed,
    NotFound,
    Sandbox,
    Template,
    TemplateBuild,
    TemplateVersion,
)

BUILD = "/v1/templates/build"
ONE = "/v1/templates/builds/bld-1"
EVENTS = f"{ONE}/events"

KINDS = pytest.mark.parametrize("kind", [Template, AsyncTemplate], ids=["sync", "async"])


def build_body(status: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "bld-1",
        "name": "web",
        "tag": "latest",
        "status": status,
        "error": None,
        "started_at": None,
        "ended_at": None,
        "size_mb": 0,
        "bytes": 0,
        "image_ref": "",
        "version": None,
        "steps": 0,
        "cached": 0,
        "a_field_of_a_later_version": 1,
        **more,
    }


DONE = build_body("done", image_ref="web:latest", version="tv-1", steps=2, cached=1)
FAILED = build_body("failed", error="step 2 of 2 failed with exit code 3: RUN b (line 3)")


def event(kind: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return "message", {"event": kind, **data}


STEPS = [
    event("stage", name="stage 1", steps=2),
    event("cached", number=1, steps=2, text="RUN a"),
    event("started", number=2, steps=2, text="RUN b"),
    event("output", text="hello", is_error=False),
]
BUILT = event("built", name="web", tag="latest", version="tv-1", steps=2, cached=1, elapsed_ms=1500)
STEP = {
    "number": 2,
    "steps": 2,
    "line": 3,
    "text": "RUN b",
    "exit_code": 3,
    "tail": ["no such file"],
    "sandbox": "sb-9",
}


def serve(fake: FakeDaemon, *streams: Any, end: dict[str, Any] = DONE) -> None:
    fake.on("POST", BUILD, Reply(202, build_body("queued")))
    fake.on("GET", EVENTS, *streams)
    fake.on("GET", ONE, Reply(200, end))


def build(kind: Any, fake: FakeDaemon, builder: Any = None, **options: Any) -> Any:
    async def scenario() -> Any:
        making = builder or kind.from_template("base").run("a").run("b")
        name = options.pop("name", "web")
        return await settled(making.build(name, api_url=fake.url, api_key="k", **options))

    return asyncio.run(scenario())


def as_sent(name: str) -> str:
    """Forms have their names in UTF-8, which that reader does not expect."""
    return name.encode("latin-1").decode("utf-8")


def form_of(seen: Seen) -> tuple[dict[str, str], dict[str, bytes]]:
    """The texts and the files of a form, by a reader that is not ours."""
    head = f"Content-Type: {seen.headers['content-type']}\r\n\r\n"
    texts: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for part in message_from_string(head + seen.body.decode("latin-1")).get_payload():
        one: Any = part
        name = as_sent(one.get_param("name", header="content-disposition"))
        content: bytes = one.get_payload(decode=True)
        file_name = one.get_filename()
        if file_name is None:
            texts[name] = content.decode()
        else:
            assert as_sent(file_name) == name
            files[name] = content
    return texts, files


@KINDS
def test_a_build_is_followed_to_its_end(fake: FakeDaemon, kind: Any) -> None:
    serve(fake, Stream([*STEPS, BUILT], first_id=1))
    events: list[BuildEvent] = []
    built = build(kind, fake, on_event=events.append)
    assert isinstance(built, TemplateBuild)
    assert (built.id, built.name, built.version) == ("bld-1", "web", "tv-1")
    assert (built.reference, built.steps, built.cached) == ("web@tv-1", 2, 1)
    assert [str(one) for one in events] == [
        "stage 1: 2 steps",
        "[1/2] cached  RUN a",
        "[2/2] RUN b",
        "    hello",
        "built web:latest in 1.5 s (1 of 2 steps from the cache)",
    ]
    texts, files = form_of(fake.seen("POST", BUILD)[0])
    assert texts == {"name": "web", "dockerfile": "FROM base\nRUN a\nRUN b\n"}
    assert files == {}
    assert "content-length" in fake.seen("POST", BUILD)[0].headers
    assert fake.seen("DELETE", ONE) == []


@KINDS
def test_what_is_asked_for_is_in_the_form(fake: FakeDaemon, kind: Any) -> None:
    serve(fake, Stream([BUILT], first_id=1))
    build(
        kind,
        fake,
        name="web:1.0",
        description="a server",
        cpu=2,
        memory_mb=1024,
        disk_gb=1.5,
        target="final",
        build_args={"A": "b"},
        egress_allowlist=["pypi.org"],
        fresh=True,
    )
    texts, _ = form_of(fake.seen("POST", BUILD)[0])
    assert json.loads(texts.pop("build_args")) == {"A": "b"}
    assert json.loads(texts.pop("network")) == {"mode": "allowlist", "rules": ["pypi.org"]}
    assert texts == {
        "name": "web",
        "tag": "1.0",
        "dockerfile": "FROM base\nRUN a\nRUN b\n",
        "description": "a server",
        "cpu": "2",
        "memory_mb": "1024",
        "size_mb": "1536",
        "target": "final",
        "fresh": "true",
    }
    with pytest.raises(ValueError, match="tag"):
        build(kind, fake, name="web:1.0", tag="2.0")
    with pytest.raises(ValueError, match="not both"):
        build(kind, fake, network="public", egress_allowlist=["a"])
    with pytest.raises(TypeError, match="did you mean 'memory_mb'"):
        build(kind, fake, memory=3)


def tree(place: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def sent(fake: FakeDaemon, builder: Template) -> tuple[dict[str, str], dict[str, bytes]]:
    serve(fake, Stream([BUILT], first_id=1))
    fake.requests.clear()
    build(Template, fake, builder)
    return form_of(fake.seen("POST", BUILD)[0])


def test_only_what_is_copied_is_sent(fake: FakeDaemon, tmp_path: Path) -> None:
    tree(tmp_path, {"src/a.py": "1", "src/sub/ä b.py": "2", "secret": "3", "run.sh": "4"})
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "src" / "a.py").chmod(0o644)
    (tmp_path / "src" / "sub" / "ä b.py").chmod(0o600)
    base = Template.from_template("base", context=tmp_path)
    texts, files = sent(fake, base.copy(["src", tmp_path / "run.sh"], "/app/"))
    assert files == {"src/a.py": b"1", "src/sub/ä b.py": b"2", "run.sh": b"4"}
    if os.name == "posix":
        assert json.loads(texts["context.modes"]) == {"src/sub/ä b.py": "600", "run.sh": "755"}
    assert sent(fake, base.run("true"))[1] == {}


def test_an_ignore_file_holds_and_is_sent(fake: FakeDaemon, tmp_path: Path) -> None:
    files = {"a.py": "1", "b.log": "2", "deep/c.log": "3", "deep/d.py": "4", "packages/e": "5"}
    tree(tmp_path, {**files, ".dockerignore": "**/*.log\npackages\n"})
    expected = {"a.py", "deep/d.py", ".dockerignore"}
    copying = Template.from_template("base", context=tmp_path).copy(".", "/app")
    assert set(sent(fake, copying)[1]) == expected
    written = Template.from_dockerfile("FROM base\nCOPY . /app\n", context=tmp_path)
    assert set(sent(fake, written)[1]) == expected
    # One that takes nothing is sent without the directory that it happens to stand in.
    for text in ("FROM base\nRUN a\n", "FROM base AS one\nFROM base\ncopy --from=one /a /b\n"):
        assert sent(fake, Template.from_dockerfile(text, context=tmp_path))[1] == {}
    hidden = Template.from_template("base", context=tmp_path).copy("packages", "/app")
    with pytest.raises(ValueError, match=r"'packages' has no files, or \.dockerignore hides"):
        build(Template, fake, hidden)


@pytest.mark.skipif(os.name != "posix", reason="links need rights on other systems")
def test_links_are_followed_inside_alone(fake: FakeDaemon, tmp_path: Path) -> None:
    place = tmp_path / "context"
    tree(place, {"real/a": "1"})
    (tmp_path / "outside").write_text("secret", encoding="utf-8")
    (place / "link").symlink_to("real")
    (place / "file").symlink_to("real/a")
    base = Template.from_template("base", context=place)
    assert sent(fake, base.copy(["link", "file"], "/x/"))[1] == {"link/a": b"1", "file": b"1"}
    for target, said in [("../../outside", "leads out"), ("nowhere", "leads nowhere")]:
        (place / "real" / "bad").unlink(missing_ok=True)
        (place / "real" / "bad").symlink_to(target)
        with pytest.raises(ValueError, match=said):
            build(Template, fake, base.copy("real", "/x"))
    (place / "real" / "bad").unlink()
    (place / "real" / "up").symlink_to("..")
    with pytest.raises(ValueError, match="that it is in"):
        build(Template, fake, base.copy("real", "/x"))
    (place / "real" / "up").unlink()
    os.mkfifo(place / "real" / "pipe")
    with pytest.raises(ValueError, match="neither a file nor a directory"):
        build(Template, fake, base.copy("real", "/x"))
    with pytest.raises(FileNotFoundError, match="'none' is not in"):
        build(Template, fake, base.copy("none", "/x"))


def test_too_much_is_refused_before_anything_is_sent(
    fake: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, {"a": "1" * 600, "b": "1" * 600})
    all_of_it = Template.from_template("base", context=tmp_path).copy(".", "/x")
    monkeypatch.setattr("dayfly._build_context.CONTEXT_BYTES_MAX", 1000)
    with pytest.raises(ValueError, match="MiB; copy less"):
        build(Template, fake, all_of_it)
    monkeypatch.setattr("dayfly._build_context.CONTEXT_BYTES_MAX", 2000)
    monkeypatch.setattr("dayfly._build_context.CONTEXT_FILES_MAX", 1)
    with pytest.raises(ValueError, match="more than 1 files"):
        build(Template, fake, all_of_it)
    assert fake.seen("POST", BUILD) == []


@KINDS
def test_a_failed_step_says_which_and_where_to_look(fake: FakeDaemon, kind: Any) -> None:
    failure = event("failed", error=FAILED["error"], step=STEP)
    serve(fake, Stream([*STEPS, failure], first_id=1), end=FAILED)
    with pytest.raises(BuildFailed) as caught:
        build(kind, fake)
    error = caught.value
    assert (error.step, error.exit_code, error.lines) == ("RUN b", 3, ["no such file"])
    assert (error.sandbox_id, error.build.id) == ("sb-9", "bld-1")
    assert str(error) == (
        "step 2 of 2 failed with exit code 3: RUN b (line 3)\n  | no such file\n"
        "hint: to look: dayfly template debug sb-9"
    )
    assert pickle.loads(pickle.dumps(error)).exit_code == 3
    assert fake.seen("DELETE", ONE) == []


def test_a_build_that_no_step_failed_says_why(fake: FakeDaemon) -> None:
    end = build_body("failed", error="line 1: there is no x in the build context")
    serve(fake, Stream([event("failed", error=end["error"], step=None)], first_id=1), end=end)
    with pytest.raises(BuildFailed, match="there is no x") as caught:
        build(Template, fake)
    assert (caught.value.step, caught.value.sandbox_id, caught.value.lines) == (None, None, [])


@KINDS
def test_a_stream_that_was_cut_off_goes_on_where_it_was(fake: FakeDaemon, kind: Any) -> None:
    serve(
        fake,
        Stream(STEPS[:2], is_cut=True, first_id=1),
        Lost(),
        refusal(503, "node_unavailable"),
        Stream([*STEPS[2:], BUILT], first_id=3),
    )
    events: list[BuildEvent] = []
    assert build(kind, fake, on_event=events.append).version == "tv-1"
    assert [one.event for one in events] == ["stage", "cached", "started", "output", "built"]
    asked = [seen.path.partition("?")[2] for seen in fake.seen("GET", EVENTS)]
    assert asked == ["", *["after=2"] * (len(asked) - 1)]
    assert len(fake.seen("POST", BUILD)) == 1


def test_a_build_whose_events_are_gone_still_has_an_end(fake: FakeDaemon) -> None:
    serve(fake, Stream([], first_id=1))
    assert build(Template, fake).reference == "web@tv-1"


def test_a_build_that_is_lost_sight_of_is_no_failure(
    fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dayfly._building.REATTACH_SECONDS", 0.3)
    serve(fake, Stream(STEPS, first_id=1), Stream([], first_id=5), end=build_body("running"))
    with pytest.raises(AnswerLost, match="lost sight of") as caught:
        build(Template, fake)
    assert "wait_build('bld-1')" in str(caught.value)
    assert fake.seen("DELETE", ONE) == []


def test_a_start_whose_answer_was_lost_is_not_sent_again(fake: FakeDaemon) -> None:
    fake.on("POST", BUILD, Lost(), Reply(202, build_body("queued")))
    with pytest.raises(AnswerLost):
        build(Template, fake)
    assert len(fake.seen("POST", BUILD)) == 1


@KINDS
def test_who_does_not_wait_has_the_build_at_once(fake: FakeDaemon, kind: Any) -> None:
    serve(fake, Stream([*STEPS, BUILT], first_id=1))
    started = build(kind, fake, wait=False)
    assert (started.status, started.reference) == ("queued", "web:latest")
    assert fake.seen("GET", EVENTS) == []

    async def later() -> None:
        options: dict[str, Any] = {"api_url": fake.url, "api_key": "k"}
        events: list[BuildEvent] = []
        assert (await settled(kind.get_build("bld-1", **options))).status == "done"
        waiting = kind.wait_build("bld-1", on_event=events.append, **options)
        assert (await settled(waiting)).version == "tv-1"
        assert len(events) == 5
        fake.on("DELETE", ONE, Reply(204), refusal(404, "not_found"))
        for _ in range(2):
            await settled(kind.cancel_build("bld-1", **options))

    asyncio.run(later())


def test_a_key_that_is_pressed_ends_the_build(fake: FakeDaemon) -> None:
    serve(fake, Stream(STEPS, first_id=1))
    fake.on("DELETE", ONE, Reply(204))

    def interrupt(_: BuildEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(Template, fake, on_event=interrupt)
    assert len(fake.seen("DELETE", ONE)) == 1


def test_a_task_that_is_cancelled_ends_the_build(fake: FakeDaemon) -> None:
    gone = threading.Event()

    def ended(_: Seen) -> Reply:
        gone.set()
        return Reply(204)

    def endless() -> Any:
        yield STEPS[0]
        gone.wait(20)

    serve(fake, Stream(endless(), first_id=1))
    fake.on("DELETE", ONE, ended)

    async def scenario() -> None:
        has_begun = asyncio.Event()
        making = AsyncTemplate.from_template("base").build(
            "web", on_event=lambda _: has_begun.set(), api_url=fake.url, api_key="k"
        )
        task = asyncio.ensure_future(making)
        await asyncio.wait_for(has_begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert len(fake.seen("DELETE", ONE)) == 1


@pytest.mark.parametrize("kind", [Sandbox, AsyncSandbox], ids=["sync", "async"])
def test_what_was_built_is_a_template(fake: FakeDaemon, kind: Any) -> None:
    build_ = TemplateBuild("bld-1", "web", "latest", "done", version="tv-1")
    version = TemplateVersion("tv-2", "web", "baked")

    async def scenario() -> None:
        for template in (build_, version, build_.reference):
            await settled(kind.create(template, api_url=fake.url, api_key="k"))

    asyncio.run(scenario())
    made = [seen.json["template"] for seen in fake.seen("POST", "/v1/sandboxes")]
    assert made == ["web@tv-1", "web@tv-2", "web@tv-1"]


@KINDS
def test_versions_and_tags(fake: FakeDaemon, kind: Any) -> None:
    version = {"id": "tv-1", "name": "web", "state": "baked", "tags": ["latest"], "usable": True}
    fake.on("GET", "/v1/templates/web/versions", Reply(200, {"items": [version]}))
    fake.on("GET", "/v1/templates/web/versions/latest", Reply(200, version))
    fake.on("GET", "/v1/templates/web/versions/tv-9", refusal(404, "not_found"))
    fake.on("PUT", "/v1/templates/web/tags/1.0", Reply(200, version))
    for path in ("tags/1.0", "versions/tv-1"):
        fake.on("DELETE", f"/v1/templates/web/{path}", Reply(204))
    fake.on("DELETE", "/v1/templates/web", refusal(404, "not_found"))

    async def scenario() -> None:
        options: dict[str, Any] = {"api_url": fake.url, "api_key": "k"}
        (found,) = await settled(kind.versions("web", **options))
        assert (found.reference, found.tags, found.usable) == ("web@tv-1", ["latest"], True)
        assert (await settled(kind.get("web", **options))).id == "tv-1"
        with pytest.raises(NotFound):
            await settled(kind.get("web", "tv-9", **options))
        assert (await settled(kind.tag("web", "tv-1", "1.0", **options))).id == "tv-1"
        await settled(kind.untag("web", "1.0", **options))
        await settled(kind.delete("web", "tv-1", **options))
        await settled(kind.delete("web", **options))

    asyncio.run(scenario())
    assert fake.seen("PUT", "/v1/templates/web/tags/1.0")[0].json == {"version": "tv-1"}
    assert len([seen for seen in fake.requests if seen.method == "DELETE"]) == 3
