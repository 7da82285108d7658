"""What both transports send with every request, and how both set up their sockets."""

from __future__ import annotations

import contextlib
import platform
import socket

from ._settings import Settings
from ._version import VERSION

CONNECT_SECONDS = 10.0
# Bodies are sent in pieces of this size.
PIECE_BYTES = 64 << 10
IDLE_MAX = 16
# Well below the time after which servers and proxies drop a silent connection.
IDLE_SECONDS = 20.0
# A peer that went away without a word is noticed after this much silence.
KEEP_ALIVE_AFTER_SECONDS = 30
UNACKNOWLEDGED_MILLIS = 60_000


def default_headers(settings: Settings) -> dict[str, str]:
    headers = {
        "User-Agent": f"dayfly-python/{VERSION} python/{platform.python_version()}",
        "Accept": "*/*",
        # A stream that is compressed on its way comes in lumps.
        "Accept-Encoding": "identity",
    }
    if settings.key is not None:
        headers["Authorization"] = f"Bearer {settings.key}"
    return headers


def tune_socket(found: socket.socket) -> None:
    """A command may be silent for hours; the connection has to notice by itself when it dies."""
    wishes = [
        (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", KEEP_ALIVE_AFTER_SECONDS),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", UNACKNOWLEDGED_MILLIS),
    ]
    for level, name, value in wishes:
        option: int | None = getattr(socket, name, None)
        # Not every system has every option, and none is worth a failure.
        if option is not None:
            with contextlib.suppress(OSError):
                found.setsockopt(level, option, value)
