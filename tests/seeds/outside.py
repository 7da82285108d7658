"""What the sandboxes of these tests may reach, served inside a network namespace of the test's own.

    outside.py DIRECTORY

A name server, and behind TLS a Git repository at https://example.com/repo and the two hosts of the
Python registry with one small package. DIRECTORY gets the repository, `authority.pem` (whom to
trust), `requests` (host and path of each request that came) and, when everything listens, `ready`.
"""

from __future__ import annotations

import os
import pathlib
import socketserver
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from certificates import make_authority
from examples import tiny_package

NAME_SERVER = "9.9.9.9"
# A public address: private ones are never reached, whatever a policy allows.
ADDRESS = "93.184.216.34"
INDEX, FILES, REPOSITORIES = "pypi.org", "files.pythonhosted.org", "example.com"
NAMES = (INDEX, FILES, REPOSITORIES)
WHEEL = "tiny-1.0-py3-none-any.whl"

SOURCE = {
    "lib.py": "def double(n):\n    return n + n + 1\n",
    "test_lib.py": (
        "from lib import double\nfrom tiny import EIGHT\n\n\n"
        "def test_double():\n    assert double(4) == EIGHT\n"
    ),
    "requirements.txt": "tiny==1.0\n",
}


class Names(socketserver.BaseRequestHandler):
    """Answers DNS queries: the names above have one IPv4 address, others do not exist."""

    def handle(self) -> None:
        packet, socket = self.request
        labels: list[str] = []
        at = 12
        while packet[at]:
            labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
            at += 1 + packet[at]
        question, kind = packet[12 : at + 5], packet[at + 1 : at + 3]
        is_known = ".".join(labels).lower() in NAMES
        answer = b""
        if is_known and kind == b"\0\1":
            address = bytes(map(int, ADDRESS.split(".")))
            answer = b"\xc0\x0c" + b"\0\1\0\1" + (300).to_bytes(4) + b"\0\4" + address
        flags = b"\x81\x80" if is_known else b"\x81\x83"
        counts = b"\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0"
        socket.sendto(packet[:2] + flags + counts + question + answer, self.client_address)


class Hosts(BaseHTTPRequestHandler):
    """The three hosts, by the name that a request gives."""

    protocol_version = "HTTP/1.1"
    directory: pathlib.Path

    def do_GET(self) -> None:
        host = self.headers.get("Host", "")
        path = self.path.partition("?")[0]
        with (self.directory / "requests").open("a", encoding="utf-8") as requests:
            requests.write(f"{host} {path}\n")
        if host == REPOSITORIES:
            self.reply_as_git()
        elif (host, path) == (INDEX, "/simple/tiny/"):
            link = f'<a href="https://{FILES}/packages/{WHEEL}">{WHEEL}</a>'
            self.reply(200, {"Content-Type": "text/html"}, link.encode())
        elif (host, path) == (FILES, f"/packages/{WHEEL}"):
            self.reply(200, {}, tiny_package())
        else:
            self.reply(404, {}, b"no such page\n")

    do_POST = do_GET

    def reply_as_git(self) -> None:
        """Git's own server program: a shallow clone needs more than files."""
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.directory / "repositories"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        command = ["git", "http-backend"]
        said = subprocess.run(
            command, env=environment, input=body, stdout=subprocess.PIPE, check=True
        ).stdout
        head, _, content = said.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self.reply(status, headers, content)

    def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """`requests` has them."""


def make_repository(directory: pathlib.Path) -> None:
    work, bare = directory / "work", directory / "repositories" / "repo"
    work.mkdir()
    for name, content in SOURCE.items():
        (work / name).write_text(content)
    author = ["-c", "user.name=lab", "-c", "user.email=lab@example.com"]
    for command in (
        ["init", "-q", "-b", "main", "."],
        ["add", "."],
        [*author, "commit", "-q", "-m", "first"],
        ["clone", "-q", "--bare", ".", str(bare)],
    ):
        subprocess.run(["git", *command], cwd=work, check=True)


def main() -> None:
    directory = Hosts.directory = pathlib.Path(sys.argv[1])
    make_repository(directory)
    context = make_authority(directory).server(",".join(f"DNS:{name}" for name in NAMES))
    names = socketserver.ThreadingUDPServer((NAME_SERVER, 53), Names)
    hosts = ThreadingHTTPServer((ADDRESS, 443), Hosts)
    # The handshake is the affair of each connection's own thread.
    hosts.socket = context.wrap_socket(
        hosts.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=names.serve_forever, daemon=True).start()
    (directory / "ready").touch()
    hosts.serve_forever()


if __name__ == "__main__":
    main()
