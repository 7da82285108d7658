"""Sandboxes that exist, snapshots, volumes, ports, the network, and what the server has."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ._checks import checked_texts
from ._effects import Operation, Together
from ._options import NetworkMode, Status
from ._retry import call
from ._wire import (
    CALL_SECONDS,
    LIST_PAGE_LENGTH,
    STATE_SECONDS,
    Json,
    delete,
    get,
    get_waiting,
    path_of,
    send_json,
    with_query,
    without_none,
)
from .errors import AlreadyExists, AnswerTimeout, DayflyError, NotFound, SandboxTimeout
from .models import (
    Lifecycle,
    Me,
    Port,
    PortLink,
    Promoted,
    SandboxInfo,
    SnapshotInfo,
    TemplateInfo,
    VolumeInfo,
    from_wire,
)
from .network import (
    NetworkLog,
    NetworkPolicy,
    NetworkRecord,
    NetworkRule,
    NetworkSuggestion,
    RuleLike,
    network_wish,
)

DELETES_AT_ONCE = 8
# One request waits no longer than this.
PORT_WAIT_SECONDS_MAX = 600.0


class Unchanged:
    """Stands for an argument that was not given, where ``None`` means something."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = Unchanged()


def get_sandbox(sandbox: str) -> Operation[SandboxInfo]:
    answer = yield from call(get(path_of("sandboxes", sandbox)))
    return from_wire(SandboxInfo, answer.json())


class Listing:
    """All sandboxes of the project that have everything that is named, oldest first, by pages."""

    def __init__(
        self, template: str | None, status: Status | None, metadata: Mapping[str, str] | None
    ) -> None:
        self._query: dict[str, str | int | bool | None] = {
            "status": status,
            "template": template,
            "metadata": json.dumps(dict(metadata)) if metadata else None,
            "limit": LIST_PAGE_LENGTH,
        }
        self._cursor: str | None = None
        self._is_over = False

    def next_page(self) -> Operation[list[SandboxInfo] | None]:
        """The next page; ``None`` behind the last one."""
        if self._is_over:
            return None
        address = with_query(path_of("sandboxes"), **self._query, cursor=self._cursor)
        page = (yield from call(get(address))).json()
        following = page.get("next_cursor")
        self._is_over = following in (None, self._cursor)
        self._cursor = following
        return [from_wire(SandboxInfo, item) for item in page["items"]]


def delete_sandbox(sandbox: str) -> Operation[None]:
    """Deletes. One that is gone already is as good as deleted."""
    try:
        yield from call(delete(path_of("sandboxes", sandbox)))
    except NotFound:
        return


def delete_sandboxes(sandboxes: Sequence[str]) -> Operation[None]:
    """Deletes several, as far as that goes."""
    for sandbox in sandboxes:
        try:
            yield from delete_sandbox(sandbox)
        except DayflyError:
            # Its TTL ends it; the others must not wait for that.
            continue


def delete_together(sandboxes: Sequence[str]) -> Operation[None]:
    """Deletes several at once. Each is tried before the first failure is told."""
    if not sandboxes:
        return
    deletes = [delete_sandbox(sandbox) for sandbox in sandboxes]
    outcomes: list[BaseException | None] = yield Together(deletes, DELETES_AT_ONCE)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


def change_state(sandbox: str, verb: str) -> Operation[None]:
    """``pause``, ``resume`` or ``hibernate``. May be repeated."""
    path = path_of("sandboxes", sandbox, verb)
    yield from call(send_json("POST", path, is_repeatable=True, timeout=STATE_SECONDS))


def wake(info: SandboxInfo, env: Mapping[str, str] | None) -> Operation[SandboxInfo]:
    """May be repeated. Gives what is known of the sandbox then."""
    variables = checked_texts("env", env)
    body = None if variables is None else {"env": variables}
    path = path_of("sandboxes", info.id, "wake")
    yield from call(send_json("POST", path, body, is_repeatable=True, timeout=STATE_SECONDS))
    names = info.env_names if variables is None else sorted(variables)
    return replace(info, status="running", env_names=names)


