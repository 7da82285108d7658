"""Requests and answers as plain values, without any input or output."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast
from urllib.parse import quote, urlencode

from .errors import ProtocolError

Json = dict[str, Any]

# How long an answer may take. The server itself gives up earlier.
CALL_SECONDS = 60.0
STATE_SECONDS = 180.0
# Sandboxes that are read at once.
LIST_PAGE_LENGTH = 500
FORK_SECONDS = 360.0

# The alphabet of the server's own ids: no letters that people confuse.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True)
class Request:
    """One request. ``is_repeatable``: sending it twice has the effect of sending it once."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | BinaryIO = b""
    length: int | None = None
    is_repeatable: bool = False
    timeout: float | None = CALL_SECONDS
    # Whoever sends it waits no longer, however patient the client is.
    seconds_max: float | None = None
    # A longer body of a success is refused, before it fills the memory.
    answer_bytes_max: int | None = None

    @property
    def content_length(self) -> int:
        if isinstance(self.body, bytes):
            return len(self.body)
        return self.length or 0


@dataclass(frozen=True)
class Answer:
    """A whole response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    # The address of the server that sent it.
    url: str = ""

    def json(self) -> Json:
        value = self._value()
        if not isinstance(value, dict):
            raise ProtocolError("the response is not a JSON object", status=self.status)
        return cast("Json", value)

    def json_list(self) -> list[Json]:
        value = self._value()
        if not isinstance(value, list):
            raise ProtocolError("the response is not a JSON list", status=self.status)
        return cast("list[Json]", value)

    def _value(self) -> object:
        try:
            value: object = json.loads(self.body)
        except ValueError:
            kind = self.headers.get("content-type") or "no content type"
            raise ProtocolError(
                f"{self.url or 'the server'} responded with {kind} where JSON was expected:"
                " this is no Dayfly server",
                status=self.status,
                hint="is the address right? api_url= or DAYFLY_API_URL gives it",
            ) from None
        return value


def new_id(prefix: str) -> str:
    """An id of our own, so that a request that names it may be repeated."""
    return f"{prefix}-" + "".join(secrets.choice(_ALPHABET) for _ in range(26))


def path_of(*segments: str) -> str:
    """A path below ``/v1``. Every segment is escaped, and none can name another object."""
    for segment in segments:
        if segment in ("", ".", ".."):
            raise ValueError(f"{segment!r} is not a name or an id")
    return "/v1/" + "/".join(quote(segment, safe="") for segment in segments)


def with_query(address: str, /, **query: str | int | bool | None) -> str:
    """A path with those values that are given."""
    pairs = [(name, _query_text(value)) for name, value in query.items() if value is not None]
    return f"{address}?{urlencode(pairs, quote_via=quote)}" if pairs else address


def _query_text(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def without_none(**fields: Any) -> Json:
    """A body of those fields that are given."""
    return {name: value for name, value in fields.items() if value is not None}


def get(path: str, *, timeout: float | None = CALL_SECONDS) -> Request:
    return Request("GET", path, is_repeatable=True, timeout=timeout)


def get_waiting(path: str, wait_seconds: int | None, **query: int | None) -> Request:
    """A request whose response the server may hold back for so long, until there is news."""
    address = with_query(path, **query, wait_seconds=wait_seconds)
    return get(address, timeout=CALL_SECONDS + (wait_seconds or 0))


def delete(path: str) -> Request:
    return Request("DELETE", path, is_repeatable=True)


def send_json(
    method: str,
    path: str,
    body: Json | None = None,
    *,
    is_repeatable: bool = False,
    timeout: float | None = CALL_SECONDS,
) -> Request:
    content = b"" if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    return Request(method, path, headers, content, None, is_repeatable, timeout)


def make(path: str, body: Json, *, timeout: float) -> Request:
    """A request that makes something. Its key lets it be repeated without making two."""
    request = send_json("POST", path, body, is_repeatable=True, timeout=timeout)
    return replace(request, headers={**request.headers, "Idempotency-Key": new_id("key")})
