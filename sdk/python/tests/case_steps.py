"""Runs one of the shared cases in ``tests/cases`` with ``Sandbox`` or ``AsyncSandbox``.

Both have the same methods, so one driver does for both: what has to be awaited is awaited.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from settled import settled
from template_calls import built

from dayfly import (
    AsyncSandbox,
    AsyncTemplate,
    BuildFailed,
    DayflyError,
    Execution,
    Sandbox,
    Template,
)

CASES = Path(__file__).resolve().parents[3] / "tests" / "cases"

Fields = dict[str, Any]


def load_cases() -> list[Fields]:
    """The cases for this SDK, each with its file's name as id."""
    cases: list[Fields] = []
    for path in sorted(CASES.glob("*.json")):
        case = cast("Fields", json.loads(path.read_text(encoding="utf-8")))
        if "python" in case.get("via", ["python"]):
            cases.append({**case, "id": path.stem})
    return cases


def difference(expected: Any, found: Any, where: str = "result") -> str | None:
    """How ``found`` falls short of ``expected``, by the rules of the cases."""
    if isinstance(expected, dict):
        for name, value in cast("Fields", expected).items():
            if not isinstance(found, dict) or name not in found:
                return f"{where} has no {name}: {found!r}"
            told = difference(value, cast("Fields", found)[name], f"{where}.{name}")
            if told:
                return told
        return None
    if isinstance(expected, str) and expected.startswith("~"):
        return None if expected[1:] in str(found) else f"{where} is {found!r}, not {expected!r}"
    return None if expected == found else f"{where} is {found!r}, not {expected!r}"


