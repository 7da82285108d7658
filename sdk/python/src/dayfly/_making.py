"""Making sandboxes: create, fork, snapshot, and undoing what nobody will ever hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ._checks import checked_seconds, checked_texts
from ._effects import Operation, send_once
from ._living import delete_together
from ._options import NetworkMode, OnTimeout, PromiseClass
from ._retry import TEMPLATE_SECONDS, Patience, Progress, call
from ._wire import (
    FORK_SECONDS,
    STATE_SECONDS,
    Answer,
    Json,
    Request,
    delete,
    make,
    path_of,
    without_none,
)
from .builds import TemplateLike, template_reference
from .errors import DayflyError, ForkFailed
from .models import SandboxInfo, SnapshotInfo, VolumeMount, from_wire
from .network import RuleLike

UNDO_SECONDS = 10.0

MountLike = VolumeMount | str | Mapping[str, Any]


@dataclass(frozen=True)
class SandboxWish:
    """What a create asks for; see ``Sandbox`` for the meaning of each."""

    template: TemplateLike | None = None
    name: str | None = None
    ttl_seconds: int | None = None
    persistent: bool = False
    metadata: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    idle_seconds: int | None = None
    on_timeout: OnTimeout | None = None
    volumes: Sequence[MountLike] | None = None
    egress_allowlist: Iterable[RuleLike] | None = None
    network: NetworkMode | Mapping[str, Any] | None = None
    cpu: float | None = None
    memory_mb: int | None = None
    disk_gb: float | None = None
    class_: PromiseClass | None = None
    from_snapshot: str | None = None
    disk_only: bool = False
    on_progress: Callable[[Progress], Any] | None = None
    wait_seconds: float | None = None

    def body(self) -> Json:
        return without_none(
            template=template_reference(self.template),
            name=self.name,
            from_snapshot=self.from_snapshot,
            disk_only=True if self.disk_only else None,
            ttl_seconds=checked_seconds("ttl_seconds", self.ttl_seconds),
            persistent=True if self.persistent else None,
            metadata=checked_texts("metadata", self.metadata),
            env=checked_texts("env", self.env),
            idle_seconds=checked_seconds("idle_seconds", self.idle_seconds),
            on_timeout=self.on_timeout,
            volumes=None if self.volumes is None else [mount_body(one) for one in self.volumes],
            cpu=self.cpu,
            memory_mb=self.memory_mb,
            disk_gb=self.disk_gb,
            **without_none(**{"class": self.class_}),
            **network_fields(self.network, self.egress_allowlist),
        )

    def patience(self) -> Patience:
        seconds = TEMPLATE_SECONDS if self.wait_seconds is None else self.wait_seconds
        # Who is told of it needs no second line in a log.
        return Patience(
            template_seconds=seconds,
            on_progress=self.on_progress,
            is_logged=self.on_progress is None,
        )


def mount_body(mount: MountLike) -> Json:
    if isinstance(mount, str):
        mount = VolumeMount(mount)
    if isinstance(mount, VolumeMount):
        read_only = True if mount.read_only else None
        return without_none(name=mount.name, path=mount.path, read_only=read_only)
    return dict(mount)


def network_fields(
    network: NetworkMode | Mapping[str, Any] | None, egress_allowlist: Iterable[RuleLike] | None
) -> Json:
    """Absent is the project's default; an empty list is nothing at all."""
    fields: Json = {}
    if network is not None:
        fields["network"] = {"mode": network} if isinstance(network, str) else dict(network)
    if egress_allowlist is not None:
        if isinstance(egress_allowlist, str):
            # Its letters would be taken for hosts.
            raise TypeError("egress_allowlist is a list of hosts")
        fields["egress_allowlist"] = list(egress_allowlist)
    return fields


def create(wish: SandboxWish) -> Operation[SandboxInfo]:
    request = make(path_of("sandboxes"), wish.body(), timeout=STATE_SECONDS)
    answer = yield from _made(request, wish.patience(), lambda made: [made["id"]])
    return from_wire(SandboxInfo, answer.json())


@dataclass(frozen=True)
class Forked:
    """The children that were made, and why the others were not, by id."""

    children: list[SandboxInfo]
    failures: dict[str, str]


def fork(
    sandbox: str, count: int, options: Json, *, is_tree: bool, is_partial: bool = False
) -> Operation[Forked]:
    path = path_of("sandboxes", sandbox, "fork-tree" if is_tree else "fork")
    request = make(path, {**options, "count": count}, timeout=FORK_SECONDS)
    answer = yield from _made(
        request, Patience(), lambda made: [child["id"] for child in made["children"]]
    )
    made = answer.json()
    children = [from_wire(SandboxInfo, child) for child in made["children"]]
    failures: dict[str, str] = made.get("failures") or {}
    if failures and not is_partial:
        # Here, and not by `all_or_nothing`: that would tell the reason of one child alone.
        ids = [child.id for child in children]
        yield from delete_together(ids)
        raise ForkFailed(failures, ids)
    return Forked(children, failures)


def fork_options(
    *,
    ttl_seconds: int | None = None,
    persistent: bool | None = None,
    metadata: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    idle_seconds: int | None = None,
    on_timeout: OnTimeout | None = None,
    network: NetworkMode | Mapping[str, Any] | None = None,
    egress_allowlist: Iterable[RuleLike] | None = None,
    reseed_user_space: bool | None = None,
) -> Json:
    """What each child has of its own. The rest is its source's, which the server knows."""
    return without_none(
        ttl_seconds=checked_seconds("ttl_seconds", ttl_seconds),
        persistent=persistent,
        metadata=checked_texts("metadata", metadata),
        env=checked_texts("env", env),
        idle_seconds=checked_seconds("idle_seconds", idle_seconds),
        on_timeout=on_timeout,
        reseed_user_space=reseed_user_space,
        **network_fields(network, egress_allowlist),
    )


def take_snapshot(
    sandbox: str, name: str | None, retain_seconds: int | None
) -> Operation[SnapshotInfo]:
    body = without_none(name=name, retain_seconds=retain_seconds)
    path = path_of("sandboxes", sandbox, "snapshots")
    answer = yield from call(make(path, body, timeout=STATE_SECONDS))
    return from_wire(SnapshotInfo, answer.json())


def _made(
    request: Request, patience: Patience, ids: Callable[[Json], list[str]]
) -> Operation[Answer]:
    """Makes sandboxes. When the caller is interrupted meanwhile, what was made is deleted.

    Nobody would hold it otherwise until its TTL. The same request with the same idempotency key
    tells what the first one made, whether or not its answer was seen.
    """
    try:
        return (yield from call(request, patience))
    except Exception:
        raise
    except (GeneratorExit, SystemExit):
        # There is nobody left to do anything for us, or no time.
        raise
    except BaseException:
        # KeyboardInterrupt, or the cancellation of an asyncio task.
        try:
            answer = yield from send_once(replace(request, timeout=UNDO_SECONDS))
            if answer.status < 300:
                for sandbox in ids(answer.json()):
                    yield from send_once(
                        replace(delete(path_of("sandboxes", sandbox)), timeout=UNDO_SECONDS)
                    )
        except DayflyError:
            # The TTL ends it then.
            pass
        raise
