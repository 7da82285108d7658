"""What a sandbox can be asked besides running things: its state, its life, network and ports."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from . import _living
from ._handles import SandboxHandle, SnapshotHandle, snapshot_id
from ._keywords import known_keywords
from ._living import UNCHANGED, Unchanged
from ._options import NetworkMode, OnTimeout
from ._sync import Session
from .models import Lifecycle, Port, PortLink, SandboxInfo
from .network import NetworkLog, NetworkPolicy, NetworkSuggestion, RuleLike

PartsT = TypeVar("PartsT", bound="SandboxParts")


class SandboxNetwork:
    """What a sandbox may reach: nothing, unless somebody said so.

    ::

        sandbox.network.allow("api.example.com", "*.example.org")
        for record in sandbox.network.log().records:
            print(record.decision, record.name, record.reason)
    """

    def __init__(self, session: Session, sandbox: str) -> None:
        self._session = session
        self._sandbox = sandbox

    def get(self) -> NetworkPolicy:
        return self._session.run(_living.get_network(self._sandbox))

    def set(self, mode: NetworkMode, rules: Sequence[RuleLike] | None = None) -> NetworkPolicy:
        """Replaces the policy, for open connections as well."""
        return self._session.run(_living.set_network(self._sandbox, mode, rules))

    def allow(self, *rules: RuleLike) -> NetworkPolicy:
        """Adds rules; ``deny`` becomes ``allowlist``."""
        return self._session.run(_living.allow_network(self._sandbox, rules))

    def log(
        self,
        after: int | None = None,
        limit: int | None = None,
        wait_seconds: int | None = None,
    ) -> NetworkLog:
        """What was tried, behind a sequence number."""
        return self._session.run(_living.network_log(self._sandbox, after, limit, wait_seconds))

    def suggest(self) -> NetworkSuggestion:
        """The smallest allowlist for what was used so far."""
        return self._session.run(_living.suggest_network(self._sandbox))


class SandboxParts(SandboxHandle[Session]):
    """State, life, network and ports of a sandbox."""

    @property
    def network(self) -> SandboxNetwork:
        """What it may reach."""
        return SandboxNetwork(self._session, self.id)

    def info(self) -> SandboxInfo:
        """Asks the server how it is now."""
        self._info = self._session.run(_living.get_sandbox(self.id))
        return self._info

    def refresh(self: PartsT) -> PartsT:
        """Asks the server how it is now, for ``status`` and the like. Gives itself."""
        self.info()
        return self

    def pause(self) -> None:
        """Stops its CPUs. Its memory stays taken."""
        self._session.run(_living.change_state(self.id, "pause"))
        self._info = replace(self._info, status="paused")

    def resume(self) -> None:
        """Lets a paused one go on."""
        self._session.run(_living.change_state(self.id, "resume"))
        self._info = replace(self._info, status="running")

    def hibernate(self) -> None:
        """Puts it on disk; it costs no memory then. A command or a file wakes it by itself."""
        self._session.run(_living.change_state(self.id, "hibernate"))
        self._info = replace(self._info, status="hibernated")

    @known_keywords
    def wake(self, *, env: Mapping[str, str] | None = None) -> None:
        """Brings a hibernated one back. Any call that needs the guest does that as well.

        ``env`` takes the place of its environment variables, also while it runs; ``{}`` leaves
        none. Commands and contexts that run keep theirs.
        """
        self._info = self._session.run(_living.wake(self._info, env))

    @known_keywords
    def rollback(
        self, snapshot: SnapshotHandle[Session] | str, *, env: Mapping[str, str] | None = None
    ) -> None:
        """Back to a snapshot of its own. What happened since is lost, that is the point.

        ``env`` takes the place of its environment variables, which are not part of a snapshot.
        """
        rollback = _living.rollback(self.id, snapshot_id(snapshot), env)
        self._info = self._session.run(rollback)
        self._contexts.forget()

    def lifecycle(self) -> Lifecycle:
        """How long it lives."""
        return self._session.run(_living.lifecycle(self.id))

    def set_ttl(self, ttl_seconds: int | None) -> Lifecycle:
        """It is deleted that long from now; ``None`` takes the deadline away."""
        return self.set_lifecycle(ttl_seconds=ttl_seconds)

    def set_persistent(self, persistent: bool = True) -> Lifecycle:
        """A persistent one is never reaped for idleness, nor deleted at the end of ``with``."""
        return self.set_lifecycle(persistent=persistent)

    @known_keywords
    def set_lifecycle(
        self,
        *,
        ttl_seconds: int | Unchanged | None = UNCHANGED,
        persistent: bool | Unchanged = UNCHANGED,
        idle_seconds: int | Unchanged | None = UNCHANGED,
        on_timeout: OnTimeout | Unchanged = UNCHANGED,
    ) -> Lifecycle:
        """Changes what is given and leaves the rest."""
        change = _living.change_lifecycle(
            self.id,
            ttl_seconds=ttl_seconds,
            persistent=persistent,
            idle_seconds=idle_seconds,
            on_timeout=on_timeout,
        )
        life = self._session.run(change)
        # Children of a fork get the TTL that is known here.
        self._info = replace(self._info, persistent=life.persistent, ttl_seconds=life.ttl_seconds)
        return life

    @known_keywords
    def wait_for_port(self, port: int, timeout_seconds: float = 60.0) -> Port:
        """Waits until something listens there; ``AnswerTimeout`` when nothing does in time."""
        return self._session.run(_living.wait_for_port(self.id, port, timeout_seconds))

    def ports(self) -> builtins.list[Port]:
        """What listens in it."""
        return self._session.run(_living.list_ports(self.id))

    @known_keywords
    def port_link(
        self, port: int, ttl_seconds: int | None = None, public: bool = False
    ) -> PortLink:
        """Opens a port to those who have the link, or to anybody, who need no key.

        By default for an hour. ``port_url`` is the address for programs that have the key.
        """
        return self._session.run(_living.create_link(self.id, port, ttl_seconds, public))

    def port_links(self, port: int) -> builtins.list[PortLink]:
        """The links that work now, without their tokens."""
        return self._session.run(_living.list_links(self.id, port))

    def revoke_link(self, link: PortLink) -> None:
        """Shuts it at once; connections that came by it are cut."""
        self._session.run(_living.delete_link(self.id, link.port, link.id))
