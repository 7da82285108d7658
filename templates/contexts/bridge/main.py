"""Parses the command line and serves."""

import argparse
import asyncio
import ctypes
import os
import socket

from .registry import Registry
from .server import Server

NAME_PROCESS = 15


def arguments():
    parser = argparse.ArgumentParser(prog="contexts")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--listen-fd", type=int, help="a listening socket that was handed over")
    where.add_argument("--socket", help="where to listen")
    parser.add_argument("--runtime", required=True, help="a directory of this user alone")
    parser.add_argument("--workspace", default="/workspace")
    parser.add_argument("--warm", action="store_true", help="import the scientific stack first")
    return parser.parse_args()


def listener(options):
    if options.listen_fd is not None:
        return socket.socket(fileno=options.listen_fd)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(options.socket)
    bound.listen(128)
    return bound


def sweep(runtime):
    """What a bridge that was killed has left."""
    for directory, _, files in os.walk(runtime, topdown=False):
        for name in files:
            os.unlink(os.path.join(directory, name))
        if directory != runtime:
            os.rmdir(directory)


async def serve(options):
    bound = listener(options)
    bound.setblocking(False)
    registry = Registry(options.runtime, options.workspace)
    if options.warm:
        # Answers wait until then: the first one says that everything is there.
        await registry.warm_up()
    await Server(registry).serve(bound)


def main():
    options = arguments()
    # So that `pkill python` means what its user thinks.
    ctypes.CDLL(None).prctl(NAME_PROCESS, b"dayfly-contexts", 0, 0, 0)
    os.umask(0o022)
    sweep(options.runtime)
    asyncio.run(serve(options))
