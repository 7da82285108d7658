"""What the blocking and the asyncio builder of templates have in common: the steps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from . import _dockerfile
from ._build_context import ContextFile, context_files, relative_source
from ._dockerfile import CommandLike
from ._keywords import known_keywords

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Steps:
    """A Dockerfile, and which files of the build context it takes."""

    dockerfile: str
    context: Path
    sources: tuple[str, ...] = ()

    def with_line(self, line: str, sources: Sequence[str] = ()) -> Steps:
        if _dockerfile.escapes_otherwise(self.dockerfile):
            raise ValueError("steps cannot be added to a Dockerfile with an escape directive")
        end = "" if self.dockerfile.endswith("\n") else "\n"
        text = f"{self.dockerfile}{end}{line}\n"
        return replace(self, dockerfile=text, sources=(*self.sources, *sources))

    def files(self) -> list[ContextFile]:
        return context_files(self.context, self.sources)


class TemplateSteps:
    """The steps of a template. Each call gives a new one with a step more; nothing is built before
    ``build``."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    @classmethod
    @known_keywords
    def from_image(cls, image: str, *, context: PathLike = ".") -> Self:
        """Begins with the image of a registry, by tag or digest, as ``python:3.12``.

        ``context``: the directory that ``copy`` takes files from.
        """
        return cls(Steps(f"{_dockerfile.from_image(image)}\n", Path(context)))

    @classmethod
    @known_keywords
    def from_template(cls, name: str, *, context: PathLike = ".") -> Self:
        """Begins with a template of the server, as ``base``."""
        return cls(Steps(f"{_dockerfile.from_template(name)}\n", Path(context)))

    @classmethod
    @known_keywords
    def from_dockerfile(cls, text_or_path: PathLike, *, context: PathLike = ".") -> Self:
        """Begins with a Dockerfile: its path, or its text. Further steps come behind it.

        ``context``: the directory that its ``COPY`` takes files from. If there is one, all of the
        directory is sent, but for what a ``.dockerignore`` there hides.
        """
        text = _dockerfile.read_dockerfile(text_or_path)
        sources = (".",) if _dockerfile.takes_files(text) else ()
        return cls(Steps(text, Path(context), sources))

    def run(self, command: CommandLike) -> Self:
        """Runs a command when the template is built: a text for the shell, or a list of words.

        Of several lines only the status of the last counts, unless the first is ``set -e``.
        """
        return self._with(_dockerfile.run(command))

    @known_keywords
    def copy(
        self,
        source: PathLike | Sequence[PathLike],
        destination: str,
        *,
        owner: str | None = None,
        mode: int | None = None,
    ) -> Self:
        """Copies files or directories of the build context.

        Of a directory the contents are copied, as with ``COPY``. A destination that ends with a
        slash is a directory, which several sources need. Links are followed. Without ``owner`` they
        belong to root; without ``mode`` files keep theirs. Directories without files are left out.
        """
        given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        paths = [relative_source(self._steps.context, one) for one in given]
        if not paths:
            raise ValueError("copy needs a source")
        line = _dockerfile.copy(paths, destination, owner, mode)
        return type(self)(self._steps.with_line(line, paths))

    def env(self, variables: Mapping[str, str]) -> Self:
        """Environment variables of the steps below and of every command in its sandboxes. They are
        kept with the template, so none should be a secret."""
        return self._with(_dockerfile.environment(variables))

    def workdir(self, path: str) -> Self:
        """The directory of the steps below and of commands; it is made."""
        return self._with(_dockerfile.directory(path))

    def user(self, name: str) -> Self:
        """The user of the steps below and of commands."""
        return self._with(_dockerfile.user(name))

    @known_keywords
    def start(self, command: CommandLike, *, ready: CommandLike | None = None) -> Self:
        """A command that is started before the template is captured, and goes on in every sandbox.

        ``ready``: a command that succeeds once that is so; the build waits for it.
        """
        return self._with(_dockerfile.start(command, ready))

    @property
    def dockerfile(self) -> str:
        """The steps as the server gets them."""
        return self._steps.dockerfile

    def _with(self, line: str) -> Self:
        return type(self)(self._steps.with_line(line))

    def __repr__(self) -> str:
        first = self.dockerfile.partition("\n")[0]
        return f"<{type(self).__name__} {first}>"
