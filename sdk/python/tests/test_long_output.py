"""Output of any length, in bounded memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Seen, Stream
from settled import settled

from dayfly._kept import KeptText

ONE = f"/v1/sandboxes/{SANDBOX}"
START = f"{ONE}/exec/stream"
EXIT: tuple[str, dict[str, Any]] = ("exit", {"exit_code": 0, "reason": "exited"})
MIB = 1 << 20


def flood(seen: Seen, total: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "started", {"exec_id": seen.json["exec_id"]}
    chunk = ("x" * 63 + "\n") * 1024
    for _ in range(total // len(chunk)):
        yield "stdout", {"chunk": chunk}
    yield EXIT


# Runs by itself, so that its memory is that of the client alone.
CLIENT = """
import asyncio, resource, sys
from dayfly import AsyncSandbox, Sandbox

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

told = 0
def count(text):
    global told
    told += len(text)

async def scenario(url):
    async with AsyncSandbox.create("base", api_url=url, api_key="k") as sandbox:
        before = peak()
        return before, await sandbox.exec("yes", on_stdout=count)

if sys.argv[1] == "async":
    before, result = asyncio.run(scenario(sys.argv[2]))
else:
    with Sandbox("base", api_url=sys.argv[2], api_key="k") as sandbox:
        before = peak()
        result = sandbox.exec("yes", on_stdout=count)
cut = result.omitted[0]
assert result.truncated and cut["readable"]
assert result.stdout.startswith("xxx") and result.stdout.endswith("x\\n")
assert result.stdout_bytes == told, (result.stdout_bytes, told)
assert cut["bytes"] + (8 << 20) == told
print(told, peak() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="resource is not there")
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_three_hundred_mebibytes_add_at_most_thirty_two(fake: FakeDaemon, kind: str) -> None:
    fake.on("POST", START, lambda seen: Stream(flood(seen, 300 * MIB)))
    source = Path(__file__).resolve().parents[1] / "src"
    ran = subprocess.run(
        [sys.executable, "-c", CLIENT, kind, fake.url],
        env={"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told, added = map(int, ran.stdout.split())
    assert told == 300 * MIB
    assert added <= 32, f"{added} MiB"


def test_a_limit_of_the_caller_is_kept_to(fake: FakeDaemon, create: Create) -> None:
    fake.on("POST", START, lambda seen: Stream(flood(seen, MIB)))

    async def scenario() -> Any:
        sandbox = await settled(create())
        return await settled(sandbox.exec("yes", on_stdout=len, max_output_bytes=1000))

    result = asyncio.run(scenario())
    head, mark, tail = result.stdout.partition("[... ")
    assert mark
    assert len(head) <= 501
    assert tail.startswith(f"{MIB - 1000} bytes left out, from offset 500 ...]\n")
    assert result.omitted == [
        {"stream": "stdout", "offset": 500, "bytes": MIB - 1000, "readable": True}
    ]
    assert result.stdout_bytes == MIB


def test_changes_are_not_promised_with_a_stream(fake: FakeDaemon, create: Create) -> None:
    async def scenario() -> None:
        sandbox = await settled(create())
        with pytest.raises(ValueError, match="report_changes"):
            await settled(sandbox.exec("yes", on_stdout=len, report_changes=True))

    asyncio.run(scenario())
    assert not fake.seen("POST", START)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 50, 300])
@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_what_is_kept_is_the_head_and_the_tail(size: int, piece: int) -> None:
    text = "".join(chr(ord("a") + index % 26) for index in range(size))
    kept = KeptText(10)
    for start in range(0, size, piece):
        kept.add(text[start : start + piece])
    given, left_out = kept.give()
    assert kept.total == size
    if size <= 10:
        assert (given, left_out) == (text, None)
        return
    assert left_out == (5, size - 10)
    assert given == f"{text[:5]}\n[... {size - 10} bytes left out, from offset 5 ...]\n{text[-5:]}"


def test_no_character_is_cut_in_two() -> None:
    kept = KeptText(9)
    kept.add("é" * 20)
    given, left_out = kept.give()
    assert left_out == (4, 32)
    assert given == "éé\n[... 32 bytes left out, from offset 4 ...]\néé"
