"""Lines of a Dockerfile that mean exactly the values that they are made of."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence

from ._checks import checked_texts

# What no part of a Dockerfile expands, unquotes or splits.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPLATE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OWNER = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?")
_DOCUMENT = "END"
_READY_FLAGS = "--interval=1s --start-period=60s"
_ESCAPE_DIRECTIVE = re.compile(r"(\ufeff?#[^\n]*\n)*\ufeff?#\s*escape\s*=\s*`", re.IGNORECASE)

CommandLike = str | Sequence[str]


def from_image(image: str) -> str:
    """``FROM`` an image of a registry, never a template that has the same name."""
    one_line("the image", image)
    if not _PLAIN.fullmatch(image) or image.startswith("-"):
        raise ValueError(f"{image!r} is not the name of an image")
    is_word = not any(mark in image for mark in "/:@")
    return f"FROM {image}:latest" if is_word else f"FROM {image}"


def from_template(name: str) -> str:
    """``FROM`` a template of the server."""
    if not _TEMPLATE_NAME.fullmatch(name):
        # As a FROM it would be the image of a registry.
        raise ValueError(f"{name!r} is not the name of a template of the server, as `base` is")
    return f"FROM {name}"


def run(command: CommandLike) -> str:
    if not isinstance(command, str):
        return f"RUN {words('run', command)}"
    if _fits_on_a_line(command):
        return f"RUN {command}"
    if not command.strip():
        raise ValueError("run needs a command")
    lines = command.split("\n")
    marker, number = _DOCUMENT, 0
    while marker in (line.rstrip("\r") for line in lines):
        number += 1
        marker = f"{_DOCUMENT}{number}"
    end = "" if command.endswith("\n") else "\n"
    return f"RUN <<{marker}\n{_without_nul('run', command)}{end}{marker}"


def copy(sources: Sequence[str], destination: str, owner: str | None, mode: int | None) -> str:
    """``COPY`` of paths below the build context, which are no patterns here."""
    flags = ""
    if owner is not None:
        if not _OWNER.fullmatch(owner):
            raise ValueError(f"{owner!r} is not a user, or a user and a group, as `agent:agent`")
        flags += f"--chown={owner} "
    if mode is not None:
        if not 0 <= mode <= 0o7777:
            raise ValueError(f"{mode!r} is not a mode, as 0o755 is")
        flags += f"--chmod={mode:o} "
    if not destination:
        raise ValueError("copy needs a destination")
    if len(sources) > 1 and not destination.endswith("/"):
        raise ValueError(f"{destination!r} is to hold several files: end it with a slash")
    # Variables and quotes are looked for in the words of the list as well.
    given = [*(_no_pattern(source) for source in sources), destination]
    escaped = [re.sub(r"""([\\'"$])""", r"\\\1", one) for one in given]
    return f"COPY {flags}{words('copy', escaped)}"


def environment(values: Mapping[str, str]) -> str:
    checked = checked_texts("env", values) or {}
    if not checked:
        raise ValueError("env needs a variable")
    pairs: list[str] = []
    for name, value in checked.items():
        if not _VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of an environment variable")
        if any(one in value for one in "\n\r\0"):
            # Values are often secrets, and errors are logged.
            raise ValueError(
                f"env[{name!r}] has more than one line, which a template cannot keep;"
                " set it when a sandbox is created"
            )
        pairs.append(f"{name}={_quoted(value)}")
    return f"ENV {' '.join(pairs)}"


def directory(path: str) -> str:
    return f"WORKDIR {_literal('workdir', path)}"


def user(name: str) -> str:
    return f"USER {_literal('user', name)}"


def start(command: CommandLike, ready: CommandLike | None) -> str:
    lines = [f"CMD {_command('start', command)}"]
    if ready is not None:
        lines.insert(0, f"HEALTHCHECK {_READY_FLAGS} CMD {_command('ready', ready)}")
    return "\n".join(lines)


def words(what: str, given: Sequence[str]) -> str:
    """The form of a command that no shell reads."""
    texts: list[object] = [*given]
    if not texts or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"{what} takes a text or a list of texts")
    text = json.dumps(texts, ensure_ascii=False)
    return _without_nul(what, text, written="\\u0000")


def one_line(what: str, text: str) -> str:
    if not text or any(one in text for one in "\n\r\0"):
        raise ValueError(f"{what} is one line, not {text!r}")
    return text


def escapes_otherwise(dockerfile: str) -> bool:
    """Whether a Dockerfile has another escape character than the lines that are made here."""
    return _ESCAPE_DIRECTIVE.match(dockerfile) is not None


def takes_files(dockerfile: str) -> bool:
    """Whether a Dockerfile may need files of its build context."""
    lines = (line.strip().lower() for line in dockerfile.splitlines())
    return any(
        (line.startswith(("copy", "add")) and "--from=" not in line) or "--mount" in line
        for line in lines
    )


def read_dockerfile(text_or_path: str | os.PathLike[str]) -> str:
    """A Dockerfile by its path, or one that is given as a text: one that begins with ``FROM``, or
    has more than one line."""
    if isinstance(text_or_path, str):
        first = text_or_path.lstrip().upper()
        if "\n" in text_or_path or first.startswith("FROM "):
            return text_or_path
    with open(text_or_path, encoding="utf-8") as file:
        return file.read()


def _command(what: str, command: CommandLike) -> str:
    if not isinstance(command, str):
        return words(what, command)
    if _fits_on_a_line(command) and not command.startswith(("[", "--")):
        return command
    if not command.strip():
        raise ValueError(f"{what} needs a command")
    return words(what, ["/bin/sh", "-c", command])


def _fits_on_a_line(command: str) -> bool:
    """Whether a command stays what it is behind RUN: one line, that no other continues, and that
    announces no document."""
    is_marked = command.endswith("\\") or "<<" in command
    is_one = not any(mark in command for mark in "\n\r\0")
    return bool(command) and is_one and command == command.strip() and not is_marked


def _literal(what: str, text: str) -> str:
    one_line(what, text)
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    escaped = re.sub(r'(["\\$])', r"\\\1", text)
    return f'"{escaped}"'


def _no_pattern(path: str) -> str:
    """A path as a pattern that matches it alone."""
    if not any(mark in path for mark in "*?["):
        return path
    return re.sub(r"[*?\[\\]", lambda mark: f"[{_class(mark.group())}]", path)


def _class(character: str) -> str:
    return "\\\\" if character == "\\" else character


def _without_nul(what: str, text: str, written: str = "\0") -> str:
    if written in text:
        raise ValueError(f"{what} has a NUL character in it")
    return text
