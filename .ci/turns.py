#!/usr/bin/env python3
"""Measures create, exec, wake and fork of two builds in turns, in one run.

    .ci/turns.py --old DIR --new DIR --templates DATA_DIR [-n 40] [--json FILE] [--seen]

Each build has a daemon and a data directory of its own, on the same baked templates. Both stand
side by side, and one sample is taken of each in turn, A B, B A, A B ..., so that whatever the
host does meanwhile happens to both. A sample waits for full pools on both sides: a refill beside
it would be measured with it. The first sample of each kind is thrown away.

    create  from sending POST /v1/sandboxes to the answer of its first `true`
    exec    from sending POST exec `true` to a warm sandbox to its answer; another sandbox after every
            EXECS_OF_A_SANDBOX, because two sandboxes of one build differ by more than two builds do
    wake    from sending POST exec `true` to a hibernated sandbox to its answer
    fork    from sending POST fork, one child, to its answer

With --seen the daemon of the new build has traces, metrics and a log in JSON, with somebody who takes
and reads them; the old one has none of it. The two may be the same programs.

Prints a table in Markdown and, with --json, writes every sample. Fails when a median of the new
build is above --at-most times that of the old one.
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_SECONDS_MAX = 120
POOL_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
PAUSE_SECONDS = 0.02
# What could not be deleted ends by itself.
TTL_SECONDS = 1800
KINDS = ("create", "exec", "wake", "fork")
EXECS_OF_A_SANDBOX = 10


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, seconds, holds):
    """Waits until `holds` answers something, and gives it."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(PAUSE_SECONDS)


class Watcher:
    """Somebody who takes traces and reads metrics."""

    def __init__(self):
        self.metrics = free_port()
        program = pathlib.Path(__file__).with_name("watcher.py")
        self.child = subprocess.Popen([sys.executable, program, str(self.metrics)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.traces = int(self.child.stdout.readline())

    def stop(self):
        """Ends it, and says what it got."""
        said, _ = self.child.communicate(timeout=STOP_SECONDS_MAX)
        return json.loads(said)


class Build:
    """A daemon of one build on a directory of its own."""

    def __init__(self, name, programs, templates, parent, watcher=None):
        self.name = name
        self.programs = programs
        self.watcher = watcher
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"turns-{name}-", dir=parent))
        self.port = free_port()
        self.connection = None
        self.child = None
        self.warm = None
        self.execs = 0
        self.samples = {kind: [] for kind in KINDS}
        try:
            self.link(templates)
            self.start()
        except BaseException:
            self.stop(keep_log=True)
            raise

    def link(self, templates):
        """The baked templates of another directory, linked."""
        node = self.directory / "node"
        node.mkdir(mode=0o700)
        for part in ("templates", "images", "accelerator.json"):
            if (templates / "node" / part).exists():
                source = str(templates / "node" / part)
                subprocess.run(["cp", "--archive", "--link", source, str(node)], check=True)

    def start(self):
        log = open(self.directory / "daemon.log", "ab")
        command = [self.programs / "dayflyd", "--egress-uplink", "none", "--data-dir", self.directory,
                   "--listen", f"127.0.0.1:{self.port}"]
        environment = dict(os.environ)
        if self.watcher:
            command += ["--log-format", "json", "--metrics-listen", f"127.0.0.1:{self.watcher.metrics}"]
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{self.watcher.traces}"
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        log.close()
        until(f"{self.name} is ready", START_SECONDS_MAX, self.is_ready)

    def is_ready(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"the daemon of {self.name} ended: see {self.directory}/daemon.log")
        try:
            return self.call("GET", "/v1/templates/base").get("state") == "ready"
        except (OSError, http.client.HTTPException, RuntimeError):
            return False

    def call(self, method, path, body=None):
        """One request. A question is asked again when the server has closed the idle connection."""
        try:
            return self.ask(method, path, body)
        except ConnectionError:
            if method != "GET":
                raise
            return self.ask(method, path, body)

    def ask(self, method, path, body):
        """One request over the connection that is kept."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            self.connection.connect()
            self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = (self.directory / "admin.key").read_text().strip()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        try:
            self.connection.request(method, path, content, headers)
            response = self.connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise
        if response.status >= 300:
            raise RuntimeError(f"{self.name}: {method} {path}: {response.status} {text.decode(errors='replace')}")
        return json.loads(text) if text else {}

    def wait_for_pools(self):
        def are_full():
            node = self.call("GET", "/v1/node")
            engines = all(pool["parked"] >= pool["target"] for pool in node["parked_engines"])
            return engines and node["parked_slots"] >= node["parked_slots_target"]
        until(f"the pools of {self.name} are full", POOL_SECONDS_MAX, are_full)

    def create(self):
        return self.call("POST", "/v1/sandboxes", {"template": "base", "ttl_seconds": TTL_SECONDS})["id"]

    def delete(self, sandbox):
        self.call("DELETE", f"/v1/sandboxes/{sandbox}")

    def exec_true(self, sandbox):
        result = self.call("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": ["true"]})
        if result["exit_code"] != 0:
            raise RuntimeError(f"{self.name}: true exited with {result['exit_code']}")

    def sample(self, kind):
        """Seconds of one sample, and what is to be deleted after it."""
        if kind == "create":
            start = time.perf_counter()
            sandbox = self.create()
            self.exec_true(sandbox)
            return time.perf_counter() - start, [sandbox]
        if kind == "exec":
            return self.exec_sample()
        sandbox = self.create()
        self.exec_true(sandbox)
        if kind == "wake":
            self.call("POST", f"/v1/sandboxes/{sandbox}/hibernate")
        self.wait_for_pools()
        start = time.perf_counter()
        if kind == "fork":
            forked = self.call("POST", f"/v1/sandboxes/{sandbox}/fork",
                               {"count": 1, "ttl_seconds": TTL_SECONDS})
            elapsed = time.perf_counter() - start
            return elapsed, [sandbox] + [child["id"] for child in forked["children"]]
        self.exec_true(sandbox)
        return time.perf_counter() - start, [sandbox]

    def exec_sample(self):
        """An exec in the warm sandbox, which is deleted after its last."""
        if self.warm is None:
            self.warm = self.create()
            self.exec_true(self.warm)
            self.wait_for_pools()
            self.execs = 0
        start = time.perf_counter()
        self.exec_true(self.warm)
        elapsed = time.perf_counter() - start
        self.execs += 1
        if self.execs < EXECS_OF_A_SANDBOX:
            return elapsed, []
        ended, self.warm = self.warm, None
        return elapsed, [ended]

    def stop(self, keep_log):
        if self.connection is not None:
            self.connection.close()
        if self.child is not None and self.child.poll() is None:
            stop = [self.programs / "dayflyd", "stop", "--all", "--data-dir", self.directory]
            subprocess.run(stop, stdout=subprocess.DEVNULL, check=False, timeout=STOP_SECONDS_MAX)
            self.child.send_signal(signal.SIGTERM)
            self.child.wait(STOP_SECONDS_MAX)
        # Whoever looks for the reason of a failure needs the log.
        if keep_log and (self.directory / "daemon.log").exists():
            kept = self.directory.with_suffix(".log")
            shutil.move(self.directory / "daemon.log", kept)
            print(f"the log of {self.name}: {kept}", file=sys.stderr)
        shutil.rmtree(self.directory, ignore_errors=True)


def quantile(samples, share):
    """The smallest sample that at least this share of them does not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def figures(samples):
    return {"n": len(samples), "p50_ms": round(quantile(samples, 50) * 1000, 2),
            "p99_ms": round(quantile(samples, 99) * 1000, 2)}


