"""Builds and versions of templates, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BuildEvent:
    """News of a build. ``print`` shows it as ``dayfly template build`` does.

    ``event`` is ``base`` (an image is fetched), ``stage``, ``cached``, ``started``, ``output``,
    ``finished``, ``baking``, ``dropped`` (so many ``lines`` of steps are not kept), ``built`` or
    ``failed``; which other fields are there depends on it. A later server may know more.
    """

    event: str
    number: int | None = None
    steps: int | None = None
    text: str | None = None
    is_error: bool = False
    image: str | None = None
    name: str | None = None
    percent: int | None = None
    detail: str | None = None
    elapsed_ms: int | None = None
    tag: str | None = None
    version: str | None = None
    cached: int | None = None
    lines: int | None = None
    error: str | None = None
    step: dict[str, Any] | None = None

    def __str__(self) -> str:
        seconds = f"{(self.elapsed_ms or 0) / 1000:.1f} s"
        lines = {
            "base": f"image {self.image}: {self.detail or 'waiting'}, {self.percent} %",
            "stage": f"{self.name}: {self.steps} steps",
            "cached": f"[{self.number}/{self.steps}] cached  {self.text}",
            "started": f"[{self.number}/{self.steps}] {self.text}",
            "output": f"    {self.text}",
            "finished": f"    done in {seconds}",
            "baking": f"template: {self.detail or 'waiting'}, {self.percent} %",
            "dropped": f"    ({self.lines} lines are left out)",
            "built": f"built {self.name}:{self.tag} in {seconds}"
            f" ({self.cached} of {self.steps} steps from the cache)",
            "failed": f"failed: {self.error}",
        }
        return lines.get(self.event, self.event)


@dataclass(frozen=True)
class TemplateBuild:
    """A build of a template, as it was when the server was asked. ``Sandbox(template=build)`` makes
    a sandbox of what it built.

    ``status`` is ``queued``, ``running``, ``done`` or ``failed``; ``cached`` of its ``steps`` were
    done by earlier builds.
    """

    id: str
    name: str
    tag: str
    status: str
    version: str | None = None
    steps: int = 0
    cached: int = 0
    error: str | None = None
    size_mb: int = 0
    bytes: int = 0
    started_at: str | None = None
    ended_at: str | None = None

    @property
    def reference(self) -> str:
        """What names it at a create: the version once there is one, whatever the tag means."""
        return f"{self.name}@{self.version}" if self.version else f"{self.name}:{self.tag}"

    def __str__(self) -> str:
        return self.reference


@dataclass(frozen=True)
class TemplateVersion:
    """A version of a template of the project, which never changes. ``tags`` are those that mean it,
    ``provenance`` is what it was built from and by whom.

    ``state`` is that of its bake, ``usable`` whether sandboxes can be made from it.
    """

    id: str
    name: str
    state: str
    tags: list[str] = field(default_factory=list[str])
    usable: bool = False
    percent: int = 0
    detail: str | None = None
    description: str = ""
    from_snapshot: str = ""
    created_at: str = ""
    made_by: str | None = None
    cpu: int = 0
    memory_mb: int = 0
    disk_mb: int = 0
    size_bytes: int = 0
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def reference(self) -> str:
        """What names it at a create."""
        return f"{self.name}@{self.id}"


TemplateLike = str | TemplateBuild | TemplateVersion


def template_reference(template: TemplateLike | None) -> str | None:
    """What a template is called at a create."""
    if template is None or isinstance(template, str):
        return template
    return template.reference
