"""Real reverse proxies in front of a real daemon, with the files of deploy/ and a private authority.

    tests/proxies/run DATA [MIB]

DATA is a data directory with the template base; MIB is how much is uploaded, 64 unless it is said.
Through each proxy: a stream that is not kept back, a terminal over a WebSocket, a preview by host
name, an upload, and whose address the daemon and the service get.
"""

import contextlib
import hashlib
import http.client
import json
import os
import pty
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "target/dist"
# A name that every program here resolves; only requests of this script go to names of previews.
API, PREVIEW = "localhost", "preview.example.org"
# Another address than the proxy's own, so that the two can be told apart.
CLIENT = "127.0.0.2"
PATIENCE_SECONDS = 120
LINE_PAUSE_SECONDS = 0.4
CHUNK = b"0123456789abcdef" * 65536
SERVICE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.headers["x-forwarded-for"] + " " + self.headers["x-forwarded-proto"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until(what: str, holds) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"never: {what}")
        time.sleep(0.05)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def process(words: list[str], log: Path, **options) -> Iterator[subprocess.Popen]:
    with log.open("ab") as output:
        started = subprocess.Popen(words, stdout=output, stderr=output, **options)
        try:
            yield started
        finally:
            started.terminate()
            started.wait(timeout=60)


class Proxy:
    """A proxy with its file of deploy/, at other ports and with other certificates."""

    def __init__(self, name: str, place: Path, tls: Path, daemon: int) -> None:
        self.name, self.place, self.port = name, place / name, free_port()
        self.place.mkdir()
        source = {"nginx": "nginx/dayfly.conf", "haproxy": "haproxy/haproxy.cfg", "caddy": "caddy/Caddyfile"}
        text = (ROOT / "deploy" / source[name]).read_text()
        others = {"/etc/dayfly/tls": str(tls), "127.0.0.1:7070": f"127.0.0.1:{daemon}", "dayfly.example.org": API}
        for old, new in others.items():
            assert old in text, (name, old)
            text = text.replace(old, new)
        self.words = getattr(self, name)(text)

    def nginx(self, text: str) -> list[str]:
        (self.place / "dayfly.conf").write_text(text.replace("listen 443", f"listen 127.0.0.1:{self.port}"))
        names = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        temporary = "".join(f"{name}_temp_path {self.place}/{name};" for name in names)
        whole = self.place / "nginx.conf"
        whole.write_text(
            f"daemon off; user root; pid {self.place}/pid; error_log {self.place}/error.log;"
            f"events {{}} http {{ access_log off; {temporary} include {self.place}/dayfly.conf; }}"
        )
        return ["nginx", "-c", str(whole)]

    def haproxy(self, text: str) -> list[str]:
        whole = self.place / "haproxy.cfg"
        whole.write_text(text.replace("bind :443", f"bind 127.0.0.1:{self.port}"))
        return ["haproxy", "-db", "-f", str(whole)]

    def caddy(self, text: str) -> list[str]:
        names = f"https://{API}:{self.port}, https://*.{PREVIEW}:{self.port}"
        text = text.replace(f"https://{API}, https://*.{PREVIEW}", names)
        whole = self.place / "Caddyfile"
        whole.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
        return ["caddy", "run", "--adapter", "caddyfile", "--config", str(whole)]

    def serve(self) -> contextlib.AbstractContextManager:
        environment = {**os.environ, "HOME": str(self.place), "XDG_DATA_HOME": str(self.place)}
        return process(self.words, self.place / "log", env=environment)


class Client:
    """Requests through a proxy, of a client elsewhere."""

    def __init__(self, port: int, authority: Path, key: str) -> None:
        self.port, self.authority, self.key = port, authority, key
        self.context = ssl.create_default_context(cafile=str(authority))

    def open(self, host: str, method: str, path: str, body=None, **headers) -> http.client.HTTPResponse:
        plain = socket.create_connection(("127.0.0.1", self.port), 660, source_address=(CLIENT, 0))
        connection = http.client.HTTPSConnection(host, self.port)
        connection.sock = self.context.wrap_socket(plain, server_hostname=host)
        headers = {"Authorization": f"Bearer {self.key}", **headers}
        connection.request(method, path, body=body, headers=headers)
        return connection.getresponse()

    def ask(self, method: str, path: str, wish: dict | None = None) -> dict:
        body = None if wish is None else json.dumps(wish)
        with self.open(API, method, path, body, **{"Content-Type": "application/json"}) as response:
            text = response.read()
            assert response.status < 300, (method, path, response.status, text)
            return json.loads(text or b"{}")

    def run(self, sandbox: str, command: str) -> str:
        ran = self.ask("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": command})
        assert ran["exit_code"] == 0, ran
        return ran["stdout"].strip()


