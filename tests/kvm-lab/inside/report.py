"""Reports of the lab, a line of JSON each, to whoever booted it and keeps them."""
import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

RESULTS = Path("/lab/results")
START = time.monotonic()
TOLD_EVERY_SECONDS = 30


def tell(event: str, **fields: object) -> None:
    line = json.dumps({"event": event, "at": round(time.monotonic() - START, 1), **fields}) + "\n"
    # One write for each line: other programs may write to the port as well.
    port = os.open(os.environ["LAB_REPORT"], os.O_WRONLY | os.O_NOCTTY)
    try:
        rest = line.encode()
        while rest:
            rest = rest[os.write(port, rest):]
    finally:
        os.close(port)


@contextlib.contextmanager
def telling(event: str, words: Callable[[], str]) -> Iterator[None]:
    """Reports from time to time how far something is that takes minutes."""
    done = threading.Event()

    def tell_words() -> None:
        while not done.wait(TOLD_EVERY_SECONDS):
            tell(event, words=words())

    teller = threading.Thread(target=tell_words, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
