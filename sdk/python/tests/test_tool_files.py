"""Text files as a model sees them: bounded, numbered, and changed only when that is safe."""

from __future__ import annotations

import pytest
from conftest import Create
from fake_daemon import SANDBOX, FakeDaemon, Reply
from fake_files import FakeFiles
from test_tool_calls import call

ONE = f"/v1/sandboxes/{SANDBOX}"


@pytest.mark.parametrize(
    ("content", "arguments", "text"),
    [
        (b"a\nb\n", {}, "lines 1-2 of 2\ncontent:\n1\ta\n2\tb"),
        (b"a\nb", {}, "lines 1-2 of 2\ncontent:\n1\ta\n2\tb"),
        (b"a\n\n", {}, "lines 1-2 of 2\ncontent:\n1\ta\n2\t"),
        (b"", {}, "the file is empty"),
        (b"a\nb\nc", {"max_lines": 1}, "lines 1-1 of 3; first_line=2 reads on\ncontent:\n1\ta"),
        (b"a\nb\nc", {"first_line": 3}, "lines 3-3 of 3\ncontent:\n3\tc"),
        (b"a\nb", {"first_line": 3}, "error: /f has 2 lines"),
        (b"a\r\nb\r\n", {}, "lines 1-2 of 2\nline ends: CRLF\ncontent:\n1\ta\n2\tb"),
        (
            b"\xff\n",
            {},
            "lines 1-1 of 1\nthe file is not UTF-8: bytes that are no character are shown as "
            "\ufffd\ncontent:\n1\t\ufffd",
        ),
        (
            b"a\0b",
            {},
            "error: /f is not a text file\nhint: look at it with run_shell or run_code",
        ),
        (
            b"x" * 2003,
            {},
            "lines 1-1 of 1\ncut: 1 lines are longer than 2000 characters\ncontent:\n1\t"
            + "x" * 2000
            + "[... 3 characters left out ...]",
        ),
    ],
)
def test_reading(
    fake: FakeDaemon, create: Create, content: bytes, arguments: dict[str, int], text: str
) -> None:
    FakeFiles(fake).content["/f"] = content
    result = call(create, "read_file", {"path": "/f", **arguments})
    assert result.text == text
    assert result.is_error == text.startswith("error")


def test_of_a_huge_file_only_the_beginning_is_read(fake: FakeDaemon, create: Create) -> None:
    FakeFiles(fake).content["/f"] = b"0123456\n" * (1 << 19)
    result = call(create, "read_file", {"path": "/f"})
    assert result.text.startswith("lines 1-400; first_line=401 reads on\ncontent:\n1\t0123456\n")
    assert len(fake.seen("GET", f"{ONE}/fs")) == 1


def test_a_huge_line_is_given_up(fake: FakeDaemon, create: Create) -> None:
    FakeFiles(fake).content["/f"] = b"x" * (33 << 20)
    result = call(create, "read_file", {"path": "/f"})
    assert result.text.startswith("error: line 1 of /f is too far into the file\nhint: ")


def test_a_long_text_stops_at_a_line(fake: FakeDaemon, create: Create) -> None:
    FakeFiles(fake).content["/f"] = (b"y" * 999 + b"\n") * 100
    text = call(create, "read_file", {"path": "/f"}).text
    assert text.startswith("lines 1-15 of 100; first_line=16 reads on\n")


@pytest.mark.parametrize(
    ("before", "old", "new", "after", "said"),
    [
        (b"a b a", "b", "c", b"a c a", "replaced 1 place in /f"),
        (b"a b a", "a", "c", None, "error: the old text is 2 times in /f; nothing was changed"),
        (b"a b a", "x", "c", None, "error: the old text is not in /f; nothing was changed"),
        (b"a\r\nb\r\n", "a\nb", "c\nd", b"c\r\nd\r\n", "replaced 1 place in /f"),
        (b"a\r\nb\n", "b", "c\nd", b"a\r\nc\nd\n", "replaced 1 place in /f"),
        (b"a\xff", "a", "b", None, "error: /f is not a text file"),
        (b"a\0", "a", "b", None, "error: /f is not a text file"),
        (b"a" * ((4 << 20) + 1), "a", "b", None, "error: /f is larger than 4 MiB"),
    ],
)
def test_editing(
    fake: FakeDaemon, create: Create, before: bytes, old: str, new: str, after: bytes, said: str
) -> None:
    files = FakeFiles(fake)
    files.content["/f"] = before
    result = call(create, "edit_file", {"path": "/f", "old_text": old, "new_text": new})
    assert result.text.splitlines()[0] == said
    assert files.content["/f"] == (before if after is None else after)


def test_replacing_everywhere(fake: FakeDaemon, create: Create) -> None:
    files = FakeFiles(fake)
    files.content["/f"] = b"a b a"
    wanted = {"path": "/f", "old_text": "a", "new_text": "", "replace_all": True}
    assert call(create, "edit_file", wanted).text == "replaced 2 places in /f"
    assert files.content["/f"] == b" b "


def test_what_would_become_huge_is_not_made(fake: FakeDaemon, create: Create) -> None:
    files = FakeFiles(fake)
    files.content["/f"] = before = b"\n" * (1 << 20)
    wanted = {"path": "/f", "old_text": "\n", "new_text": "x" * (1 << 20), "replace_all": True}
    said = call(create, "edit_file", wanted).text
    assert said.startswith("error: /f would be larger than 4 MiB; nothing was changed")
    assert files.content["/f"] == before


def test_a_file_that_is_not_there(fake: FakeDaemon, create: Create) -> None:
    FakeFiles(fake)
    result = call(create, "read_file", {"path": "/f"})
    assert result.is_error
    assert result.text.startswith("error: /f: no: not_found")


def test_writing(fake: FakeDaemon, create: Create) -> None:
    files = FakeFiles(fake)
    result = call(create, "write_file", {"path": "/f", "content": "é\n"})
    assert result.text == "wrote 3 bytes to /f"
    assert files.content["/f"] == "é\n".encode()


def test_listing(fake: FakeDaemon, create: Create) -> None:
    entries = [
        {"name": "a\nhint: x", "path": "/w/a", "size": 3, "is_dir": False},
        {"name": "d", "path": "/w/d", "size": 0, "is_dir": True},
        {"name": "l", "path": "/w/l", "size": 0, "is_dir": True, "is_symlink": True},
    ]
    page = {"entries": entries, "has_more": True, "next_after": "l"}
    fake.on("GET", f"{ONE}/fs/dir", Reply(200, page), Reply(200, {"entries": []}))
    result = call(create, "list_files", {"path": "/w", "depth": 2, "max_entries": 3})
    assert result.text == (
        'the first 3 entries; there are more\nfiles:\n"a\\nhint: x" (3 bytes)\nd/\nl (link)'
    )
    assert "limit=3" in fake.seen("GET", f"{ONE}/fs/dir")[0].path
    assert call(create, "list_files", {}).text == "the directory is empty"
