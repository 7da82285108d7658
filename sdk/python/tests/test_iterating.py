"""Output, lists and trees, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Lost, Reply, Seen, Stream, refusal, sandbox_body
from settled import settled

from dayfly import AsyncSandbox, DayflyError, NotFound, Sandbox

ONE = f"/v1/sandboxes/{SANDBOX}"
EXEC = f"{ONE}/processes/ex-1"
RUNNING = {"exec_id": "ex-1", "state": "running", "pid": 7}
EXIT: tuple[str, dict[str, Any]] = ("exit", {"exit_code": 3, "reason": "exited"})


def out(text: str, stream: str = "stdout") -> tuple[str, dict[str, Any]]:
    return (stream, {"chunk": text})


async def each(found: Any) -> AsyncIterator[Any]:
    if hasattr(found, "__aiter__"):
        async for one in found:
            yield one
    else:
        for one in found:
            yield one


async def process_of(fake: FakeDaemon, create: Create) -> Any:
    fake.on("GET", EXEC, Reply(200, RUNNING))
    return await settled((await settled(create())).process("ex-1"))


def test_output_is_iterated_over_a_cut_connection(fake: FakeDaemon, create: Create) -> None:
    first = Stream([out("one\n"), out("bad\n", "stderr")], is_cut=True)
    fake.on("GET", f"{EXEC}/attach", first, Lost(), Stream([out("two\n"), EXIT]))

    async def scenario() -> None:
        attached = (await process_of(fake, create)).attach()
        said = [(chunk.stream, chunk.text) async for chunk in each(attached)]
        assert said == [("stdout", "one\n"), ("stderr", "bad\n"), ("stdout", "two\n")]
        result = await settled(attached.wait())
        assert (result.stdout, result.stderr, result.exit_code) == ("one\ntwo\n", "bad\n", 3)

    asyncio.run(scenario())


def test_output_goes_on_from_an_offset(fake: FakeDaemon, create: Create) -> None:
    fake.on("GET", f"{EXEC}/attach", Stream([out("more"), EXIT]))

    async def scenario() -> Any:
        process = await process_of(fake, create)
        told: list[str] = []
        result = await settled(process.attach(told.append, stdout_offset=100, stderr_offset=7))
        assert told == ["more"]
        return result

    result = asyncio.run(scenario())
    assert fake.seen("GET", f"{EXEC}/attach")[0].path.endswith("stdout_offset=100&stderr_offset=7")
    assert (result.stdout_bytes, result.stderr_bytes) == (104, 7)


def test_output_that_is_not_read_on_is_closed(fake: FakeDaemon, create: Create) -> None:
    fake.on("GET", f"{EXEC}/attach", Stream([out("one"), out("two"), EXIT]))

    async def scenario() -> None:
        attached = (await process_of(fake, create)).attach()
        async for chunk in each(attached):
            assert str(chunk) == "one"
            break
        attached.close()
        assert [chunk async for chunk in each(attached)] == []
        with pytest.raises(DayflyError, match="closed before"):
            await settled(attached.wait())

    asyncio.run(scenario())


def test_a_refused_attach_is_that_refusal(fake: FakeDaemon, create: Create) -> None:
    fake.on("GET", f"{EXEC}/attach", refusal(404, "not_found"))

    async def scenario() -> None:
        attached = (await process_of(fake, create)).attach()
        with pytest.raises(NotFound):
            await settled(attached.wait())

    asyncio.run(scenario())


def test_a_killed_process_keeps_its_output(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", f"{EXEC}/signal", Reply(204), refusal(404, "not_found"))

    async def scenario() -> None:
        process = await process_of(fake, create)
        await settled(process.kill())
        fake.on("GET", EXEC, Reply(200, {**RUNNING, "state": "exited"}))
        await settled(process.kill())

    asyncio.run(scenario())
    assert [seen.json for seen in fake.seen("POST", f"{EXEC}/signal")] == [{"signal": 9}] * 2
    assert not fake.seen("DELETE", EXEC)


@pytest.mark.parametrize("kind", [Sandbox, AsyncSandbox])
def test_a_list_is_read_as_far_as_it_is_asked_for(fake: FakeDaemon, kind: Any) -> None:
    pages = [
        Reply(200, {"items": [sandbox_body(id="sb-1")], "next_cursor": "1"}),
        Reply(200, {"items": [], "next_cursor": "2"}),
        Reply(200, {"items": [sandbox_body(id="sb-2")]}),
    ]
    fake.on("GET", "/v1/sandboxes", *pages)

    async def scenario() -> None:
        found = each(kind.list(api_url=fake.url, api_key="k"))
        assert not fake.requests
        assert (await found.__anext__()).id == "sb-1"
        assert len(fake.requests) == 1
        assert [one.id async for one in found] == ["sb-2"]

    asyncio.run(scenario())
    cursors = [parse_qs(seen.path.partition("?")[2]).get("cursor") for seen in fake.requests]
    assert cursors == [None, ["1"], ["2"]]


def entry(path: str, **more: Any) -> dict[str, Any]:
    return {"name": path.rpartition("/")[2], "path": path, "size": 0, "is_dir": False, **more}


TREE: dict[str, list[dict[str, Any]]] = {
    "/w": [
        entry("/w/a", is_dir=True),
        entry("/w/gone", is_dir=True),
        entry("/w/skipped", is_dir=True),
        entry("/w/link", is_dir=True, is_symlink=True),
        entry("/w/z.txt"),
    ],
    "/w/a": [entry("/w/a/b", is_dir=True), entry("/w/a/c.txt")],
    "/w/a/b": [],
}


def listed(seen: Seen) -> Reply:
    path = parse_qs(seen.path.partition("?")[2])["path"][0]
    found = TREE.get(path)
    return refusal(404, "not_found") if found is None else Reply(200, {"entries": found})


def test_a_tree_is_walked_as_os_walk_does(fake: FakeDaemon, create: Create) -> None:
    fake.on("GET", f"{ONE}/fs/dir", listed)

    async def scenario() -> None:
        files = (await settled(create())).files
        found: list[Any] = []
        async for directory, names, rest in each(files.walk("/w/")):
            if "skipped" in names:
                names.remove("skipped")
            found.append((directory, list(names), rest))
        assert found == [
            ("/w", ["a", "gone"], ["link", "z.txt"]),
            ("/w/a", ["b"], ["c.txt"]),
            ("/w/a/b", [], []),
        ]
        with pytest.raises(NotFound):
            _ = [one async for one in each(files.walk("/nowhere"))]

    asyncio.run(scenario())
    asked = [seen.path for seen in fake.seen("GET", f"{ONE}/fs/dir")]
    assert not any("skipped" in path or "link" in path for path in asked)
