#!/usr/bin/env python3
"""Walks people through a sign-in: walk.py DATA. See `run`, which says what it needs.

Every case names who signs in and what must come of it; the last line counts them.
"""
import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DAYFLY, DAYFLYD = os.environ["DAYFLY"], os.environ["DAYFLYD"]
SECONDS_MAX = 60
PAUSE_SECONDS = 0.1
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(what: str, holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {SECONDS_MAX} s")
        time.sleep(PAUSE_SECONDS)
    return found


@contextlib.contextmanager
def running(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    except BaseException:
        print(log.read_text()[-4000:], file=sys.stderr)
        raise
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=SECONDS_MAX)


class Answer:
    """What a server said."""

    def __init__(self, url: str, body: dict[str, Any] | str | None = None, method: str | None = None) -> None:
        data = None
        headers = {}
        if isinstance(body, dict):
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        elif body is not None:
            data, headers["Content-Type"] = body.encode(), "application/x-www-form-urlencoded"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:
                self.status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            self.status, text = error.code, error.read()
        self.json = json.loads(text) if text else {}


class World:
    """A provider, a daemon that believes it, and a directory for command lines."""

    def __init__(self, issuer: str, server: str, work: Path) -> None:
        self.issuer, self.server, self.work = issuer, server, work
        self.passed = 0

    def command(self, name: str, *words: str, status: int = 0, stdin: str = "") -> str:
        environment = {"HOME": str(self.work / name), "PATH": os.environ["PATH"]}
        (self.work / name).mkdir(exist_ok=True)
        done = subprocess.run([DAYFLY, *words], env=environment, input=stdin, text=True, capture_output=True,
                              timeout=SECONDS_MAX)
        if done.returncode != status:
            raise AssertionError(f"dayfly {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def people(self, name: str, groups: list[str] | None) -> None:
        """Changes what the provider knows of somebody; None removes them."""
        body = None if groups is None else json.dumps(groups)
        Answer(f"{self.issuer}/test/people/{name}", body, "DELETE" if groups is None else "PUT")

    def browser(self, page: str, name: str) -> str:
        words = ["node", str(HERE / "browser.mjs"), page, name]
        return subprocess.run(words, check=True, text=True, capture_output=True, timeout=SECONDS_MAX).stdout

    def id_token(self, name: str, client: str = "dayfly") -> str:
        """As any client of the provider gets one."""
        form = f"client_id={client}&scope=openid%20email"
        codes = Answer(f"{self.issuer}/device/auth", form).json
        said = self.browser(codes["verification_uri_complete"], name)
        form = f"client_id={client}&grant_type={DEVICE_GRANT}&device_code={codes['device_code']}"
        tokens = Answer(f"{self.issuer}/token", form).json
        assert "id_token" in tokens, f"no token for {name}: {tokens} {said}"
        return tokens["id_token"]

    def exchange(self, token: str) -> Answer:
        return Answer(f"{self.server}/v1/sign-in", {"id_token": token})

    def refused(self, case: str, token: str, status: int, words: str) -> None:
        answer = self.exchange(token)
        assert answer.status == status and words in answer.json["error"], f"{case}: {answer.status} {answer.json}"
        self.has_passed(case)

    def has_passed(self, case: str) -> None:
        self.passed += 1
        print(f"passed: {case}", flush=True)


def part(token: str, number: int) -> dict[str, Any]:
    text = token.split(".")[number]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def encoded(what: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(what).encode()).decode().rstrip("=")


def by_code(world: World) -> None:
    """`dayfly login --sso`, with somebody at a browser."""
    home = world.work / "ann"
    home.mkdir()
    words = [DAYFLY, "login", world.server, "--sso"]
    log = home / "login.log"
    with log.open("w") as output:
        login = subprocess.Popen(words, env={"HOME": str(home), "PATH": os.environ["PATH"]}, stdout=output,
                                 stderr=subprocess.STDOUT)
    lines = until("a code", lambda: [line for line in log.read_text().splitlines() if "or open " in line])
    world.browser(lines[0].split("or open ")[1].strip(), "ann")
    assert login.wait(timeout=SECONDS_MAX) == 0, log.read_text()
    assert "signed in as ann@example.com" in log.read_text(), log.read_text()
    assert "42" in world.command("ann", "run", "--", "python3", "-c", "print(6*7)")
    assert "scope" in world.command("ann", "token", "ls", status=4)
    world.has_passed("ann signs in by code, and works as a developer")


def by_token(world: World) -> None:
    token = world.id_token("bob")
    world.command("bob", "login", world.server, "--id-token-file", "-", stdin=token)
    world.command("bob", "create", status=4)
    assert "/v1/sign-in" in world.command("bob", "audit", "--json")
    world.has_passed("bob signs in with a token, and reads the record as an auditor")


def wrong_tokens(world: World) -> None:
    good = world.id_token("ann")
    header, claims, signature = good.split(".")
    world.refused("another client's token", world.id_token("ann", "another"), 401, "audience")
    world.refused("a token without a signature", f"{encoded({'alg': 'none'})}.{claims}.", 401, "not taken")
    forged = encoded({**part(good, 1), "sub": "root"})
    world.refused("changed claims", f"{header}.{forged}.{signature}", 401, "signature")
    other = encoded({**part(good, 0), "alg": "HS256"})
    world.refused("another algorithm", f"{other}.{claims}.{signature}", 401, "not taken")
    nameless = encoded({**part(good, 0), "kid": "nobody"})
    world.refused("a key that the provider does not have", f"{nameless}.{claims}.{signature}", 401, "key")
    world.refused("somebody without a role", world.id_token("eve"), 403, "no role")
    assert world.exchange(good).status == 201, "the same token, unchanged"
    world.has_passed("the same token, unchanged")


def removed_people(world: World) -> None:
    """Out of the group, and out of the provider."""
    key = world.exchange(world.id_token("ann")).json
    world.people("ann", ["everybody"])
    world.refused("ann, who is in the group no more", world.id_token("ann"), 403, "no role")
    assert key["expires_at"], "what she has ends by itself"
    form = "client_id=dayfly&scope=openid%20email"
    codes = Answer(f"{world.issuer}/device/auth", form).json
    world.people("bob", None)
    world.browser(codes["verification_uri_complete"], "bob")
    form = f"client_id=dayfly&grant_type={DEVICE_GRANT}&device_code={codes['device_code']}"
    answer = Answer(f"{world.issuer}/token", form)
    assert answer.status == 400 and "id_token" not in answer.json, answer.json
    world.has_passed("bob, whom the provider removed, gets no token")


def settings(issuer: str, denied: list[str]) -> str:
    grants = (("ml", "developer"), ("audit", "auditor"))
    text = f"[sign_in]\nissuer = '{issuer}'\nclient_id = 'dayfly'\ndenied = {json.dumps(denied)}\n"
    for group, role in grants:
        text += f"[[sign_in.grant]]\nclaim = 'groups'\nvalue = '{group}'\nproject = 'default'\nrole = '{role}'\n"
    return text


def reload_ends_keys(world: World, file: Path, daemon: subprocess.Popen[bytes]) -> None:
    world.people("ann", ["ml"])
    world.command("ann", "login", world.server, "--id-token-file", "-", stdin=world.id_token("ann"))
    world.command("ann", "ls")
    file.write_text(settings(world.issuer, ["ann"]))
    daemon.send_signal(signal.SIGHUP)

    def is_out() -> bool:
        words = [DAYFLY, "ls"]
        environment = {"HOME": str(world.work / "ann"), "PATH": os.environ["PATH"]}
        return subprocess.run(words, env=environment, capture_output=True, timeout=SECONDS_MAX).returncode == 4

    until("ann is out", is_out)
    world.refused("ann, whom the operator denies", world.id_token("ann"), 403, "no role")


def main() -> int:
    data = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="dayfly-sign-in-") as place:
        work = Path(place)
        issuer, server = f"http://127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        file = work / "dayflyd.toml"
        file.write_text(settings(issuer, []))
        port = issuer.rsplit(":", 1)[1]
        provider = running(["node", str(HERE / "provider.mjs"), port], work / "provider.log")
        words = [DAYFLYD, "--config", str(file), "--data-dir", data, "--listen", server, "--templates", "base",
                 "--egress-uplink", "none"]
        with provider, running(words, work / "dayflyd.log") as daemon:
            until("the provider is ready", lambda: "ready" in (work / "provider.log").read_text())
            until("the daemon is ready", lambda: is_ready(f"http://{server}/ready"))
            world = World(issuer, f"http://{server}", work)
            by_code(world)
            by_token(world)
            wrong_tokens(world)
            removed_people(world)
            reload_ends_keys(world, file, daemon)
            subprocess.run([DAYFLYD, "stop", "--data-dir", data, "--all"], check=False, capture_output=True,
                           timeout=SECONDS_MAX)
        print(f"sign-in: {world.passed} cases passed")
    return 0


def is_ready(url: str) -> bool:
    try:
        return Answer(url).status == 200
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
