"""Starts the context bridge in a guest and starts it again when it ends.

Runs as root, with the standard library alone. It binds the socket where only root can replace it
and only root can connect, and hands it to a bridge that is the sandbox's ordinary user. So user
code that kills everything of its own takes the contexts down, but not the way to new ones.
"""

import os
import pwd
import resource
import signal
import socket
import sys
import time

USER = "agent"
SOCKET = "/run/dayfly-contexts/bridge.sock"
RUNTIME = "/run/dayfly-contexts/runtime"
WORKSPACE = "/workspace"
BRIDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contexts.py")
# As for every exec of the sandbox.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# When memory runs out, the interpreter that took it shall go, not the bridge.
BRIDGE_OOM_SCORE = "-500"
SHORT_LIFE_SECONDS = 5
PAUSE_SECONDS_MAX = 30


def bind():
    os.makedirs(os.path.dirname(SOCKET), mode=0o755, exist_ok=True)
    try:
        os.unlink(SOCKET)
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    listener.bind(SOCKET)
    os.umask(before)
    listener.listen(128)
    return listener


def make_runtime(account):
    os.makedirs(RUNTIME, mode=0o700, exist_ok=True)
    os.chown(RUNTIME, account.pw_uid, account.pw_gid)


def environment(account):
    return {
        "PATH": f"{account.pw_dir}/.local/bin:{PATH}",
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
        "LANG": "C.UTF-8",
    }


def start_bridge(listener, account, is_first):
    pid = os.fork()
    if pid:
        return pid
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(BRIDGE_OOM_SCORE)
        os.setsid()
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        os.chdir(WORKSPACE if os.path.isdir(WORKSPACE) else account.pw_dir)
        os.set_inheritable(listener.fileno(), True)
        words = [sys.executable, "-I", BRIDGE, "--listen-fd", str(listener.fileno())]
        words += ["--runtime", RUNTIME]
        # The stack is imported once, before the capture. A bridge that had to be started again
        # should rather answer soon.
        words += ["--warm"] if is_first else []
        os.execve(sys.executable, words, environment(account))
    finally:
        os._exit(126)


def supervise(listener, account):
    is_first, pause = True, 1
    while True:
        started = time.monotonic()
        pid = start_bridge(listener, account, is_first)
        os.waitpid(pid, 0)
        is_first = False
        lived = time.monotonic() - started
        pause = min(pause * 2, PAUSE_SECONDS_MAX) if lived < SHORT_LIFE_SECONDS else 1
        time.sleep(pause)


def main():
    account = pwd.getpwnam(USER)
    listener = bind()
    make_runtime(account)
    # Whoever started this need not wait.
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    supervise(listener, account)


if __name__ == "__main__":
    main()
