"""What the server advises, in the words of somebody who writes Python.

Its hints name REST calls. Those that are known are put into calls of this package; any other is
given as it is.
"""

from __future__ import annotations

import re

GONE = "the sandbox is gone: it was deleted, or its time to live (ttl_seconds) was over"
NO_KEY = "set DAYFLY_API_KEY, give api_key=..., or log in with `dayfly login`"

# By the code of an error: it says all that there is to say, whatever the server advises.
_BY_CODE = {
    "unauthorized": NO_KEY,
    "idempotency_conflict": "call it again: every call has a key of its own",
    "store_unavailable": "ask again; if it stays so, the server's operator has to look (/health)",
    "audit_unavailable": "ask again; if it stays so, the server's operator has to look (/health)",
    "nothing_listens": "start the service; sandbox.ports() says what listens, and "
    "sandbox.wait_for_port(port) waits for it",
}
_WORDS = [
    (r"GET /v1/me says", "dayfly.me() says"),
    (r"GET /v1/usage shows it", "`dayfly project usage` shows it"),
    (r"GET /v1/templates/(\S+) says why", r"dayfly.templates() says why: `detail` of \1"),
    (
        r"PATCH /v1/volumes/\S+ makes it larger",
        "Volume.get(name).grow(size_gb=...) makes it larger",
    ),
    (r"GET processes/(\S+?)/output", r'sandbox.process("\1").output()'),
    (
        r"`dayfly net allow \S+ (\S+)` or POST \S+/network/allow lets it through",
        r'sandbox.network.allow("\1") lets it through',
    ),
    (r"look at GET \S+/network, and send the change", "look at sandbox.network.get(), and call it"),
    (r"send it again; GET \S+/network shows", "call it again; sandbox.network.get() shows"),
    (r"look at GET \S+/ports for what listens", "sandbox.ports() says what listens"),
    (r"GET /health says what the operator can do", "the server's operator has to look (/health)"),
]


def worded(hint: str | None, code: str = "") -> str | None:
    """A hint of the server, for a caller of this package."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if hint is None:
        return None
    for pattern, words in _WORDS:
        hint = re.sub(pattern, words, hint)
    return hint


def memory_hint(
    reason: str, limits_hit: list[str], limit_mb: int | None, total_mb: int
) -> str | None:
    """Why a command that says nothing was killed, with the size when it is known."""
    if reason == "out_of_memory":
        size = f" of {total_mb} MiB" if total_mb else ""
        return (
            f"the sandbox's memory{size} was used up, and the command was killed; "
            "use less of it at once, or a template with more memory"
        )
    if reason == "limit_exceeded" and "memory" in limits_hit:
        size = f" of {limit_mb} MiB" if limit_mb else ""
        return f"it was killed over its own limit{size} (memory_mb)"
    return None
