"""Changes of a directory, one after the other."""

from __future__ import annotations

import json

from ._effects import Body, Operation, Read
from ._files import name_path, names_path
from ._retry import open_body
from ._sse import Event, EventParser
from ._wire import Json, get, path_of, with_query
from .errors import AnswerLost, error_of_fields
from .models import FileChange

# The server sends a comment after 10 s without a change.
SILENCE_SECONDS = 45.0


class WatchState:
    """An open watch. Not opened again when it is cut off: changes would be missed silently."""

    def __init__(self, body: Body, sandbox: str, path: str) -> None:
        self._body = body
        self._sandbox = sandbox
        self._path = path
        self._parser = EventParser()
        self._waiting: list[Event] = []
        self.is_over: bool = False

    def next(self) -> Operation[FileChange | None]:
        """The next change; ``None`` when the directory is gone or the watch was closed."""
        while not self.is_over:
            event = yield from self._event()
            data: Json = json.loads(event.data)
            if event.name == "change":
                return FileChange(
                    str(data["kind"]),
                    str(data["path"]),
                    bool(data.get("is_dir")),
                    data.get("from"),
                )
            if event.name == "overflow":
                return FileChange("overflow")
            if event.name == "end":
                self.close()
            if event.name == "error":
                self.close()
                error = error_of_fields(data)
                name_path(error, self._sandbox, self._path)
                raise error
        return None

    def wait_until_ready(self) -> Operation[None]:
        """Everything after this is told."""
        event = yield from self._event()
        if event.name != "ready":
            self._waiting.insert(0, event)

    def _event(self) -> Operation[Event]:
        while not self._waiting:
            try:
                piece: bytes = yield Read(self._body, SILENCE_SECONDS)
            except AnswerLost:
                self.close()
                raise
            if not piece:
                self.close()
                raise AnswerLost("the watch was cut off; changes may have been missed")
            self._waiting += self._parser.push(piece)
        return self._waiting.pop(0)

    def close(self) -> None:
        self.is_over = True
        self._body.close()


@names_path
def open_watch(
    sandbox: str, path: str, *, recursive: bool, user: str | None
) -> Operation[WatchState]:
    address = with_query(
        path_of("sandboxes", sandbox, "fs", "watch"),
        path=path,
        recursive=True if recursive else None,
        user=user,
    )
    state = WatchState((yield from open_body(get(address))), sandbox, path)
    yield from state.wait_until_ready()
    return state