def stream(client: Client, sandbox: str) -> str:
    wish = {"cmd": f"for i in 1 2 3 4 5; do echo $i; sleep {LINE_PAUSE_SECONDS}; done"}
    headers = {"Content-Type": "application/json"}
    path = f"/v1/sandboxes/{sandbox}/exec/stream"
    times = []
    with client.open(API, "POST", path, json.dumps(wish), **headers) as response:
        assert response.status == 200, response.read()
        for line in response:
            if line.startswith(b"event: stdout"):
                times.append(time.monotonic())
    spread = times[-1] - times[0]
    assert len(times) >= 5 and spread > 3 * LINE_PAUSE_SECONDS, f"kept back: {times}"
    return f"stream over {spread:.1f} s"


def terminal(client: Client, sandbox: str) -> str:
    environment = {
        **os.environ,
        "DAYFLY_API_URL": f"https://{API}:{client.port}",
        "DAYFLY_API_KEY": client.key,
        "SSL_CERT_FILE": str(client.authority),
    }
    child, descriptor = pty.fork()
    if child == 0:
        program = str(PROGRAMS / "dayfly")
        os.execve(program, [program, "exec", "-it", sandbox, "--", "sh"], environment)
    os.write(descriptor, b"stty size; echo $((6*7)); exit 5\n")
    seen, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if not select.select([descriptor], [], [], 1)[0]:
            continue
        try:
            seen += os.read(descriptor, 4096)
        except OSError:
            break
    else:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert b"42" in seen and os.waitstatus_to_exitcode(status) == 5, (seen, status)
    return "terminal"


def preview(client: Client, sandbox: str) -> str:
    wish = {"cmd": ["python3", "-c", SERVICE], "background": True}
    client.ask("POST", f"/v1/sandboxes/{sandbox}/exec", wish)
    client.ask("POST", f"/v1/sandboxes/{sandbox}/ports/8000/wait", {})
    with client.open(f"8000-{sandbox}.{PREVIEW}", "GET", "/") as response:
        text = response.read().decode()
    assert (response.status, text) == (200, f"{CLIENT} https"), (response.status, text)
    return "preview"


def upload(client: Client, sandbox: str, mib: int) -> str:
    digest = hashlib.sha256()
    def parts() -> Iterator[bytes]:
        for _ in range(mib):
            digest.update(CHUNK)
            yield CHUNK
    began = time.monotonic()
    path = f"/v1/sandboxes/{sandbox}/fs?path=/workspace/big"
    length = {"Content-Length": str(mib << 20), "Content-Type": "application/octet-stream"}
    with client.open(API, "PUT", path, parts(), **length) as response:
        assert response.status < 300, (response.status, response.read())
    took = time.monotonic() - began
    found = client.ask("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": "sha256sum big; rm big", "timeout_seconds": 600})
    assert found["stdout"].split()[0] == digest.hexdigest(), found
    return f"upload of {mib} MiB in {took:.1f} s"


def drive(proxy: Proxy, tls: Path, key: str, log: Path, mib: int) -> None:
    before = len(log.read_text())
    with proxy.serve():
        until(f"{proxy.name} listens", lambda: listens(proxy.port))
        client = Client(proxy.port, tls / "authority.pem", key)
        sandbox = client.ask("POST", "/v1/sandboxes", {"template": "base", "ttl_seconds": 1800})["id"]
        said = [work(client, sandbox) for work in (stream, terminal, preview)]
        said.append(upload(client, sandbox, mib))
        client.ask("DELETE", f"/v1/sandboxes/{sandbox}")
    clients = set(re.findall(r"client=(\S+)", log.read_text()[before:]))
    assert CLIENT in clients, clients
    print(f"{proxy.name}: {', '.join(said)}", flush=True)


def main() -> None:
    data, mib = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 64
    # Others must reach what is served; the files of root stay root's.
    with tempfile.TemporaryDirectory(prefix="dayfly-proxies-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        tls, log, port = place / "tls", place / "daemon.log", free_port()
        names = [word for name in (API, f"*.{PREVIEW}") for word in ("--name", name)]
        made = [PROGRAMS / "dayflyd", "tls", "init", "--directory", tls, *names]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        both = (tls / "server.pem").read_text() + (tls / "server.key").read_text()
        together = os.open(tls / "server-with-key.pem", os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(together, "w") as file:
            file.write(both)
        words = [str(PROGRAMS / "dayflyd"), "--data-dir", str(data), "--listen", f"127.0.0.1:{port}"]
        words += ["--trusted-proxy", "127.0.0.1/32", "--preview-domain", f"https://{PREVIEW}"]
        words += ["--egress-uplink", "none", "--templates", "base"]
        with process(words, log):
            until("the daemon is well", lambda: is_well(port))
            key = (data / "admin.key").read_text().strip()
            for name in ("nginx", "haproxy", "caddy"):
                drive(Proxy(name, place, tls, port), tls, key, log, mib)


def is_well(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


main()
