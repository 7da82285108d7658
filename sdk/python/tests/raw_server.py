"""A server that answers with given bytes, for what no well-behaved HTTP server would send."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType


class RawServer:
    """Answers each request with the next of ``answers``, the last of which stays.

    Hangs up after an answer when ``hangs_up``, as servers that give no length do.
    """

    def __init__(
        self,
        *answers: bytes,
        hangs_up: bool = False,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._answers = list(answers)
        self._hangs_up = hangs_up
        self._tls = tls
        self._lock = threading.Lock()
        self.host = f"[{host}]" if ":" in host else host
        self.heads: list[str] = []
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    def __enter__(self) -> RawServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Closing alone does not wake the thread that waits in `accept`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            while self._answer(client) and not self._hangs_up:
                pass
        with contextlib.suppress(OSError):
            client.close()

    def _answer(self, client: socket.socket) -> bool:
        request = b""
        while b"\r\n\r\n" not in request:
            piece = client.recv(65536)
            if not piece:
                return False
            request += piece
        head, _, body = request.partition(b"\r\n\r\n")
        left = _content_length(head) - len(body)
        while left > 0:
            left -= len(client.recv(65536))
        with self._lock:
            self.heads.append(head.decode("latin-1"))
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        client.sendall(answer)
        return True


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
