"""Runs the code block of README.md that stands under the line `<!-- quickstart -->`.

Every line is given to one shell. A line that ends in `&` starts the daemon. `# prints X` and
`# exits N` behind a command are checked. The data directory of the README is replaced by the
one that is given, so that a run does not touch the machine's own; nothing else is changed.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time

README_DATA = "/var/lib/dayfly"


def block(path):
    text = open(path, encoding="utf-8").read()
    match = re.search(r"<!-- quickstart -->\s*```sh\n(.*?)```", text, re.S)
    if not match:
        sys.exit("README.md has no quickstart block")
    return match.group(1).splitlines()


def wait_until_it_listens(command, data):
    """A person reads the daemon's first lines before going on."""
    host, port = re.search(r"--listen (\S+):(\d+)", command).groups()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if os.path.exists(os.path.join(data, "admin.key")):
            with socket.socket() as attempt:
                if attempt.connect_ex((host, int(port))) == 0:
                    return
        time.sleep(0.05)
    sys.exit("the daemon does not listen after 30 s")


def main():
    readme, data = sys.argv[1:]
    environment = dict(os.environ)
    daemon = None
    checked = 0
    try:
        for line in block(readme):
            command = line.replace(README_DATA, data).strip()
            if not command or command.startswith("#"):
                continue
            expected = re.search(r"\s+# (prints|exits) (.*)$", command)
            command = re.sub(r"\s+#.*$", "", command)
            command = re.sub(r"\bsudo ", "", command)
            print(f"$ {command}", flush=True)
            if command.endswith("&"):
                daemon = subprocess.Popen(["sh", "-c", "exec " + command.rstrip("& ")], env=environment)
                wait_until_it_listens(command, data)
                continue
            if command.startswith("export "):
                name, value = command[len("export "):].split("=", 1)
                shell = subprocess.run(["sh", "-c", f"printf %s {value}"], env=environment,
                                       check=True, capture_output=True, text=True)
                environment[name] = shell.stdout.replace("\n", "")
                continue
            done = subprocess.run(["bash", "-c", command], env=environment,
                                  stdout=subprocess.PIPE, text=True)
            sys.stdout.write(done.stdout)
            if expected and expected.group(1) == "prints":
                if done.stdout.strip() != expected.group(2).strip() or done.returncode:
                    sys.exit(f"wanted {expected.group(2)!r}, got {done.stdout!r}, {done.returncode}")
                checked += 1
            elif expected:
                if done.returncode != int(expected.group(2)):
                    sys.exit(f"wanted exit {expected.group(2)}, got {done.returncode}")
                checked += 1
            elif done.returncode:
                sys.exit(f"exit {done.returncode}")
    finally:
        if daemon:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(timeout=60)
    if checked < 2:
        sys.exit("the quickstart checks nothing")
    print(f"quickstart: {checked} results as written")


main()
