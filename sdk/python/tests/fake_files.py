"""The files of a fake sandbox, as far as tools read and write them."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from fake_daemon import SANDBOX, Answer, FakeDaemon, Reply, Seen, refusal

FILES = f"/v1/sandboxes/{SANDBOX}/fs"


class FakeFiles:
    """Files by their path; a range is given as a server gives it."""

    def __init__(self, fake: FakeDaemon) -> None:
        self.content: dict[str, bytes] = {}
        fake.on("GET", FILES, self._read)
        fake.on("PUT", FILES, self._write)

    def _read(self, seen: Seen) -> Answer:
        content = self.content.get(_path(seen))
        if content is None:
            return refusal(404, "not_found")
        asked = seen.headers.get("range")
        if asked is None:
            return Reply(200, content)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if int(first) >= len(content):
            return refusal(416, "range_not_satisfiable")
        return Reply(206, content[int(first) : int(last) + 1 if last else None])

    def _write(self, seen: Seen) -> Answer:
        self.content[_path(seen)] = seen.body
        return Reply(200, {"bytes": len(seen.body)})


def _path(seen: Seen) -> str:
    return parse_qs(urlsplit(seen.path).query)["path"][0]