def rollback(
    sandbox: str, snapshot: str, env: Mapping[str, str] | None = None
) -> Operation[SandboxInfo]:
    path = path_of("sandboxes", sandbox, "rollback")
    body = without_none(snapshot_id=snapshot, env=checked_texts("env", env))
    # Not repeated: what was done between two of them would be lost.
    request = send_json("POST", path, body, timeout=STATE_SECONDS)
    return from_wire(SandboxInfo, (yield from call(request)).json())


def promote(sandbox: str, cleanup_siblings: bool, tree_id: str | None) -> Operation[Promoted]:
    path = path_of("sandboxes", sandbox, "promote")
    body = without_none(cleanup_siblings=cleanup_siblings, tree_id=tree_id)
    request = send_json("POST", path, body, is_repeatable=True, timeout=STATE_SECONDS)
    return from_wire(Promoted, (yield from call(request)).json())


def lifecycle(sandbox: str) -> Operation[Lifecycle]:
    answer = yield from call(get(path_of("sandboxes", sandbox, "lifecycle")))
    return from_wire(Lifecycle, answer.json())


def change_lifecycle(sandbox: str, **fields: Any) -> Operation[Lifecycle]:
    """What is not given stays; ``None`` takes a time away."""
    body = {name: value for name, value in fields.items() if value is not UNCHANGED}
    path = path_of("sandboxes", sandbox, "lifecycle")
    answer = yield from call(send_json("PATCH", path, body, is_repeatable=True))
    return from_wire(Lifecycle, answer.json())


def list_snapshots(sandbox: str | None) -> Operation[list[SnapshotInfo]]:
    answer = yield from call(get(with_query(path_of("snapshots"), sandbox_id=sandbox)))
    return [from_wire(SnapshotInfo, item) for item in answer.json()["snapshots"]]


def get_snapshot(snapshot: str) -> Operation[SnapshotInfo]:
    answer = yield from call(get(path_of("snapshots", snapshot)))
    return from_wire(SnapshotInfo, answer.json())


def delete_snapshot(snapshot: str) -> Operation[None]:
    yield from call(delete(path_of("snapshots", snapshot)))


def _size(size_gb: float | None, size_mb: int | None) -> Json:
    if (size_gb is None) == (size_mb is None):
        raise ValueError("give size_gb or size_mb")
    return without_none(size_gb=size_gb, size_mb=size_mb)


def create_volume(
    name: str, size_gb: float | None, size_mb: int | None, *, accept_other_size: bool
) -> Operation[VolumeInfo]:
    body = {"name": name, **_size(size_gb, size_mb)}
    # By its name: a repeat finds the one that is there.
    request = send_json("POST", path_of("volumes"), body, is_repeatable=True, timeout=STATE_SECONDS)
    try:
        answer = yield from call(request)
    except AlreadyExists:
        if not accept_other_size:
            raise
        return (yield from get_volume(name))
    return from_wire(VolumeInfo, answer.json())


def get_volume(name: str) -> Operation[VolumeInfo]:
    answer = yield from call(get(path_of("volumes", name)))
    return from_wire(VolumeInfo, answer.json())


def list_volumes() -> Operation[list[VolumeInfo]]:
    answer = yield from call(get(path_of("volumes")))
    return [from_wire(VolumeInfo, item) for item in answer.json()["items"]]


def delete_volume(name: str) -> Operation[None]:
    try:
        yield from call(delete(path_of("volumes", name)))
    except NotFound:
        return


def grow_volume(name: str, size_gb: float | None, size_mb: int | None) -> Operation[VolumeInfo]:
    request = send_json(
        "PATCH",
        path_of("volumes", name),
        _size(size_gb, size_mb),
        is_repeatable=True,
        timeout=STATE_SECONDS,
    )
    return from_wire(VolumeInfo, (yield from call(request)).json())