def measure(builds, kind, n):
    """Samples of both, in turns. The order within a turn changes with each."""
    for turn in range(n + 1):
        for build in builds if turn % 2 == 0 else reversed(builds):
            for one in builds:
                one.wait_for_pools()
            seconds, made = build.sample(kind)
            for sandbox in made:
                build.delete(sandbox)
            # The first pays for a cold page cache.
            if turn > 0:
                build.samples[kind].append(seconds)


def report(old, new):
    found = {}
    for kind in KINDS:
        if old.samples[kind]:
            before, after = figures(old.samples[kind]), figures(new.samples[kind])
            found[kind] = {"old": before, "new": after,
                           "ratio_p50": round(after["p50_ms"] / before["p50_ms"], 3),
                           "ratio_p99": round(after["p99_ms"] / before["p99_ms"], 3)}
    return found


def table(found):
    lines = ["| | n | old p50 ms | new p50 ms | ratio | old p99 ms | new p99 ms | ratio |",
             "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    for kind, one in found.items():
        old, new = one["old"], one["new"]
        lines.append(f"| {kind} | {old['n']} | {old['p50_ms']} | {new['p50_ms']} | {one['ratio_p50']} "
                     f"| {old['p99_ms']} | {new['p99_ms']} | {one['ratio_p99']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=pathlib.Path, required=True, help="directory of the old programs")
    parser.add_argument("--new", type=pathlib.Path, required=True, help="directory of the new programs")
    parser.add_argument("--templates", type=pathlib.Path, required=True, help="data directory with a baked base")
    parser.add_argument("--parent", type=pathlib.Path, help="where to make the data directories; same file system")
    parser.add_argument("-n", type=int, default=40, help="samples of each kind of each build, five times that of exec")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--at-most", type=float, default=1.05)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seen", action="store_true", help="watch the new one")
    arguments = parser.parse_args()
    parent = arguments.parent or arguments.templates.parent
    builds = []
    found = watched = None
    watcher = Watcher() if arguments.seen else None
    # A signal ends as everything else does: with both daemons stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for name, programs, seen_by in (("old", arguments.old, None), ("new", arguments.new, watcher)):
            builds.append(Build(name, programs.resolve(), arguments.templates.resolve(), parent, seen_by))
        for kind in arguments.kinds:
            # An exec is short, so its median needs more of them.
            measure(builds, kind, arguments.n * 5 if kind == "exec" else arguments.n)
        samples = {build.name: build.samples for build in builds}
        found = report(*builds)
    finally:
        for build in builds:
            build.stop(keep_log=found is None)
        if watcher:
            watched = watcher.stop()
    print(table(found))
    if watched:
        print(f"\nThe new one was watched: {watched['messages']} messages with traces, {watched['readings']} "
              "readings of its metrics.")
        if 0 in watched.values():
            sys.exit("nobody saw anything of it")
    if arguments.json:
        arguments.json.write_text(json.dumps({"figures": found, "samples_seconds": samples}, indent=1) + "\n")
    slower = [f"{kind}: {one['ratio_p50']}" for kind, one in found.items() if one["ratio_p50"] > arguments.at_most]
    if slower:
        sys.exit(f"slower than {arguments.at_most} times: {', '.join(slower)}")


if __name__ == "__main__":
    main()
