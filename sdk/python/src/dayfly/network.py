"""What a sandbox may reach, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._options import NetworkMode

PORTS_DEFAULT = [80, 443]

# A host, a range or a preset as text, or the parts of a rule.
RuleLike = str | Mapping[str, Any]


@dataclass(frozen=True)
class NetworkRule:
    """A host or a range, with ports. As text it is what one would write to ask for it."""

    id: str = ""
    host: str | None = None
    cidr: str | None = None
    ports: list[int] = field(default_factory=lambda: list(PORTS_DEFAULT))

    def __str__(self) -> str:
        target = self.host or self.cidr or self.id
        if self.ports == PORTS_DEFAULT:
            return target
        return f"{target}:{','.join(map(str, self.ports))}"


@dataclass(frozen=True)
class NetworkPolicy:
    """``mode`` is ``deny``, ``allowlist``, ``public`` or ``observe``.

    ``enforced`` is false while the host has not confirmed the policy; it is then never wider than
    the one before.
    """

    mode: NetworkMode
    rules: list[NetworkRule] = field(default_factory=list[NetworkRule])
    epoch: int = 0
    enforced: bool = True

    @property
    def allow(self) -> list[str]:
        return [str(rule) for rule in self.rules]


@dataclass(frozen=True)
class NetworkSuggestion:
    """The smallest list for what was used so far. ``unnamed`` are addresses without a name."""

    mode: NetworkMode
    rules: list[NetworkRule] = field(default_factory=list[NetworkRule])
    unnamed: list[str] = field(default_factory=list[str])
    records: int = 0
    lost: int = 0
    truncated: bool = False

    @property
    def allow(self) -> list[str]:
        return [str(rule) for rule in self.rules]


@dataclass(frozen=True)
class NetworkRecord:
    """Something that the sandbox tried, and what was decided about it."""

    sequence: int
    decision: str
    kind: str
    at: str = ""
    name: str | None = None
    port: int | None = None
    reason: str | None = None
    rule: str | None = None
    destination: str | None = None
    dialed: str | None = None
    name_source: str = ""
    bytes_up: int = 0
    bytes_down: int = 0
    duration_ms: int = 0
    suppressed: int = 0
    would_deny: bool = False
    answers: list[str] = field(default_factory=list[str])
    internal_network: str | None = None


@dataclass(frozen=True)
class NetworkLog:
    """Records behind a sequence number, oldest first. ``lost`` were dropped before these."""

    records: list[NetworkRecord]
    oldest: int = 0
    latest: int = 0
    lost: int = 0


def network_wish(mode: NetworkMode, rules: Sequence[RuleLike] | None) -> dict[str, Any]:
    """The body that asks for a policy."""
    wish: dict[str, Any] = {"mode": mode}
    if rules is not None:
        wish["rules"] = list(rules)
    return wish
