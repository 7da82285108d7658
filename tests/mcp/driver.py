"""Drives `dayfly mcp` and `/mcp` with the published Python client.

Every case prints one line of JSON. Needs DAYFLY_API_URL, DAYFLY_API_KEY and DAYFLY (the program).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL = os.environ["DAYFLY_API_URL"]
KEY = os.environ["DAYFLY_API_KEY"]
PROGRAM = os.environ["DAYFLY"]
STEPS = json.loads((Path(__file__).parent / "steps.json").read_text())["steps"]
TOOLS = 15
NEWEST = "2026-07-28"


def api(method: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = urllib.request.Request(URL + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as response:
        text = response.read()
    return json.loads(text) if text else None


def page(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as response:
        return response.read()


def own_sandboxes() -> set[str]:
    """Those that clients of MCP have of their own."""
    items = api("GET", "/v1/sandboxes?limit=500")["items"]
    return {item["id"] for item in items if item["metadata"].get("client") == "mcp"}


async def eventually(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not await asyncio.to_thread(holds):
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        await asyncio.sleep(0.5)


def stdio(*words: str, key: str = KEY) -> StdioServerParameters:
    environment = {"DAYFLY_API_URL": URL, "DAYFLY_API_KEY": key}
    return StdioServerParameters(command=PROGRAM, args=["mcp", *words], env=environment)


@asynccontextmanager
async def over_stdio(mode: str) -> AsyncIterator[Client]:
    async with Client(stdio(), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(mode: str, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    all_headers = {"authorization": f"Bearer {KEY}"} | (headers or {})
    timeout = httpx2.Timeout(30, read=600)
    async with httpx2.AsyncClient(headers=all_headers, timeout=timeout) as http:
        transport = streamable_http_client(URL + "/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def filled(value: Any, kept: dict[str, str]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        return kept[value[1:]]
    if isinstance(value, dict):
        return {name: filled(one, kept) for name, one in value.items()}
    return value


def first_text(result: Any) -> str:
    return next(block.text for block in result.content if block.type == "text")


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    return await client.call_tool(tool, arguments, read_timeout_seconds=600)


async def read_text(client: Client, uri: str) -> str:
    return (await client.read_resource(uri)).contents[0].text


async def walk(client: Client, sandbox: str | None) -> None:
    """Every step. A client without a session names its sandbox in each call."""
    listed = (await client.list_tools()).tools
    assert len(listed) == TOOLS, len(listed)
    works_inside = {tool.name for tool in listed if "sandbox" in tool.input_schema["properties"]}
    kept: dict[str, str] = {}
    if sandbox is None:
        before = own_sandboxes()
        await call(client, "list_files", {})
        (kept["sandbox"],) = own_sandboxes() - before
    else:
        kept["sandbox"] = sandbox
    for number, step in enumerate(STEPS):
        arguments = filled(step["arguments"], kept)
        if sandbox is not None and step["tool"] in works_inside:
            arguments = {"sandbox": sandbox} | arguments
        await one_step(client, number, step, arguments, kept)


async def one_step(
    client: Client, number: int, step: Any, arguments: Any, kept: dict[str, str]
) -> None:
    result = await call(client, step["tool"], arguments)
    text = first_text(result)
    where = f"step {number}, {step['tool']}: {text[:300]!r}"
    pattern = step["text"].replace("\\$sandbox", kept["sandbox"])
    assert re.search(pattern, text), where
    assert bool(result.is_error) == step.get("is_error", False), where
    for kind, count in step.get("blocks", {}).items():
        found = [block for block in result.content if block.type == kind]
        assert len(found) == count, where
    if "read_link" in step:
        link = next(block for block in result.content if block.type == "resource_link")
        assert re.search(step["read_link"], await read_text(client, str(link.uri))), where
    for name, member in step.get("keep", {}).items():
        kept[name] = result.structured_content[member]
        if name == "url":
            assert b"hello.py" in await asyncio.to_thread(page, kept[name]), where


async def every_tool_over_stdio(mode: str) -> None:
    before = own_sandboxes()
    async with over_stdio(mode) as client:
        await walk(client, None)
    await eventually("the sandbox is deleted", lambda: own_sandboxes() <= before)


async def every_tool_in_a_session() -> None:
    before = own_sandboxes()
    async with over_http("legacy") as client:
        await walk(client, None)
    await eventually("the sandbox is deleted", lambda: own_sandboxes() <= before)


async def every_tool_without_a_session() -> None:
    async with over_http(NEWEST) as client:
        unnamed = await call(client, "run_shell", {"command": "true"})
        assert unnamed.is_error, first_text(unnamed)
        made = await call(client, "create_sandbox", {"template": "code-interpreter"})
        sandbox = made.structured_content["id"]
        try:
            await walk(client, sandbox)
        finally:
            api("DELETE", f"/v1/sandboxes/{sandbox}")


async def a_header_names_a_sandbox() -> None:
    name = f"mcp-{os.getpid()}"
    try:
        for _ in range(2):
            async with over_http(NEWEST, {"dayfly-sandbox": name}) as client:
                await call(client, "run_shell", {"command": "echo once >> log"})
        log = await asyncio.to_thread(api, "GET", f"/v1/sandboxes/{name}")
        async with over_http(NEWEST, {"dayfly-sandbox": log["id"]}) as client:
            text = first_text(await call(client, "read_file", {"path": "log"}))
        assert "lines 1-2 of 2" in text, text
    finally:
        api("DELETE", f"/v1/sandboxes/{name}")


async def a_name_keeps_a_sandbox() -> None:
    name = f"mcp-kept-{os.getpid()}"
    try:
        for number in range(2):
            async with Client(stdio("--name", name)) as client:
                text = first_text(await call(client, "run_shell", {"command": "cat log; echo n>>log"}))
                assert ("\nn" in text) == (number == 1), text
        assert api("GET", f"/v1/sandboxes/{name}")["expires_at"] is None
    finally:
        api("DELETE", f"/v1/sandboxes/{name}")


async def sandbox_of(client: Client) -> str:
    return (await call(client, "sandbox_info", {})).structured_content["id"]


async def two_clients_are_apart() -> None:
    async with over_stdio("auto") as one, over_http("legacy") as two, over_stdio("legacy") as three:
        for number, client in enumerate((one, two, three)):
            await call(client, "write_file", {"path": "who", "content": str(number)})
        for number, client in enumerate((one, two, three)):
            text = first_text(await call(client, "read_file", {"path": "who"}))
            assert text.endswith(f"\t{number}"), text
        # Over stdio a client cannot even name what is not its own.
        theirs = {"path": "who", "sandbox": await sandbox_of(three)}
        refused = await call(one, "read_file", theirs)
        assert refused.is_error and "not a sandbox of this client" in first_text(refused), refused
        text = first_text(await call(two, "read_file", theirs))
        assert text.endswith("\t2"), text


async def a_cancelled_call_ends_its_command() -> None:
    for transport in (over_stdio("auto"), over_http("legacy"), over_stdio("legacy")):
        async with transport as client:
            await call(client, "list_files", {})
            running = asyncio.ensure_future(
                call(client, "run_shell", {"command": "touch begun; sleep 4321"})
            )
            count = {"command": "pgrep -fc 'sleep 432[1]'; ls begun"}
            await until_text(client, count, r"^1$")
            running.cancel()
            await until_text(client, count, r"^0$")


async def until_text(client: Client, arguments: dict[str, Any], pattern: str) -> None:
    end = time.monotonic() + 60
    while True:
        text = first_text(await call(client, "run_shell", arguments))
        if re.search(pattern, text, re.MULTILINE):
            return
        assert time.monotonic() < end, text
        await asyncio.sleep(0.5)


def status_of(headers: dict[str, str]) -> int:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    usual = {"authorization": f"Bearer {KEY}", "content-type": "application/json",
             "accept": "application/json, text/event-stream"}
    request = urllib.request.Request(URL + "/mcp", json.dumps(message).encode(), usual | headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


async def strangers_are_refused() -> None:
    assert status_of({"authorization": "Bearer df_nobody"}) == 401
    assert status_of({"origin": "http://evil.example"}) == 403
    assert status_of({"origin": "null"}) == 403
    assert status_of({"host": "evil.example"}) == 403
    assert status_of({"mcp-session-id": "not-mine"}) == 404
    async with Client(stdio(key="df_nobody")) as client:
        result = await call(client, "run_shell", {"command": "true"})
    assert result.is_error and "key" in first_text(result), first_text(result)


async def a_killed_client_leaves_nothing() -> None:
    before = own_sandboxes()
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", "--ttl", "60", "--template", "base",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    info = {"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "killed", "version": "1"}}
    call_shell = {"name": "run_shell", "arguments": {"command": "true"}}
    for message in (
        {"id": 1, "method": "initialize", "params": info},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call_shell},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
    while b'"id":2' not in await asyncio.wait_for(process.stdout.readline(), 120):
        pass
    assert len(own_sandboxes() - before) == 1
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await eventually("its time to live is over", lambda: own_sandboxes() <= before, 120)


CASES: list[tuple[str, Callable[[], Awaitable[None]]]] = [
    ("every tool over stdio, newest revision", lambda: every_tool_over_stdio("auto")),
    ("every tool over stdio, with initialize", lambda: every_tool_over_stdio("legacy")),
    ("every tool over HTTP in a session", every_tool_in_a_session),
    ("every tool over HTTP without a session", every_tool_without_a_session),
    ("a header names a sandbox", a_header_names_a_sandbox),
    ("a name keeps a sandbox", a_name_keeps_a_sandbox),
    ("two clients are apart", two_clients_are_apart),
    ("a cancelled call ends its command", a_cancelled_call_ends_its_command),
    ("strangers, foreign hosts and foreign pages are refused", strangers_are_refused),
    ("a killed client leaves nothing", a_killed_client_leaves_nothing),
]


async def main() -> int:
    wanted = sys.argv[1:]
    failures = 0
    for name, case in CASES:
        if wanted and not any(word in f"python: {name}" for word in wanted):
            continue
        began = time.monotonic()
        try:
            await case()
            outcome: dict[str, Any] = {"passed": True}
        except BaseException as error:  # noqa: BLE001 - a case may fail with any of them
            failures += 1
            outcome = {"passed": False, "error": repr(flat(error))}
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"client": "python", "case": name, "seconds": seconds} | outcome), flush=True)
    return 1 if failures else 0


def flat(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


sys.exit(asyncio.run(main()))