class CaseRun:
    """One case on its way."""

    def __init__(
        self, kind: type[Sandbox] | type[AsyncSandbox], case: Fields, client: Any = None
    ) -> None:
        self._kind = kind
        self._case = case
        self._client = client
        self._named: Fields = {}
        self._made: list[Any] = []
        self._templates: list[str] = []

    async def run(self) -> None:
        options: Fields = {"ttl_seconds": 600, **self._case.get("create", {})}
        template = self._case.get("template")
        making = self._kind.create(template, client=self._client, **options)
        self._keep("main", await settled(making))
        try:
            for number, step in enumerate(self._case["steps"]):
                await self._step(number, step)
        finally:
            # Sandboxes before the snapshots that they came from.
            for made in sorted(self._made, key=lambda one: "Snapshot" in type(one).__name__):
                await settled(made.delete())
            for name in self._templates:
                kind = Template if self._kind is Sandbox else AsyncTemplate
                await settled(kind.delete(name, client=self._client))
            # A client closes its own.
            if self._kind is AsyncSandbox and self._client is None:
                self._named["main"]._session.close_idle()

    def _keep(self, name: str | None, made: Any) -> None:
        # Contexts and processes go with their sandbox.
        if type(made).__name__.endswith(("Sandbox", "Snapshot")):
            self._made.append(made)
        if name is not None:
            self._named[name] = made

    async def _step(self, number: int, step: Fields) -> None:
        where = f"step {number} ({step['call']})"
        sandbox = self._named[step.get("on", "main")]
        call: Callable[[Any, Fields], Any] = getattr(self, f"_call_{step['call']}")
        refusal: DayflyError | None = None
        found: Any = None
        try:
            found = await call(sandbox, dict(step.get("with", {})))
        except DayflyError as error:
            refusal = error
        if "error" in step:
            # Not the server's: it has no code of its own.
            is_build = isinstance(refusal, BuildFailed)
            code = None if refusal is None else "build_failed" if is_build else refusal.code
            assert code == step["error"], f"{where}: failed with {code}, not {step['error']}"
            return
        if refusal is not None:
            raise refusal
        if not isinstance(found, dict):
            self._keep(step.get("as"), found)
            found = {}
        told = difference(step.get("expect", {}), found)
        assert told is None, f"{where}: {told}"

    async def _call_exec(self, sandbox: Any, given: Fields) -> Fields:
        result = await settled(sandbox.exec(given.pop("cmd"), **given))
        return {
            "stdout": result.stdout,
            "stderr": result.stderr,
            "exit_code": result.exit_code,
            "timed_out": False,
        }

    async def _call_exec_stream(self, sandbox: Any, given: Fields) -> Fields:
        pieces: dict[str, list[str]] = {"stdout": [], "stderr": []}
        result = await settled(
            sandbox.exec(
                given.pop("cmd"),
                on_stdout=pieces["stdout"].append,
                on_stderr=pieces["stderr"].append,
                **given,
            )
        )
        texts = {name: "".join(chunks) for name, chunks in pieces.items()}
        assert texts == {"stdout": result.stdout, "stderr": result.stderr}
        return {**texts, "exit_code": result.exit_code, "timed_out": False}

    async def _call_run_code(self, sandbox: Any, given: Fields) -> Fields:
        if "context" in given:
            given["context"] = self._named[given["context"]]
        found: Execution = await settled(sandbox.run_code(given.pop("code"), **given))
        return {
            "stdout": found.stdout,
            "stderr": found.stderr,
            "text": found.text,
            "has_png": (found.png or b"").startswith(b"\x89PNG"),
            "error_name": None if found.error is None else found.error.name,
        }

    async def _call_create_context(self, sandbox: Any, given: Fields) -> Any:
        return await settled(sandbox.create_context(**given))

    async def _call_write(self, sandbox: Any, given: Fields) -> Fields:
        data = given["text"] if "text" in given else base64.b64decode(given["base64"])
        return {"bytes": await settled(sandbox.files.write(given["path"], data))}

    async def _call_read(self, sandbox: Any, given: Fields) -> Fields:
        data: bytes = await settled(sandbox.files.read(given["path"]))
        found: Fields = {"base64": base64.b64encode(data).decode()}
        with contextlib.suppress(UnicodeDecodeError):
            found["text"] = data.decode()
        return found

    async def _call_list(self, sandbox: Any, given: Fields) -> Fields:
        entries = await settled(sandbox.files.list(given["path"]))
        return {"names": sorted(entry.name for entry in entries)}

    async def _call_stat(self, sandbox: Any, given: Fields) -> Fields:
        entry = await settled(sandbox.files.stat(given["path"]))
        return {"size": entry.size, "is_dir": entry.is_dir}

    async def _call_exists(self, sandbox: Any, given: Fields) -> Fields:
        return {"exists": await settled(sandbox.files.exists(given["path"]))}

    async def _call_make_directory(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.files.mkdir(given["path"]))
        return {}

    async def _call_move(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.files.move(given["from"], given["to"]))
        return {}

    async def _call_remove(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.files.remove(given.pop("path"), **given))
        return {}

    async def _call_fork(self, sandbox: Any, given: Fields) -> Any:
        return await settled(sandbox.fork(**given))

    async def _call_snapshot(self, sandbox: Any, given: Fields) -> Any:
        return await settled(sandbox.snapshot(**given))

    async def _call_create_from(self, sandbox: Any, given: Fields) -> Any:
        snapshot = self._named[given.pop("snapshot")]
        return await settled(snapshot.create_sandbox(ttl_seconds=600, **given))

    async def _call_delete_snapshot(self, sandbox: Any, given: Fields) -> Fields:
        await settled(self._named[given["snapshot"]].delete())
        return {}

    async def _call_build_template(self, sandbox: Any, given: Fields) -> Any:
        kind = Template if self._kind is Sandbox else AsyncTemplate
        name = f"case-{secrets.token_hex(6)}"
        with tempfile.TemporaryDirectory() as place:
            for path, text in given.get("files", {}).items():
                file = Path(place, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
                file.chmod(0o755 if path in given.get("executables", []) else 0o644)
            builder = built(kind, given["calls"], context=place)
            self._templates.append(name)
            try:
                return await settled(builder.build(name, client=self._client))
            except BuildFailed as error:
                if error.sandbox_id:
                    # It would wait for somebody who looks.
                    self._made.append(await self._connect(error.sandbox_id))
                raise

    async def _connect(self, sandbox: str) -> Any:
        return await settled(self._kind.connect(sandbox, client=self._client))

    async def _call_create_from_template(self, sandbox: Any, given: Fields) -> Any:
        template = self._named[given["template"]]
        made = self._kind.create(template, client=self._client, ttl_seconds=600)
        return await settled(made)

    async def _call_template_versions(self, sandbox: Any, given: Fields) -> Fields:
        kind = Template if self._kind is Sandbox else AsyncTemplate
        name = self._named[given["template"]].name
        found = await settled(kind.versions(name, client=self._client))
        return {"tags": [version.tags for version in found]}

    async def _call_pause(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.pause())
        return {}

    async def _call_resume(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.resume())
        return {}

    async def _call_hibernate(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.hibernate())
        return {}

    async def _call_wake(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.wake(**given))
        return {}

    async def _call_rollback(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.rollback(self._named[given.pop("snapshot")], **given))
        return {}

    async def _call_info(self, sandbox: Any, given: Fields) -> Fields:
        info = await settled(sandbox.info())
        return {
            "status": info.status,
            "template": info.template,
            "persistent": info.persistent,
            "metadata": info.metadata,
            "env_names": info.env_names,
        }

    async def _call_set_lifecycle(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.set_lifecycle(**given))
        return {}

    async def _call_lifecycle(self, sandbox: Any, given: Fields) -> Fields:
        life = await settled(sandbox.lifecycle())
        return {"ttl_seconds": life.ttl_seconds, "persistent": life.persistent}

    async def _call_network(self, sandbox: Any, given: Fields) -> Fields:
        policy = await settled(sandbox.network.get())
        return {"mode": policy.mode, "allow": policy.allow}

    async def _call_set_network(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.network.set(given["mode"], given.get("allow")))
        return {}

    async def _call_ports(self, sandbox: Any, given: Fields) -> Fields:
        ports = await settled(sandbox.ports())
        return {"ports": sorted({port.port for port in ports})}

    async def _call_wait_for_port(self, sandbox: Any, given: Fields) -> Fields:
        return {"port": (await settled(sandbox.wait_for_port(given["port"]))).port}

    async def _call_delete(self, sandbox: Any, given: Fields) -> Fields:
        await settled(sandbox.delete())
        return {}
