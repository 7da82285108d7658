"""Where the server is and which key it gets.

The first that says something wins: arguments, then ``DAYFLY_API_URL`` and ``DAYFLY_API_KEY``, then
the current context of the context file that the ``dayfly`` command uses, then what a daemon on this
host has written for its group, then the default address. A key that was found goes to the address
that it was found with and to no other.
"""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from .errors import InvalidSettings

URL_DEFAULT = "http://127.0.0.1:7070"
# Where a daemon of this host writes how its group (`local_group`) reaches it.
LOCAL_ACCESS = Path("/run/dayfly/local.json")
# Permission bits of everybody but the owner.
OTHERS = 0o077


@dataclass(frozen=True)
class Settings:
    """An address and a key. The key is in no text that this prints."""

    url: str
    key: str | None = field(repr=False, default=None)

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or (443 if self.scheme == "https" else 80)

    @property
    def path(self) -> str:
        """What stands before ``/v1``, for a server behind a prefix."""
        return urlsplit(self.url).path.rstrip("/")


def load_settings(
    api_url: str | None = None,
    api_key: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings from arguments, the environment and files."""
    environment = os.environ if environment is None else environment
    if api_key is not None and not api_key.strip():
        # Often a variable that was not set. Another key in its place could be anybody's.
        raise InvalidSettings(
            "api_key= is empty", hint="leave it out, or None, to use DAYFLY_API_KEY"
        )
    if api_url is not None and not api_url.strip():
        raise InvalidSettings(
            "api_url= is empty", hint="leave it out, or None, to use DAYFLY_API_URL"
        )
    found_url, found_key = None, None
    given_url = api_url or environment.get("DAYFLY_API_URL") or None
    given_key = api_key or environment.get("DAYFLY_API_KEY") or None
    if given_url is None or given_key is None:
        found_url, found_key = _current_context(environment)
    if found_url is None and given_key is None:
        found_url, found_key = _local_access()
    url = (given_url or found_url or URL_DEFAULT).rstrip("/")
    key = given_key
    if key is None and found_url is not None and found_url.rstrip("/") == url:
        key = found_key
    _check(url, key)
    return Settings(url, key.strip() if key else None)


def _check(url: str, key: str | None) -> None:
    parts = urlsplit("")
    is_usable = False
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        # Asking for it refuses what is not a number.
        _ = parts.port
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not is_usable:
        raise InvalidSettings(
            f"{url!r} is not an http or https address", hint=f"it looks like {URL_DEFAULT}"
        )
    if parts.query or parts.fragment or parts.username is not None:
        # Not quoted: it may hold a password.
        raise InvalidSettings(
            "the address of the server has a query, a fragment or a user in it",
            hint="api_key= and DAYFLY_API_KEY are for the key",
        )
    if parts.path.endswith("/v1"):
        raise InvalidSettings(
            f"the address {url} ends in /v1, which this client adds by itself",
            hint=f"use {url.removesuffix('/v1')}",
        )
    if key is not None and (not key.strip().isascii() or not key.strip().isprintable()):
        raise InvalidSettings("the API key holds characters that no key has")


def _current_context(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    path = _context_path(environment)
    if path is None:
        return None, None
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        if environment.get("DAYFLY_CONFIG"):
            raise InvalidSettings(f"DAYFLY_CONFIG names {path}, which does not exist") from None
        return None, None
    except (OSError, ValueError) as error:
        # The parser's own text quotes the line, which may hold a key.
        raise InvalidSettings(f"cannot read {path} ({type(error).__name__})") from None
    contexts = _table(content.get("contexts"))
    name: object = content.get("current")
    if not isinstance(name, str):
        return None, None
    context = _table(contexts.get(name))
    url: object = context.get("url")
    if not isinstance(url, str):
        raise InvalidSettings(f"no context {name!r} in {path}")
    if any("key" in _table(value) for value in contexts.values()):
        _check_mode(path, mode)
    return url, _context_key(context, path, environment)


def _context_key(context: dict[str, Any], path: Path, environment: Mapping[str, str]) -> str | None:
    key: object = context.get("key")
    if isinstance(key, str):
        return key
    key_file: object = context.get("key_file")
    if not isinstance(key_file, str):
        return None
    home = environment.get("HOME")
    if key_file.startswith("~/") and home:
        target = Path(home) / key_file[2:]
    else:
        target = path.parent / key_file
    try:
        with open(target, encoding="utf-8") as file:
            _check_mode(target, os.fstat(file.fileno()).st_mode)
            return file.read().strip()
    except (OSError, ValueError) as error:
        raise InvalidSettings(f"cannot read {target} ({type(error).__name__})") from None


def _local_access() -> tuple[str | None, str | None]:
    """What a daemon on this host offers to this user, if it does."""
    try:
        text = LOCAL_ACCESS.read_text(encoding="utf-8")
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        # Not there, or not for this user: neither is a mistake.
        return None, None
    except (OSError, ValueError) as error:
        raise InvalidSettings(f"cannot read {LOCAL_ACCESS} ({type(error).__name__})") from None
    content: object = None
    # The parser's words are kept out: they may quote the key.
    with contextlib.suppress(ValueError):
        content = json.loads(text)
    found = _table(content)
    url, key = found.get("url"), found.get("key")
    if not isinstance(url, str) or not isinstance(key, str):
        raise InvalidSettings(f"{LOCAL_ACCESS} is not what a dayflyd of this version writes")
    return url, key


def _check_mode(path: Path, mode: int) -> None:
    # On Windows the bits say nothing about who can read.
    if os.name == "posix" and mode & OTHERS:
        raise InvalidSettings(
            f"{path} holds a key and others can read it", hint=f"chmod 600 {path}"
        )


def _context_path(environment: Mapping[str, str]) -> Path | None:
    if chosen := environment.get("DAYFLY_CONFIG"):
        return Path(chosen)
    if directory := environment.get("XDG_CONFIG_HOME"):
        return Path(directory) / "dayfly" / "config.toml"
    if home := environment.get("HOME"):
        return Path(home) / ".config" / "dayfly" / "config.toml"
    return None


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
