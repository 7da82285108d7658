"""Templates of a project, and building them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _building
from ._building import BuildWish, OnEvent
from ._keywords import known_keywords
from ._options import NetworkMode
from ._template_steps import TemplateSteps
from .builds import TemplateBuild, TemplateVersion
from .client import Client, session_of
from .network import RuleLike


class Template(TemplateSteps):
    """Builds a template of the project, step by step; the server does the work.

    ::

        built = (
            Template.from_image("python:3.12")
            .run("pip install flask")
            .copy("src", "/app")
            .env({"PORT": "8000"})
            .workdir("/app")
            .start("python3 server.py", ready="curl -sf localhost:8000")
            .build("web")
        )
        with Sandbox(template=built) as sandbox:
            print(sandbox.exec("curl -s localhost:8000").stdout)

    Begin with ``from_image``, ``from_template`` or ``from_dockerfile``.
    """

    @known_keywords
    def build(
        self,
        name: str,
        *,
        tag: str | None = None,
        description: str | None = None,
        cpu: int | None = None,
        memory_mb: int | None = None,
        disk_gb: float | None = None,
        target: str | None = None,
        build_args: Mapping[str, str] | None = None,
        network: NetworkMode | Mapping[str, Any] | None = None,
        egress_allowlist: Iterable[RuleLike] | None = None,
        fresh: bool = False,
        on_event: OnEvent | None = None,
        wait: bool = True,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> TemplateBuild:
        """Builds a version of the template ``name`` and has a tag mean it, ``latest`` by default.

        Steps that an earlier build of the project did are not done again. A step that fails is
        ``BuildFailed``. Ctrl-C ends the build; its steps are kept.

        - ``on_event``: called with each ``BuildEvent``; ``on_event=print`` shows them.
        - ``wait``: with ``False`` it is given as it begins; see ``wait_build``.
        - ``cpu``, ``memory_mb``, ``disk_gb``: of the steps and of sandboxes that are made from it.
        - ``network``, ``egress_allowlist``: what steps may reach, as of a sandbox.
        - ``target``, ``build_args``: of the Dockerfile. ``fresh``: does every step.
        """
        session = session_of(client, api_url, api_key)
        wish = BuildWish(
            name,
            self._steps.dockerfile,
            self._steps.files(),
            tag=tag,
            description=description,
            cpu=cpu,
            memory_mb=memory_mb,
            disk_gb=disk_gb,
            target=target,
            build_args=build_args,
            network=network,
            egress_allowlist=egress_allowlist,
            fresh=fresh,
        )
        return session.run(_building.build(wish, on_event, wait=wait))

    @classmethod
    @known_keywords
    def get_build(
        cls,
        build_id: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> TemplateBuild:
        """A build by its id, as it is now."""
        return session_of(client, api_url, api_key).run(_building.get_build(build_id))

    @classmethod
    @known_keywords
    def wait_build(
        cls,
        build_id: str,
        *,
        on_event: OnEvent | None = None,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> TemplateBuild:
        """Waits until a build is done. ``on_event`` is called with its events from the first on."""
        session = session_of(client, api_url, api_key)
        return session.run(_building.wait_build(build_id, on_event))

    @classmethod
    @known_keywords
    def cancel_build(
        cls,
        build_id: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> None:
        """Ends a build. Its steps are kept for the next one."""
        session_of(client, api_url, api_key).run(_building.cancel_build(build_id))

    @classmethod
    @known_keywords
    def versions(
        cls,
        name: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> list[TemplateVersion]:
        """All versions of a template of the project, newest first."""
        return session_of(client, api_url, api_key).run(_building.list_versions(name))

    @classmethod
    @known_keywords
    def get(
        cls,
        name: str,
        version: str = "latest",
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> TemplateVersion:
        """One version of a template, by its id or by a tag."""
        return session_of(client, api_url, api_key).run(_building.get_version(name, version))

    @classmethod
    @known_keywords
    def tag(
        cls,
        name: str,
        version: str,
        tag: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> TemplateVersion:
        """Lets a tag mean a version, to promote it or to go back. Sandboxes stay as they are."""
        return session_of(client, api_url, api_key).run(_building.set_tag(name, version, tag))

    @classmethod
    @known_keywords
    def untag(
        cls,
        name: str,
        tag: str,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> None:
        """Deletes a tag; the version stays."""
        session_of(client, api_url, api_key).run(_building.delete_tag(name, tag))

    @classmethod
    @known_keywords
    def delete(
        cls,
        name: str,
        version: str | None = None,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        client: Client | None = None,
    ) -> None:
        """Deletes a template with all its versions and tags, or one version that no tag means.

        Sandboxes and snapshots that were made from it stay.
        """
        session_of(client, api_url, api_key).run(_building.delete_template(name, version))
