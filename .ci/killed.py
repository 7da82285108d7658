"""Kills a daemon under clients of both SDKs that follow a command in a real sandbox.

The first time it is started again at once: no byte of the output may be missing. A client waits four
seconds for that; a builder that needs longer to start the daemon shows nothing, and it is done again
with other clients, twice at most. The second time it stays dead: each client must say so, by the type
of its error, within five seconds, or as many times that as the gate is patient.
"""
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

# The builder of the gate may be busy.
NOTICED_SECONDS_MAX = 5 * int(os.environ.get("DAYFLY_E2E_PATIENCE", "1"))
# Less than a client waits for a daemon that cannot be reached.
BACK_SECONDS_MAX = 3
TRIES = 3
LINES = 300
NUMBERS = f"i=0; while [ $i -lt {LINES} ]; do echo $i; i=$((i+1)); sleep 0.05; done"
FOR_EVER = "while :; do echo x; sleep 0.05; done"

PYTHON = """
import json, os
from dayfly import Sandbox, DayflyError
def tell(**what): print(json.dumps(what), flush=True)
class Once:
    def __init__(self): self.told = False
    def __call__(self, chunk):
        if not self.told: tell(step="output")
        self.told = True
sandbox = Sandbox("base", ttl_seconds=300)
result = sandbox.exec(os.environ["NUMBERS"], on_stdout=Once())
tell(step="ended", status=result.exit_code, stdout=result.stdout)
try:
    sandbox.exec(os.environ["FOR_EVER"], on_stdout=Once())
except DayflyError as error:
    tell(step="error", type=type(error).__name__, exec_id=getattr(error, "exec_id", ""))
"""

TYPESCRIPT = """
const { Sandbox, DayflyError } = await import(process.env.PACKAGE);
const tell = (what) => console.log(JSON.stringify(what));
const once = () => { let told = false; return () => { if (!told) tell({ step: "output" }); told = true; }; };
const sandbox = await Sandbox.create({ template: "base", ttlSeconds: 300 });
const result = await sandbox.exec(process.env.NUMBERS, { onStdout: once() });
tell({ step: "ended", status: result.exitCode, stdout: result.stdout });
try {
  await sandbox.exec(process.env.FOR_EVER, { onStdout: once() });
} catch (error) {
  if (!(error instanceof DayflyError)) throw error;
  tell({ step: "error", type: error.constructor.name, exec_id: error.execId ?? "" });
}
"""


def free_port():
    """One that the kernel gives to nobody who connects, so that it is free for the next daemon too."""
    for port in range(20000 + os.getpid() % 5000, 30000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    sys.exit("no port is free")


class Daemon:
    """One after the other on the same port."""

    def __init__(self, data):
        self.data = data
        self.address = "127.0.0.1:%d" % free_port()
        self.process = None

    def start(self):
        log = open(os.path.join(self.data, "killed.log"), "ab")
        self.process = subprocess.Popen(
            ["target/dist/dayflyd", "--data-dir", self.data, "--listen", self.address,
             "--egress-uplink", "none"], stderr=log)

    def wait_until_listening(self):
        """Says after how many seconds somebody could connect."""
        began = time.monotonic()
        host, port = self.address.split(":")
        while time.monotonic() - began < 60:
            try:
                socket.create_connection((host, int(port)), timeout=5).close()
                return time.monotonic() - began
            except OSError:
                time.sleep(0.01)
            if self.process.poll() is not None:
                sys.exit(f"the daemon ended with {self.process.returncode}: {self.last_words()}")
        sys.exit("the daemon does not listen after 60 s")

    def last_words(self):
        with open(os.path.join(self.data, "killed.log"), encoding="utf-8") as log:
            return "".join(log.readlines()[-5:])

    def wait_until_ready(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://{self.address}/health", timeout=5) as answer:
                    if json.load(answer)["status"] == "ok":
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        sys.exit("the daemon is not ready after 60 s")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def clean(self):
        """Ends what a killed one left."""
        stop = ["target/dist/dayflyd", "stop", "--data-dir", self.data, "--all"]
        subprocess.run(stop, check=False, capture_output=True, timeout=120)
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)


class Client:
    """A program that uses an SDK and tells what happens to it, a line for each."""

    def __init__(self, name, command, environment):
        self.name = name
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), json.loads(line)))

    def wait(self, step, seconds):
        try:
            at, told = self.lines.get(timeout=seconds)
        except queue.Empty:
            sys.exit(f"{self.name}: no {step} within {seconds} s")
        if told["step"] != step:
            sys.exit(f"{self.name}: wanted {step}, got {told}")
        return at, told

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def start_clients(environment):
    return [
        Client("Python", [sys.executable, "-c", PYTHON], environment),
        Client("TypeScript", ["node", "--input-type=module", "-e", TYPESCRIPT], environment),
    ]


def kill_and_start(daemon, clients):
    """Says for how many seconds nobody could connect."""
    for client in clients:
        client.wait("output", 60)
    daemon.kill()
    if any(not client.lines.empty() for client in clients):
        sys.exit("a client ended before the daemon was killed; nothing is shown")
    daemon.start()
    return daemon.wait_until_listening()


def main():
    data = sys.argv[1]
    daemon = Daemon(data)
    daemon.start()
    clients = []
    try:
        daemon.wait_until_ready()
        environment = dict(
            os.environ, NUMBERS=NUMBERS, FOR_EVER=FOR_EVER, PYTHONPATH="sdk/python/src",
            PACKAGE=pathlib.Path("sdk/typescript/dist/esm/index.js").resolve().as_uri(),
            DAYFLY_API_URL=f"http://{daemon.address}",
            DAYFLY_API_KEY=open(os.path.join(data, "admin.key"), encoding="ascii").read().strip())
        for _ in range(TRIES):
            clients = start_clients(environment)
            back_seconds = kill_and_start(daemon, clients)
            if back_seconds <= BACK_SECONDS_MAX:
                break
            print(f"the daemon was back after {back_seconds:.1f} s only: once more")
            for client in clients:
                client.end()
        else:
            sys.exit(f"never back within {BACK_SECONDS_MAX} s")
        for client in clients:
            told = client.wait("ended", 90)[1]
            if told["status"] != 0 or told["stdout"].split() != [str(n) for n in range(LINES)]:
                sys.exit(f"{client.name}: after a restart: {told}")
        for client in clients:
            client.wait("output", 60)
        killed = time.monotonic()
        daemon.kill()
        for client in clients:
            at, told = client.wait("error", 6 * NOTICED_SECONDS_MAX)
            is_late = at - killed > NOTICED_SECONDS_MAX
            if told["type"] != "ExecInterrupted" or not told["exec_id"] or is_late:
                sys.exit(f"{client.name}: {told} after {at - killed:.1f} s")
            print(f"{client.name}: {LINES} lines over a restart; {told['type']} "
                  f"{at - killed:.1f} s after the end of the daemon")
        daemon.start()
        daemon.wait_until_ready()
    finally:
        for client in clients:
            client.end()
        daemon.clean()


main()