def list_ports(sandbox: str) -> Operation[list[Port]]:
    answer = yield from call(get(path_of("sandboxes", sandbox, "ports")))
    return [from_wire(Port, item) for item in answer.json()["ports"]]


def wait_for_port(sandbox: str, port: int, timeout_seconds: float) -> Operation[Port]:
    """Waits until something listens, and gives what. The server does the waiting."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        part = min(left, PORT_WAIT_SECONDS_MAX)
        request = send_json(
            "POST",
            path_of("sandboxes", sandbox, "ports", str(port), "wait"),
            {"timeout_ms": math.ceil(part * 1000)},
            is_repeatable=True,
            timeout=part + CALL_SECONDS,
        )
        try:
            return from_wire(Port, (yield from call(request)).json())
        except SandboxTimeout as error:
            if left > part:
                continue
            text = f"nothing listens on port {port} after {timeout_seconds:g} s"
            raise AnswerTimeout(text, hint=error.hint) from None


def create_link(
    sandbox: str, port: int, ttl_seconds: int | None, public: bool
) -> Operation[PortLink]:
    body = without_none(ttl_seconds=ttl_seconds, public=True if public else None)
    path = path_of("sandboxes", sandbox, "ports", str(port), "links")
    return from_wire(PortLink, (yield from call(send_json("POST", path, body))).json())


def list_links(sandbox: str, port: int) -> Operation[list[PortLink]]:
    answer = yield from call(get(path_of("sandboxes", sandbox, "ports", str(port), "links")))
    return [from_wire(PortLink, item) for item in answer.json()["items"]]


def delete_link(sandbox: str, port: int, link: str) -> Operation[None]:
    path = path_of("sandboxes", sandbox, "ports", str(port), "links", link)
    yield from call(delete(path))


def _policy(data: Json) -> NetworkPolicy:
    return from_wire(NetworkPolicy, {**data, "rules": _rules(data)})


def _rules(data: Json) -> list[NetworkRule]:
    return [from_wire(NetworkRule, rule) for rule in data.get("rules", [])]


def get_network(sandbox: str) -> Operation[NetworkPolicy]:
    return _policy((yield from call(get(path_of("sandboxes", sandbox, "network")))).json())


def set_network(
    sandbox: str, mode: NetworkMode, rules: Sequence[RuleLike] | None
) -> Operation[NetworkPolicy]:
    path = path_of("sandboxes", sandbox, "network")
    request = send_json("PUT", path, network_wish(mode, rules), is_repeatable=True)
    return _policy((yield from call(request)).json())


def allow_network(sandbox: str, rules: Sequence[RuleLike]) -> Operation[NetworkPolicy]:
    path = path_of("sandboxes", sandbox, "network", "allow")
    request = send_json("POST", path, {"rules": list(rules)}, is_repeatable=True)
    return _policy((yield from call(request)).json())


def network_log(
    sandbox: str, after: int | None, limit: int | None, wait_seconds: int | None
) -> Operation[NetworkLog]:
    path = path_of("sandboxes", sandbox, "network", "log")
    request = get_waiting(path, wait_seconds, after=after, limit=limit)
    data = (yield from call(request)).json()
    records = [from_wire(NetworkRecord, record) for record in data.get("records", [])]
    return from_wire(NetworkLog, {**data, "records": records})


def suggest_network(sandbox: str) -> Operation[NetworkSuggestion]:
    data = (yield from call(get(path_of("sandboxes", sandbox, "network", "suggest")))).json()
    return from_wire(NetworkSuggestion, {**data, "rules": _rules(data)})


def list_templates() -> Operation[list[TemplateInfo]]:
    answer = yield from call(get(path_of("templates")))
    return [from_wire(TemplateInfo, item) for item in answer.json_list()]


def me() -> Operation[Me]:
    return from_wire(Me, (yield from call(get(path_of("me")))).json())
