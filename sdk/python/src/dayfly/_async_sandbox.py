"""Sandboxes for asyncio. The same operations as in ``sandbox``, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, overload

from . import _living, _making
from ._async import AsyncSession
from ._async_client import AsyncClient, async_session_of
from ._async_ending import Making, run_and_undo, run_to_end
from ._async_filesystem import AsyncFilesystem
from ._async_sandbox_parts import AsyncSandboxParts
from ._async_sandbox_runs import AsyncSandboxRuns
from ._async_snapshot import AsyncSnapshot
from ._children import AsyncChildren
from ._closing import AsyncClosing
from ._commands import Command
from ._effects import Operation
from ._exploring import Exploration, ExploreWish, Score, explore
from ._keywords import known_keywords
from ._making import MountLike, SandboxWish
from ._options import NetworkMode, OnTimeout, PromiseClass, Status
from ._retry import Progress
from .builds import TemplateLike
from .errors import AlreadyExists, NotFound
from .models import Me, Promoted, SandboxInfo, TemplateInfo
from .network import RuleLike


class AsyncSandbox(AsyncSandboxRuns, AsyncClosing):
    """As ``Sandbox``, for asyncio; every call is awaited.

    ::

        async with AsyncSandbox.create(ttl_seconds=600) as sandbox:
            print((await sandbox.exec("echo hello")).stdout)

    Cancelling a call closes its connection. A command goes on in the sandbox all the same: give
    it ``timeout_seconds``. A create or fork that is cancelled is undone first, so that nothing is
    left behind, and a delete is carried out to its end: in tasks of their own, so that a cancel
    scope of anyio does not reach them. Callbacks may be coroutine functions.
    """

    def __new__(  # pyright: ignore[reportInconsistentConstructor]
        cls, *_: object, **__: object
    ) -> AsyncSandbox:
        raise TypeError(
            "an AsyncSandbox is made by `await AsyncSandbox.create(...)`, "
            "or by `async with AsyncSandbox.create(...) as sandbox`"
        )

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
        client: AsyncClient | None = None,
    ) -> Making[AsyncSandbox]:
        """Creates one; ``Sandbox`` says what the arguments mean."""
        session = async_session_of(client, api_url, api_key)
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

        async def make() -> AsyncSandbox:
            create = _making.create(wish)
            return cls.of(session, await run_and_undo(session, create, _delete_one))

        return Making(make())

    @classmethod
    def of(cls, session: AsyncSession, info: SandboxInfo) -> AsyncSandbox:
        """A handle of a sandbox that exists, without asking the server."""
        sandbox = object.__new__(cls)
        AsyncSandboxParts.__init__(sandbox, session, session.settings, info)
        return sandbox

    @classmethod
    @known_keywords
    async def connect(
        cls,
        sandbox_id: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: AsyncClient | None = None,
    ) -> AsyncSandbox:
        """The sandbox of that id or name. As any other it is deleted at the end of ``async with``,
        unless ``detach`` was called.
        """
        session = async_session_of(client, api_url, api_key)
        return cls.of(session, await session.run(_living.get_sandbox(sandbox_id)))

    @classmethod
    @known_keywords
    async def get_or_create(
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
        client: AsyncClient | None = None,
    ) -> AsyncSandbox:
        """As ``Sandbox.get_or_create``."""
        session = async_session_of(client, api_url, api_key)
        try:
            return cls.of(session, await session.run(_living.get_sandbox(name)))
        except NotFound:
            pass
        try:
            return await cls.create(
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
            return cls.of(session, await session.run(_living.get_sandbox(name)))

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
        client: AsyncClient | None = None,
    ) -> AsyncIterator[AsyncSandbox]:
        """The sandboxes of the project, or those that have all of this, oldest first.

        They are read page by page: ``async for sandbox in AsyncSandbox.list()``.
        """
        session = async_session_of(client, api_url, api_key)
        listing = _living.Listing(template, status, metadata)

        async def found() -> AsyncIterator[AsyncSandbox]:
            while (page := await session.run(listing.next_page())) is not None:
                for info in page:
                    yield cls.of(session, info)

        return found()

    @property
    def filesystem(self) -> AsyncFilesystem:
        """Its files."""
        return AsyncFilesystem(self._session, self.id)

    @property
    def files(self) -> AsyncFilesystem:
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
    ) -> Making[AsyncSandbox]: ...

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
    ) -> Making[AsyncChildren[AsyncSandbox]]: ...

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
    ) -> Making[AsyncSandbox] | Making[AsyncChildren[AsyncSandbox]]:
        """A child that continues from this moment, memory included; with ``count`` a list of them.

        They are deleted at the end of ``async with sandbox.fork(3) as children``. When one cannot
        be made, those that were are deleted and ``ForkFailed`` is raised.

        - ``partial``: gives those that could be made; ``failures`` says why the others were not.
        - ``ttl_seconds``, ``metadata``: by default those of this sandbox.
        - ``env``: in place of its environment variables.
        - ``network``, ``egress_allowlist``: by default what this one may reach, and never more.
        - ``persistent``, ``idle_seconds``, ``on_timeout``: as for a create, not inherited.
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
        if count is None:
            return Making(self._first(fork))
        return Making(self._children(fork))

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
    ) -> Making[AsyncChildren[AsyncSandbox]]:
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
        return Making(self._children(fork))

    async def _first(self, fork: Operation[_making.Forked]) -> AsyncSandbox:
        return (await self._children(fork))[0]

    async def _children(self, fork: Operation[_making.Forked]) -> AsyncChildren[AsyncSandbox]:
        made = await run_and_undo(self._session, fork, lambda made: _delete_all(made.children))
        children = [AsyncSandbox.of(self._session, info) for info in made.children]
        return AsyncChildren(self._session, children, made.failures)

    @known_keywords
    async def promote(self, *, keep_siblings: bool = False, tree_id: str | None = None) -> Promoted:
        """Keeps this child of a fork and deletes the others, unless ``keep_siblings``.

        The source is never deleted.
        """
        return await self._session.run(_living.promote(self.id, not keep_siblings, tree_id))

    @known_keywords
    async def explore(
        self,
        candidates: Sequence[Command | Callable[[AsyncSandbox], Any]],
        score: Score | None = None,
        *,
        stop_at: float | None = None,
        timeout_seconds: float | None = None,
        max_parallel: int = 4,
        ttl_seconds: int | None = None,
    ) -> Exploration[AsyncSandbox]:
        """Tries each candidate in a fork of its own, keeps the best and deletes the rest.

        The first of equals wins::

            found = await sandbox.explore(["make a && make test", "make b && make test"])
            if found.best and found.best.score:
                await found.winner.exec("make install")

        - ``candidates``: commands, or (coroutine) functions that are given the child.
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
            lambda info: AsyncSandbox.of(self._session, info),
        )
        found = await run_and_undo(
            self._session,
            explore(self._info, wish),
            lambda made: _delete_all([] if made.winner is None else [made.winner]),
        )
        winner = None if found.winner is None else AsyncSandbox.of(self._session, found.winner)
        return Exploration(winner, found.best, found.attempts)

    @known_keywords
    async def snapshot(
        self, name: str | None = None, retain_seconds: int | None = None
    ) -> AsyncSnapshot:
        """Keeps this moment; the sandbox goes on."""
        info = await self._session.run(_making.take_snapshot(self.id, name, retain_seconds))
        return AsyncSnapshot(self._session, self._settings, info)

    async def delete(self) -> None:
        """Deletes it. Repeating that is fine."""
        await run_to_end(self._session, _living.delete_sandbox(self.id))
        self._is_deleted = True

    async def kill(self) -> None:
        """The same as ``delete``."""
        await self.delete()

    async def close(self) -> None:
        """What the end of ``with`` does: deletes it, unless it is persistent or detached."""
        if self.is_held:
            await self.delete()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            # Connections that stay open until the loop is gone would be complained about.
            self._session.close_idle()


def _delete_one(made: SandboxInfo) -> Operation[None]:
    return _living.delete_sandbox(made.id)


def _delete_all(made: list[SandboxInfo]) -> Operation[None]:
    return _living.delete_sandboxes([one.id for one in made])


async def async_templates(
    *,
    api_url: str | None = None,
    api_key: str | None = None,
    client: AsyncClient | None = None,
) -> list[TemplateInfo]:
    """What sandboxes can be created from, and how far a bake is."""
    return await async_session_of(client, api_url, api_key).run(_living.list_templates())


async def async_me(
    *,
    api_url: str | None = None,
    api_key: str | None = None,
    client: AsyncClient | None = None,
) -> Me:
    """Whose key this is."""
    return await async_session_of(client, api_url, api_key).run(_living.me())
