"""Builds of templates, which the server runs, and versions of templates."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ._build_context import ContextFile, packed_form
from ._effects import Body, Operation, Read, Sleep, ask, send_once
from ._making import UNDO_SECONDS, network_fields
from ._options import NetworkMode
from ._retry import call, open_body
from ._sse import EventParser
from ._wire import (
    CALL_SECONDS,
    Json,
    Request,
    delete,
    get,
    path_of,
    send_json,
    with_query,
    without_none,
)
from .builds import BuildEvent, TemplateBuild, TemplateVersion
from .errors import (
    AnswerLost,
    BuildFailed,
    DayflyError,
    GuestUnavailable,
    NodeUnavailable,
    NotFound,
    ServerUnreachable,
    TooMany,
)
from .models import from_wire
from .network import RuleLike

# The files of a build context, over a slow line.
SEND_SECONDS = 3600.0
SILENCE_SECONDS = 60.0
# A build goes on in the server, so it pays to come back after a restart of what is in between.
REATTACH_SECONDS = 60.0
REATTACH_PAUSE_FIRST = 0.1
REATTACH_PAUSE_MAX = 2.0

OnEvent = Callable[[BuildEvent], Any]

_PASSING = (AnswerLost, ServerUnreachable, NodeUnavailable, GuestUnavailable, TooMany)


@dataclass(frozen=True)
class BuildWish:
    """What a build is asked for with."""

    name: str
    dockerfile: str
    files: Iterable[ContextFile]
    tag: str | None = None
    description: str | None = None
    cpu: int | None = None
    memory_mb: int | None = None
    disk_gb: float | None = None
    target: str | None = None
    build_args: Mapping[str, str] | None = None
    network: NetworkMode | Mapping[str, Any] | None = None
    egress_allowlist: Iterable[RuleLike] | None = None
    fresh: bool = False

    def fields(self) -> dict[str, str]:
        name, _, tag = self.name.partition(":")
        if tag and self.tag is not None:
            raise ValueError(f"{self.name!r} has a tag: give it, or tag=")
        network = _network(self.network, self.egress_allowlist)
        size = None if self.disk_gb is None else round(self.disk_gb * 1024)
        given = without_none(
            name=name,
            tag=tag or self.tag,
            dockerfile=self.dockerfile,
            description=self.description,
            cpu=self.cpu,
            memory_mb=self.memory_mb,
            size_mb=size,
            target=self.target,
            build_args=json.dumps(dict(self.build_args)) if self.build_args else None,
            network=None if network is None else json.dumps(network),
            fresh="true" if self.fresh else None,
        )
        return {key: str(value) for key, value in given.items()}


def _network(
    network: NetworkMode | Mapping[str, Any] | None, egress_allowlist: Iterable[RuleLike] | None
) -> Json | None:
    fields = network_fields(network, egress_allowlist)
    if len(fields) > 1:
        raise ValueError("give network= or egress_allowlist=, not both")
    if "egress_allowlist" in fields:
        return {"mode": "allowlist", "rules": fields["egress_allowlist"]}
    return fields.get("network")


def build(wish: BuildWish, on_event: OnEvent | None, *, wait: bool) -> Operation[TemplateBuild]:
    """Builds a template. When the caller is interrupted meanwhile, the build is ended."""
    started = yield from _start(wish)
    if not wait:
        return started
    try:
        return (yield from wait_build(started.id, on_event))
    except (DayflyError, GeneratorExit, SystemExit):
        raise
    except BaseException:
        # KeyboardInterrupt, the cancellation of an asyncio task, or a fault of who listens.
        # Otherwise it ends by itself, and its steps are of use to the next one.
        with contextlib.suppress(DayflyError):
            yield from send_once(replace(delete(_path(started.id)), timeout=UNDO_SECONDS))
        raise


def _start(wish: BuildWish) -> Operation[TemplateBuild]:
    with packed_form(wish.fields(), wish.files) as form:
        # Not repeated: the server would build twice.
        request = Request(
            "POST",
            path_of("templates", "build"),
            {"Content-Type": form.content_type},
            form.body,
            form.length,
            timeout=SEND_SECONDS,
        )
        return from_wire(TemplateBuild, (yield from call(request)).json())


def _path(build_id: str) -> str:
    return path_of("templates", "builds", build_id)


def get_build(build_id: str) -> Operation[TemplateBuild]:
    return from_wire(TemplateBuild, (yield from call(get(_path(build_id)))).json())


def cancel_build(build_id: str) -> Operation[None]:
    try:
        yield from call(delete(_path(build_id)))
    except NotFound:
        return


def wait_build(build_id: str, on_event: OnEvent | None) -> Operation[TemplateBuild]:
    """Follows a build from its beginning to its end."""
    return (yield from BuildFollower(build_id, on_event).follow())


class BuildFollower:
    """State of one build that is followed. Its events are numbered, so a lost connection costs
    nothing but time."""

    def __init__(self, build_id: str, on_event: OnEvent | None) -> None:
        self._id = build_id
        self._on_event = on_event
        self._last_id = ""
        self._end: BuildEvent | None = None

    def follow(self) -> Operation[TemplateBuild]:
        lost_at: float | None = None
        pause = REATTACH_PAUSE_FIRST
        is_first = True
        while True:
            before = self._last_id
            loss: DayflyError = AnswerLost("the events ended before the build did")
            try:
                yield from self._read((yield from open_body(self._request())))
                # A stream that was cut off may have more to say of how it ended.
                if self._end is not None or self._last_id == before:
                    found = yield from get_build(self._id)
                    if found.status == "done":
                        return found
                    if found.status == "failed":
                        raise BuildFailed(found, self._end.step if self._end else None)
            except _PASSING as error:
                if is_first and isinstance(error, ServerUnreachable):
                    raise
                loss = error
            is_first = False
            now = time.monotonic()
            if self._last_id != before or lost_at is None:
                lost_at, pause = now, REATTACH_PAUSE_FIRST
            if now + pause - lost_at > REATTACH_SECONDS:
                raise self._lost(loss)
            # Many that wait must not come at once.
            yield Sleep(pause * random.uniform(0.8, 1.0))
            pause = min(pause * 2, REATTACH_PAUSE_MAX)

    def _request(self) -> Request:
        path = f"{_path(self._id)}/events"
        return get(with_query(path, after=self._last_id or None), timeout=CALL_SECONDS)

    def _read(self, body: Body) -> Operation[None]:
        """Reads events until the body ends, in whatever way."""
        parser = EventParser()
        try:
            while self._end is None:
                try:
                    piece: bytes = yield Read(body, SILENCE_SECONDS)
                except AnswerLost:
                    return
                if not piece:
                    return
                for event in parser.push(piece):
                    self._last_id = event.id or self._last_id
                    yield from self._take(json.loads(event.data))
        finally:
            body.close()

    def _take(self, data: Json) -> Operation[None]:
        event = from_wire(BuildEvent, data)
        if event.event in ("built", "failed"):
            self._end = event
        yield from ask(self._on_event, event)

    def _lost(self, cause: DayflyError) -> AnswerLost:
        error = AnswerLost(f"the build {self._id} was lost sight of: {cause.message}")
        error.hint = f"it may go on: Template.wait_build({self._id!r}) tells how it ends"
        return error


def list_versions(name: str) -> Operation[list[TemplateVersion]]:
    answer = yield from call(get(path_of("templates", name, "versions")))
    return [from_wire(TemplateVersion, item) for item in answer.json()["items"]]


def get_version(name: str, version: str) -> Operation[TemplateVersion]:
    answer = yield from call(get(path_of("templates", name, "versions", version)))
    return from_wire(TemplateVersion, answer.json())


def set_tag(name: str, version: str, tag: str) -> Operation[TemplateVersion]:
    body = {"version": version}
    request = send_json("PUT", path_of("templates", name, "tags", tag), body, is_repeatable=True)
    return from_wire(TemplateVersion, (yield from call(request)).json())


def delete_tag(name: str, tag: str) -> Operation[None]:
    yield from _gone(path_of("templates", name, "tags", tag))


def delete_template(name: str, version: str | None) -> Operation[None]:
    below = () if version is None else ("versions", version)
    yield from _gone(path_of("templates", name, *below))


def _gone(path: str) -> Operation[None]:
    try:
        yield from call(delete(path))
    except NotFound:
        return
