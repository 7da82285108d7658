"""Stands between a client and the daemon and cuts connections in the middle of answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class CuttingProxy:
    """Passes bytes on. ``cut_after`` bytes of an answer a connection is cut, ``cuts`` times."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.cut_after = 0
        self.cuts = 0
        self.made = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.create_connection(self._target)
        up = threading.Thread(target=self._copy, args=(client, server, False), daemon=True)
        up.start()
        self._copy(server, client, True)

    def _copy(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while piece := source.recv(4096):
                passed += len(piece)
                if is_answer and self.cuts and passed > self.cut_after:
                    self.cuts -= 1
                    self.made += 1
                    break
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
