"""Waits until the context bridge answers, which is when its first interpreter is warm."""

import json
import socket
import sys
import time

SOCKET = "/run/dayfly-contexts/bridge.sock"
LIMIT_SECONDS = 600
CONNECT_PAUSE_SECONDS = 0.2


# Uses the bridge once, so that its first user does not wait for what is only made then.
REHEARSAL = (
    {"op": "create", "context": "rehearsal", "language": "bash"},
    {"op": "run", "context": "rehearsal", "run": "1", "code": "echo x"},
    {"op": "delete", "context": "rehearsal"},
)


def ask(request, deadline):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(deadline - time.monotonic(), 1))
        connection.connect(SOCKET)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            return [json.loads(answer) for answer in answers]


def main():
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            (answer,) = ask({"op": "list"}, deadline)
        except (FileNotFoundError, ConnectionError) as error:
            # It is being started.
            if time.monotonic() > deadline:
                sys.exit(f"no context bridge: {error}")
            time.sleep(CONNECT_PAUSE_SECONDS)
            continue
        if answer.get("type") != "contexts":
            sys.exit(f"the context bridge says {answer}")
        if not answer.get("warm"):
            sys.exit("the context bridge could not warm an interpreter up")
        break
    for request in REHEARSAL:
        *_, last = ask(request, deadline)
        if last["type"] == "refused":
            sys.exit(f"the context bridge refused {request}: {last}")


if __name__ == "__main__":
    main()
