"""A SOCKS5 proxy: whatever host is asked for, it connects to one server."""

from __future__ import annotations

import contextlib
import socket
import threading

from tunnel import copy


class SocksServer:
    """Without passwords, and for one command, ``CONNECT``."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"socks5://127.0.0.1:{self._listener.getsockname()[1]}"

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
        _, methods = client.recv(2, socket.MSG_WAITALL)
        client.recv(methods, socket.MSG_WAITALL)
        client.sendall(b"\x05\x00")
        *_, kind, length = client.recv(5, socket.MSG_WAITALL)
        assert kind == 3, "the client resolves names itself"
        self.hosts.append(client.recv(length, socket.MSG_WAITALL).decode())
        client.recv(2, socket.MSG_WAITALL)
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        server = socket.create_connection(("127.0.0.1", self._port))
        threading.Thread(target=copy, args=(client, server), daemon=True).start()
        copy(server, client)
