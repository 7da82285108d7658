"""A proxy that opens tunnels: whatever host is asked for, it connects to one server."""

from __future__ import annotations

import contextlib
import socket
import threading


class Tunnel:
    """Answers ``CONNECT`` with ``status``, and with 200 passes bytes on to ``port``."""

    def __init__(self, port: int, status: int = 200) -> None:
        self._port = port
        self._status = status
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.heads: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, credentials: str = "") -> str:
        return f"http://{credentials}127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096) or b"\r\n\r\n"
        self.heads.append(head.decode("latin-1"))
        client.sendall(f"HTTP/1.1 {self._status} Said So\r\n\r\n".encode())
        if self._status != 200:
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self._port))
        threading.Thread(target=copy, args=(client, server), daemon=True).start()
        copy(server, client)


def copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
