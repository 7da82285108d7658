"""Sandboxes, for code that waits for its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from . import _living, _making
from ._children import Children
from ._closing import Closing
from ._commands import Command
from ._exploring import Exploration, ExploreWish, Score, explore
from ._keywords import known_keywords
from ._making import MountLike, SandboxWish
from ._options import NetworkMode, OnTimeout, PromiseClass, Status
from ._retry import Progress
from ._sandbox_parts import SandboxParts
from ._sandbox_runs import SandboxRuns
from ._sync import Session
from .builds import TemplateLike
from .client import Client, session_of
from .errors import AlreadyExists, NotFound
from .filesystem import Filesystem
from .models import Me, Promoted, SandboxInfo, TemplateInfo
from .network import RuleLike
from .snapshot import Snapshot


class Sandbox(SandboxRuns, Closing):
    """A computer of its own for code that nobody has read: a microVM.

    ::

        with Sandbox(template="code-interpreter", ttl_seconds=600) as sandbox:
            print(sandbox.exec("echo hello").stdout)
            print(sandbox.run_code("6 * 7").text)

    At the end of ``with`` it is deleted, also after an exception or Ctrl-C, unless it is
    ``persistent``. One that is forgotten is ended by the server after its TTL, an hour unless
    ``ttl_seconds`` says otherwise.

    - ``template``: what it starts from, ``base`` by default: a name, or what ``Template.build``
      gave. One that is not baked yet is waited for, up to ``wait_seconds``, while ``on_progress``
      is notified.
    - ``from_snapshot``: the id or the name of a snapshot to go on from, instead of a template. With
      ``disk_only`` a machine boots anew on its disk: all files and no process of it. That takes the
      time of a boot, and works where its memory cannot be restored any more.
    - ``name``: stands for the id, as in ``Sandbox.connect(name)``, until it is deleted. A second
      one of that name is refused (``AlreadyExists``); see ``get_or_create``.
    - ``env``: environment variables of every command and context. The server keeps them, and
      shows their names only (``info().env_names``).
    - ``ttl_seconds``: deleted after so long, whatever it does.
    - ``idle_seconds``, ``on_timeout``: ``"delete"`` or ``"hibernate"`` after so long without
      activity. ``persistent`` exempts it, and it then has a TTL only when one is given.
    - ``egress_allowlist``: hosts that it may reach, or ``network``: a mode, or mode and rules.
      With neither it is the project's default, which is nothing unless it was changed.
    - ``volumes``: see ``Volume.mount``. ``cpu``: a limit in CPUs. ``disk_gb``: its disk.
    - ``class_``: ``"reserved"``, promised in full, or ``"shared"``, on a host that has such: it may
      sleep for others while it is idle. Without it the host decides.
    - ``memory_mb``: the template's, or a larger multiple of 128. Another size than the template's,
      or more CPUs, is baked when somebody first asks for it, and waited for like a template.
    - ``api_url``, ``api_key``: default ``DAYFLY_API_URL`` and ``DAYFLY_API_KEY``; or ``client``.
    """

    @known_keywords
    def __init__(
        self,
        template: TemplateLike | None = None,
        *,
        name: str | None = None,
        ttl_seconds: int | None = None,
        persistent: bool = False,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        volumes: Sequence[MountLike] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        cpu: float | None = None,
        memory_mb: int | None = None,
        disk_gb: float | None = None,
        class_: PromiseClass | None = None,
        from_snapshot: str | None = None,
        disk_only: bool = False,
        on_progress: Callable[[Progress], Any] | None = None,
        wait_seconds: float | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> None:
        session = session_of(client, api_url, api_key)
        wish = SandboxWish(
            template=template,
            name=name,
            ttl_seconds=ttl_seconds,
            persistent=persistent,
            metadata=metadata,
            env=env,
            idle_seconds=idle_seconds,
            on_timeout=on_timeout,
            volumes=volumes,
            egress_allowlist=egress_allowlist,
            network=network,
            cpu=cpu,
            memory_mb=memory_mb,
            disk_gb=disk_gb,
            class_=class_,
            from_snapshot=from_snapshot,
            disk_only=disk_only,
            on_progress=on_progress,
            wait_seconds=wait_seconds,
        )
        super().__init__(session, session.settings, session.run(_making.create(wish)))

    @classmethod
    @known_keywords
    def create(
        cls,
        template: TemplateLike | None = None,
        *,
        name: str | None = None,
        ttl_seconds: int | None = None,
        persistent: bool = False,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        volumes: Sequence[MountLike] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        cpu: float | None = None,
        memory_mb: int | None = None,
        disk_gb: float | None = None,
        class_: PromiseClass | None = None,
        from_snapshot: str | None = None,
        disk_only: bool = False,
        on_progress: Callable[[Progress], Any] | None = None,
        wait_seconds: float | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Sandbox:
        """The same as ``Sandbox(...)``."""
        return cls(
            template,
            name=name,
            ttl_seconds=ttl_seconds,
            persistent=persistent,
            metadata=metadata,
            env=env,
            idle_seconds=idle_seconds,
            on_timeout=on_timeout,
            volumes=volumes,
            egress_allowlist=egress_allowlist,
            network=network,
            cpu=cpu,
            memory_mb=memory_mb,
            disk_gb=disk_gb,
            class_=class_,
            from_snapshot=from_snapshot,
            disk_only=disk_only,
            on_progress=on_progress,
            wait_seconds=wait_seconds,
            api_url=api_url,
            api_key=api_key,
            client=client,
        )

    @classmethod
    def of(cls, session: Session, info: SandboxInfo) -> Sandbox:
        """A handle of a sandbox that exists, without asking the server."""
        sandbox = cls.__new__(cls)
        SandboxParts.__init__(sandbox, session, session.settings, info)
        return sandbox

    @classmethod
    @known_keywords
    def connect(
        cls,
        sandbox_id: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Sandbox:
        """The sandbox of that id or name. As any other it is deleted at the end of ``with``.

        ``with Sandbox.connect(id).detach() as sandbox`` leaves it alone.
        """
        session = session_of(client, api_url, api_key)
        return cls.of(session, session.run(_living.get_sandbox(sandbox_id)))

    @classmethod
    @known_keywords
    def get_or_create(
        cls,
        name: str,
        template: TemplateLike | None = None,
        *,
        ttl_seconds: int | None = None,
        persistent: bool = False,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        volumes: Sequence[MountLike] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        cpu: float | None = None,
        memory_mb: int | None = None,
        disk_gb: float | None = None,
        class_: PromiseClass | None = None,
        from_snapshot: str | None = None,
        disk_only: bool = False,
        on_progress: Callable[[Progress], Any] | None = None,
        wait_seconds: float | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Sandbox:
        """The sandbox of that name; it is created if there is none.

        The options are those of ``Sandbox`` and count for a new one only. One that is there is as
        it was left, asleep perhaps. As any other it is deleted at the end of ``with``.
        """
        session = session_of(client, api_url, api_key)
        try:
            return cls.of(session, session.run(_living.get_sandbox(name)))
        except NotFound:
            pass
        try:
            return cls.create(
                template,
                name=name,
                ttl_seconds=ttl_seconds,
                persistent=persistent,
                metadata=metadata,
                env=env,
                idle_seconds=idle_seconds,
                on_timeout=on_timeout,
                volumes=volumes,
                egress_allowlist=egress_allowlist,
                network=network,
                cpu=cpu,
                memory_mb=memory_mb,
                disk_gb=disk_gb,
                class_=class_,
                from_snapshot=from_snapshot,
                disk_only=disk_only,
                on_progress=on_progress,
                wait_seconds=wait_seconds,
                api_url=api_url,
                api_key=api_key,
                client=client,
            )
        except AlreadyExists:
            # Somebody else was quicker.
            return cls.of(session, session.run(_living.get_sandbox(name)))

    @classmethod
    @known_keywords
    def list(
        cls,
        *,
        template: str | None = None,
        status: Status | None = None,
        metadata: Mapping[str, str] | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> Iterator[Sandbox]:
        """The sandboxes of the project, or those that have all of this, oldest first.

        They are read page by page, as they are asked for: ``for sandbox in Sandbox.list()``.
        """
        session = session_of(client, api_url, api_key)
        listing = _living.Listing(template, status, metadata)

        def found() -> Iterator[Sandbox]:
            while (page := session.run(listing.next_page())) is not None:
                yield from (cls.of(session, info) for info in page)

        return found()

    @property
    def filesystem(self) -> Filesystem:
        """Its files."""
        return Filesystem(self._session, self.id)

    @property
    def files(self) -> Filesystem:
        """The same as ``filesystem``."""
        return self.filesystem

    @overload
    def fork(
        self,
        count: None = None,
        *,
        partial: bool = False,
        ttl_seconds: int | None = None,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        persistent: bool | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        reseed_user_space: bool | None = None,
    ) -> Sandbox: ...

    @overload
    def fork(
        self,
        count: int,
        *,
        partial: bool = False,
        ttl_seconds: int | None = None,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        persistent: bool | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        reseed_user_space: bool | None = None,
    ) -> Children[Sandbox]: ...

    @known_keywords
    def fork(
        self,
        count: int | None = None,
        *,
        partial: bool = False,
        ttl_seconds: int | None = None,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        persistent: bool | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        reseed_user_space: bool | None = None,
    ) -> Sandbox | Children[Sandbox]:
        """A child that continues from this moment, memory included; with ``count`` a list of them.

        They are deleted at the end of ``with sandbox.fork(3) as children``. When one cannot be
        made, those that were are deleted and ``ForkFailed`` is raised.

        - ``partial``: gives those that could be made; ``failures`` says why the others were not.
        - ``ttl_seconds``, ``idle_seconds``, ``on_timeout``: by default those of this sandbox.
        - ``metadata``: beside the labels of this sandbox, and over them.
        - ``env``: in place of its environment variables.
        - ``persistent``: not inherited.
        - ``network``, ``egress_allowlist``: by default what this one may reach, and never more.
        - ``reseed_user_space``: tells the hooks of the guest to seed random generators again.
        """
        body = _making.fork_options(
            ttl_seconds=ttl_seconds,
            metadata=metadata,
            env=env,
            persistent=persistent,
            idle_seconds=idle_seconds,
            on_timeout=on_timeout,
            network=network,
            egress_allowlist=egress_allowlist,
            reseed_user_space=reseed_user_space,
        )
        fork = _making.fork(self.id, count or 1, body, is_tree=False, is_partial=partial)
        children = self._children(self._session.run(fork))
        return children[0] if count is None else children

    @known_keywords
    def fork_tree(
        self,
        count: int,
        *,
        partial: bool = False,
        ttl_seconds: int | None = None,
        metadata: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        persistent: bool | None = None,
        idle_seconds: int | None = None,
        on_timeout: OnTimeout | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        reseed_user_space: bool | None = None,
    ) -> Children[Sandbox]:
        """As ``fork``, of which one child is to be kept: see ``promote``."""
        body = _making.fork_options(
            ttl_seconds=ttl_seconds,
            metadata=metadata,
            env=env,
            persistent=persistent,
            idle_seconds=idle_seconds,
            on_timeout=on_timeout,
            network=network,
            egress_allowlist=egress_allowlist,
            reseed_user_space=reseed_user_space,
        )
        fork = _making.fork(self.id, count, body, is_tree=True, is_partial=partial)
        return self._children(self._session.run(fork))

    def _children(self, made: _making.Forked) -> Children[Sandbox]:
        children = [Sandbox.of(self._session, info) for info in made.children]
        return Children(self._session, children, made.failures)

    @known_keywords
    def promote(self, *, keep_siblings: bool = False, tree_id: str | None = None) -> Promoted:
        """Keeps this child of a fork and deletes the others, unless ``keep_siblings``.

        The source is never deleted.
        """
        return self._session.run(_living.promote(self.id, not keep_siblings, tree_id))

    @known_keywords
    def explore(
        self,
        candidates: Sequence[Command | Callable[[Sandbox], Any]],
        score: Score | None = None,
        *,
        stop_at: float | None = None,
        timeout_seconds: float | None = None,
        max_parallel: int = 4,
        ttl_seconds: int | None = None,
    ) -> Exploration[Sandbox]:
        """Tries each candidate in a fork of its own, keeps the best and deletes the rest.

        The first of equals wins::

            found = sandbox.explore(["make a && make test", "make b && make test"])
            if found.best and found.best.score:
                found.winner.exec("make install")

        - ``candidates``: commands, or functions that are given the child.
        - ``score``: judges a result, or what a function returned; more is better. By default
          success counts, and a number that a function returns.
        - ``stop_at``: once a score reaches it, no further candidate is begun.
        - ``timeout_seconds``: for each command. ``max_parallel``: how many are tried at once.
        - ``ttl_seconds``: of the children; by default that of this sandbox.
        """
        wish = ExploreWish(
            candidates,
            score,
            timeout_seconds,
            max_parallel,
            ttl_seconds,
            stop_at,
            lambda info: Sandbox.of(self._session, info),
        )
        found = self._session.run(explore(self._info, wish))
        winner = None if found.winner is None else Sandbox.of(self._session, found.winner)
        return Exploration(winner, found.best, found.attempts)

    @known_keywords
    def snapshot(self, name: str | None = None, retain_seconds: int | None = None) -> Snapshot:
        """Keeps this moment; the sandbox goes on."""
        info = self._session.run(_making.take_snapshot(self.id, name, retain_seconds))
        return Snapshot(self._session, self._settings, info)

    def delete(self) -> None:
        """Deletes it. Repeating that is fine."""
        self._session.run(_living.delete_sandbox(self.id))
        self._is_deleted = True

    def kill(self) -> None:
        """The same as ``delete``."""
        self.delete()

    def close(self) -> None:
        """What the end of ``with`` does: deletes it, unless it is persistent or detached."""
        if self.is_held:
            self.delete()


def templates(
    *,
    api_url: str | None = None,
    api_key: str | None = None,
    client: Client | None = None,
) -> list[TemplateInfo]:
    """What sandboxes can be created from, and how far a bake is."""
    return session_of(client, api_url, api_key).run(_living.list_templates())


def me(
    *,
    api_url: str | None = None,
    api_key: str | None = None,
    client: Client | None = None,
) -> Me:
    """Whose key this is."""
    return session_of(client, api_url, api_key).run(_living.me())
