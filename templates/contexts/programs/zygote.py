"""An interpreter that imports much and then makes copies of itself, each the kernel of a context.

Requests come on standard input and answers go to standard output, one JSON text on a line. There
is one thread and no socket before a copy is made, so that a copy is a whole interpreter.
"""

import gc
import importlib
import json
import os
import select
import signal
import sys

import kernel

# This file's directory is no place for a user's imports.
del sys.path[0]


def preload(modules):
    os.environ["MPLBACKEND"] = "agg"
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            # Not in this image; whoever needs it will say so.
            pass


def rehearse():
    """Uses what was imported once: much is only made at the first use."""
    rehearse_traceback()
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
        frame._repr_html_()
        frame.describe()
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        import io

        figure, axes = pyplot.subplots()
        axes.plot([1, 2, 3])
        axes.set_title("x")
        figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
        pyplot.close("all")


def rehearse_traceback():
    from IPython.core import ultratb

    try:
        raise ValueError
    except ValueError:
        ultratb.AutoFormattedTB(mode="Context").structured_traceback(*sys.exc_info())


def become_kernel(request, application):
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    os.chdir(request["cwd"])
    # What was imported stays out of collections: each would copy all of it.
    gc.enable()
    kernel.control_process(kernel.NAME_PROCESS, b"python3")
    kernel.run(request["connection_file"], application)


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def spawn(request, application):
    pid = os.fork()
    if pid:
        answer({"pid": pid})
        return
    status = 1
    try:
        become_kernel(request, application)
        status = 0
    finally:
        os._exit(status)


def report_ended():
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        answer({"ended": pid, "status": status})


def serve(application):
    wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    unread = b""
    while True:
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            report_ended()
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                spawn(json.loads(line), application)


def main():
    kernel.control_process(kernel.NAME_PROCESS, b"dayfly-zygote")
    kernel.control_process(kernel.DIE_WITH_PARENT, signal.SIGKILL)
    application = kernel.make_application()
    preload(sys.argv[1:])
    del sys.argv[1:]
    rehearse()
    # Copies shall share these objects: a collection would write to every one of them.
    gc.collect()
    gc.disable()
    gc.freeze()
    answer({"ready": True})
    serve(application)


if __name__ == "__main__":
    main()
