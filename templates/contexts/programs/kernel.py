"""One Python interpreter of a context: ipykernel with its settings."""

import json
import os
import random
import signal
import sys

# A dict or list that takes more is shown as text alone.
JSON_CHARACTERS_MAX = 256 * 1024
DIE_WITH_PARENT = 1
NAME_PROCESS = 15


def settings():
    from traitlets.config import Config

    config = Config()
    config.IPKernelApp.quiet = True
    config.InteractiveShell.colors = "nocolor"
    config.HistoryManager.enabled = False
    config.InlineBackend.figure_formats = {"png"}
    return config


def json_or_nothing(value):
    """The value itself if it is JSON and short, for results that are dicts or lists."""
    encoder = json.JSONEncoder(allow_nan=False)
    try:
        size = 0
        for piece in encoder.iterencode(value):
            size += len(piece)
            if size > JSON_CHARACTERS_MAX:
                return None
    except (TypeError, ValueError, RecursionError):
        return None
    return value


def reseed_before_first_run(shell):
    """Two sandboxes must not draw the same numbers, although both got the same warm interpreter.

    What warms it up runs silently, and does not count as a run.
    """

    def reseed(_):
        shell.events.unregister("pre_run_cell", reseed)
        random.seed()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()

    shell.events.register("pre_run_cell", reseed)


def make_application():
    from ipykernel.kernelapp import IPKernelApp

    class ContextKernel(IPKernelApp):
        def init_iopub(self, context):
            # The default keeps a thousand messages and drops the rest without a word.
            context.sndhwm = 0
            super().init_iopub(context)

        def init_shell(self):
            super().init_shell()
            formatter = self.shell.display_formatter.formatters["application/json"]
            formatter.for_type(dict, json_or_nothing)
            formatter.for_type(list, json_or_nothing)
            reseed_before_first_run(self.shell)
            # A copy of an interpreter that has drawn something already chose how to draw.
            if "matplotlib.pyplot" in sys.modules:
                self.shell.enable_matplotlib("inline")

    return ContextKernel


def control_process(option, value):
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def run(connection_file, application=None):
    # Nobody could reach it any more.
    control_process(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    os.environ["TERM"] = "dumb"
    kernel = (application or make_application()).instance(config=settings())
    kernel.initialize(["-f", connection_file])
    kernel.start()


def main():
    # This file's directory is no place for a user's imports.
    del sys.path[0]
    run(sys.argv[1])


if __name__ == "__main__":
    main()
