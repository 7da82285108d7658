"""What the server advises, in the words of somebody who writes Python.

Every hint of the server has a code. Its own words name REST calls; here each code has words that
name calls of this package. A code that is not known here is told as the server words it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

GONE = "the sandbox is gone: it was deleted, or its time to live (ttl_seconds) was over"
NO_KEY = "set DAYFLY_API_KEY, give api_key=..., or log in with `dayfly login`"

# By the code of the hint; `{name}` is a parameter that comes with it.
WORDS = {
    "send_key": NO_KEY,
    "key_permissions": "dayfly.me() says what this key may be used for",
    "key_scopes": "dayfly.me() says which scopes this key has",
    "quota": "delete what is not needed, or ask the operator for more; "
    "`dayfly project usage` shows it",
    "server_health": "ask again; if it stays so, the server's operator has to look (/health)",
    "metadata_example": 'such as metadata={"task": "7"}',
    "new_idempotency_key": "call it again: every call has a key of its own",
    "template_failed": "dayfly.templates() says why: `detail` of {template}",
    "grow_volume": 'Volume.get("{volume}").grow(size_gb=...) makes it larger',
    "output_kept": 'its output is kept: sandbox.process("{exec_id}").output()',
    "network_denied": "the network policy of this sandbox denied {denied}; "
    'sandbox.network.allow("{first}") lets it through',
    "network_changed": "look at sandbox.network.get(), and call it again if it is still wanted",
    "network_not_widened": "call it again; sandbox.network.get() shows what holds",
    "nothing_listens": "start the service; sandbox.ports() says what listens, and "
    "sandbox.wait_for_port(port) waits for it",
    "port_timeout": "sandbox.ports() says what listens, and process.output() why it does not",
}
# Codes whose words of the server name no REST call, and are told as they are.
FITTING = frozenset(
    {
        "context_busy",
        "context_restarted",
        "environment_of_sandbox",
        "fork_wider",
        "health_remedy",
        "key_ended",
        "known_names",
        "make_room",
        "no_memory_left",
        "no_names",
        "out_of_memory",
        "port_closed",
        "promote_child",
        "revoke_file_links",
        "revoke_keys",
        "revoke_port_links",
        "sandbox_name_taken",
        "sandbox_status",
        "silent_code",
        "silent_command",
        "smaller_volume",
        "snapshot_corrupt",
        "snapshot_name_taken",
        "snapshot_unfit",
        "state_lost",
        "template_baking",
        "time_example",
        "tree_of_child",
        "volume_users",
    }
)
_PARAMETER = re.compile(r"\{([a-z_]+)\}")


def worded(fields: Mapping[str, Any], error_code: str = "") -> str | None:
    """The hint of a response or an event, for a caller of this package."""
    hint, code = fields.get("hint"), fields.get("hint_code")
    told = hint if isinstance(hint, str) else None
    if isinstance(code, str) and (words := WORDS.get(code)):
        return _filled(words, fields.get("hint_parameters")) or told
    # A key that is not known comes without a hint, and an older server has no codes.
    return NO_KEY if error_code == "unauthorized" and code is None else told


def _filled(words: str, parameters: object) -> str | None:
    """Nothing when the server did not send what the words need."""
    given = cast("dict[str, Any]", parameters) if isinstance(parameters, dict) else {}
    if not all(name in given for name in _PARAMETER.findall(words)):
        return None
    return _PARAMETER.sub(lambda found: str(given[found[1]]), words)


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
