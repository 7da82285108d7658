"""The files that a build takes along, and the body that brings them to the server."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ._ignoring import IgnoreRules

# What the server takes. More is a mistake most of the time: a home directory, or packages.
CONTEXT_FILES_MAX = 10_000
CONTEXT_BYTES_MAX = 256 << 20
IGNORE_FILE = ".dockerignore"
MODES_FIELD = "context.modes"
MODE_DEFAULT = 0o644
_LINE_END = b"\r\n"
# In the header of a part, they would be read as something else.
_UNSENT = frozenset('"\\\x7f').union(map(chr, range(32)))


@dataclass(frozen=True)
class ContextFile:
    """A file, and its path below the build context, with slashes."""

    path: str
    local: Path
    size: int
    mode: int


def relative_source(context: Path, source: str | os.PathLike[str]) -> str:
    """A source of ``copy`` as a path below the build context; that itself is ``.``."""
    root = os.path.abspath(context)
    whole = os.path.normpath(os.path.join(root, os.fspath(source)))
    try:
        found = os.path.relpath(whole, root)
    except ValueError:
        # On another drive of Windows.
        found = os.pardir
    if found == os.pardir or found.startswith(os.pardir + os.sep):
        name = os.fspath(source)
        raise ValueError(f"{name!r} is outside of {root}; context= names what is copied from")
    return found.replace(os.sep, "/")


def context_files(context: Path, sources: Sequence[str]) -> list[ContextFile]:
    """The files of sources that ``.dockerignore`` does not hide, by path. Links are followed, and
    must not lead out of the build context."""
    if not sources:
        return []
    gathering = _Gathering(context)
    for source in sources:
        gathering.add(source)
    return gathering.finish()


class _Gathering:
    def __init__(self, context: Path) -> None:
        self._context = context
        self._root = Path(os.path.realpath(context))
        self._found: dict[str, ContextFile] = {}
        self._bytes = 0
        ignore_file = context / IGNORE_FILE
        has_rules = ignore_file.is_file()
        self._rules = IgnoreRules(ignore_file.read_text(encoding="utf-8") if has_rules else "")
        if has_rules:
            # The server reads it as well, and knows all of its rules.
            self._take(IGNORE_FILE, ignore_file)

    def add(self, source: str) -> None:
        path = "" if source == "." else source
        local = self._context / source
        if not os.path.lexists(local):
            raise FileNotFoundError(f"{source!r} is not in {os.path.abspath(self._context)}")
        self._walk(path, local, ())
        is_some = any(f"{one}/".startswith(f"{path}/") or not path for one in self._found)
        if not is_some:
            raise ValueError(f"{source!r} has no files, or {IGNORE_FILE} hides all of them")

    def finish(self) -> list[ContextFile]:
        return [self._found[path] for path in sorted(self._found)]

    def _walk(self, path: str, local: Path, above: tuple[str, ...]) -> None:
        is_hidden = bool(path) and self._rules.hides(path)
        if is_hidden and not self._rules.shows_any:
            return
        real = self._inside(path, local)
        if not os.path.isdir(real):
            if not is_hidden:
                self._take(path, local)
            return
        if real in above:
            raise ValueError(f"the link {path!r} leads to a directory that it is in")
        for name in sorted(os.listdir(real)):
            below = f"{path}/{name}" if path else name
            self._walk(below, local / name, (*above, real))

    def _inside(self, path: str, local: Path) -> str:
        real = os.path.realpath(local)
        if not Path(real).is_relative_to(self._root):
            raise ValueError(f"the link {path!r} leads out of the build context, to {real}")
        if not os.path.exists(real):
            raise ValueError(f"the link {path!r} leads nowhere")
        return real

    def _take(self, path: str, local: Path) -> None:
        if path in self._found:
            return
        if not local.is_file():
            raise ValueError(f"{path!r} is neither a file nor a directory")
        if not _UNSENT.isdisjoint(path) or path == MODES_FIELD:
            raise ValueError(f"{path!r} has a name that cannot be sent")
        details = local.stat()
        mode = details.st_mode & 0o7777 if os.name == "posix" else MODE_DEFAULT
        self._found[path] = ContextFile(path, local, details.st_size, mode)
        self._bytes += details.st_size
        if len(self._found) > CONTEXT_FILES_MAX:
            raise ValueError(
                f"the build would send more than {CONTEXT_FILES_MAX} files;"
                f" copy less, or leave some out by {IGNORE_FILE}"
            )
        if self._bytes > CONTEXT_BYTES_MAX:
            raise ValueError(
                f"the build would send more than {CONTEXT_BYTES_MAX >> 20} MiB;"
                f" copy less, or leave some out by {IGNORE_FILE}"
            )


@dataclass(frozen=True)
class PackedForm:
    """A form with files, in a file that is gone when nobody needs it."""

    body: BinaryIO
    length: int
    content_type: str


@contextlib.contextmanager
def packed_form(fields: Mapping[str, str], files: Iterable[ContextFile]) -> Generator[PackedForm]:
    """A form as ``multipart/form-data``, on the disk: it may be larger than what memory has."""
    taken = list(files)
    modes = {one.path: f"{one.mode:o}" for one in taken if one.mode != MODE_DEFAULT}
    texts = dict(fields)
    if modes:
        texts[MODES_FIELD] = json.dumps(modes)
    # So long that no file has it in it.
    boundary = f"dayfly-{secrets.token_hex(24)}"
    with tempfile.TemporaryFile() as packed:
        for name, text in texts.items():
            packed.write(_part_header(boundary, f'name="{name}"'))
            packed.write(text.encode() + _LINE_END)
        for one in taken:
            names = f'name="{one.path}"; filename="{one.path}"'
            packed.write(_part_header(boundary, names, "application/octet-stream"))
            with open(one.local, "rb") as file:
                shutil.copyfileobj(file, packed)
            packed.write(_LINE_END)
        packed.write(f"--{boundary}--\r\n".encode())
        yield PackedForm(packed, packed.tell(), f"multipart/form-data; boundary={boundary}")


def _part_header(boundary: str, names: str, kind: str | None = None) -> bytes:
    lines = [f"--{boundary}", f"Content-Disposition: form-data; {names}"]
    if kind is not None:
        lines.append(f"Content-Type: {kind}")
    return "\r\n".join([*lines, "", ""]).encode()
