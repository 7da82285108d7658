"""Keeps what daemons and engines of a test say, although the test removes their files.

Files are opened as they appear, and an open file can be read after it was removed.
"""
import os
import threading
from pathlib import Path

PAUSE_SECONDS = 0.3
FILES_MAX = 2000
BYTES_MAX = 4 << 20
PATTERNS = ("*/daemon.log", "*/node/slots/*/run/console.log")


class Witness:
    """Watches a directory of data directories for as long as the context lasts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.opened: dict[tuple[int, int], tuple[str, int]] = {}
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self) -> "Witness":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        for _, descriptor in self.opened.values():
            os.close(descriptor)

    def watch(self) -> None:
        while not self.stop.wait(PAUSE_SECONDS):
            for pattern in PATTERNS:
                for path in self.directory.glob(pattern):
                    self.open(path)

    def open(self, path: Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # Gone again, or not there yet.
            return
        status = os.fstat(descriptor)
        key = (status.st_dev, status.st_ino)
        if key in self.opened or len(self.opened) >= FILES_MAX:
            os.close(descriptor)
        else:
            self.opened[key] = (str(path.relative_to(self.directory)), descriptor)

    def keep(self, to: Path) -> None:
        """Writes down everything that was said so far."""
        for number, (name, descriptor) in enumerate(list(self.opened.values())):
            text = os.pread(descriptor, BYTES_MAX, 0)
            if text:
                to.mkdir(parents=True, exist_ok=True)
                (to / f"{number:03}-{name.replace('/', '_')}").write_bytes(text)
