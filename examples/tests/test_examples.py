"""The examples as a reader runs them, in real sandboxes, with a model that follows a script.

Each is a process of its own, with the published package of its provider. What is looked at is what
a user would get: a patch, a picture, a file at the next visit, a finding.
"""

from __future__ import annotations

import ast
import os
import struct
import subprocess
import sys
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scripted_model.script import load_script
from scripted_model.server import ScriptedModel

from dayfly import Sandbox, Volume

HERE = Path(__file__).parents[1]
SECONDS_MAX = 240
LINES_MAX = 80
AGENTS = sorted(path.stem for path in (HERE / "scripts").glob("*.json"))
PROJECT = {
    "slug.py": "def slug(text):\n    return text.replace(' ', '-')\n",
    "test_slug.py": (
        "import unittest\nfrom slug import slug\n\n\nclass Slugs(unittest.TestCase):\n"
        "    def test_words(self):\n        self.assertEqual(slug('A title'), 'a-title')\n"
    ),
}


@pytest.fixture(autouse=True)
def no_sandbox_is_left() -> Iterator[None]:
    before = {sandbox.id for sandbox in Sandbox.list()}
    yield
    assert {sandbox.id for sandbox in Sandbox.list()} == before


def run(
    name: str, *arguments: str, model: ScriptedModel | None = None
) -> subprocess.CompletedProcess[str]:
    address = "" if model is None else model.address
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_MODEL": "script-1",
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": "key",
        "OPENAI_MODEL": "script-1",
    }
    return subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def serve(name: str) -> ScriptedModel:
    return ScriptedModel(load_script(HERE / "scripts" / f"{name}.json"))


def played(model: ScriptedModel, done: subprocess.CompletedProcess[str], status: int = 0) -> None:
    """The example ended as it should, and the model had nothing to object to."""
    log = model.log()
    assert log["violations"] == []
    assert done.returncode == status, done.stderr
    assert log["finished"]


def written(place: Path, files: dict[str, str]) -> Path:
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def patched(project: Path, patch: str) -> subprocess.CompletedProcess[str]:
    """Applies a patch to the project on this side, as its user would, and runs the tests."""
    subprocess.run(["git", "apply", "-"], cwd=project, input=patch, text=True, check=True)
    return subprocess.run(
        [sys.executable, "-m", "unittest"], cwd=project, capture_output=True, text=True, check=False
    )


def decoded(png: bytes) -> tuple[int, int]:
    """Width and height of a picture whose every pixel can be read."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, header, data = 8, b"", b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == int.from_bytes(png[at + 8 + length : at + 12 + length])
        if kind == b"IHDR":
            header = body
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", header[:10])
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    # Each line of pixels has one byte before it.
    assert len(zlib.decompress(data)) == height * (1 + (width * samples * depth + 7) // 8)
    return width, height


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_has_less_than_80_lines(name: str) -> None:
    assert len((HERE / f"{name}.py").read_text().splitlines()) < LINES_MAX


def test_the_patch_of_the_coding_agent_makes_the_tests_pass(tmp_path: Path) -> None:
    project = written(tmp_path / "project", PROJECT)
    with serve("coding_agent") as model:
        done = run("coding_agent", str(project), "Make the tests pass.", model=model)
        played(model, done)
    assert (project / "slug.py").read_text() == PROJECT["slug.py"]
    assert patched(project, done.stdout).returncode == 0


def test_the_analyst_returns_a_chart_that_decodes(tmp_path: Path) -> None:
    table, chart = tmp_path / "sales.csv", tmp_path / "chart.png"
    table.write_text("month,amount\nMay,10\nJune,30\nJune,12\nJuly,20\n")
    with serve("data_analyst") as model:
        done = run("data_analyst", str(table), "Which month was best?", str(chart), model=model)
        played(model, done)
    assert done.stdout == "The best month is June 42.\n"
    width, height = decoded(chart.read_bytes())
    assert width > 100
    assert height > 100


def test_the_best_repair_wins_and_not_the_one_that_deleted_the_test(tmp_path: Path) -> None:
    project = written(tmp_path / "project", PROJECT)
    with serve("best_of_repair") as model:
        done = run("best_of_repair", str(project), "python3 -m unittest", "3", model=model)
        played(model, done)
    scores = ast.literal_eval(done.stderr.removeprefix("scores: ").strip())
    assert sorted(scores) == [0.0, 0.0, 1.0]
    assert "test_slug.py" not in done.stdout
    assert patched(project, done.stdout).returncode == 0


def test_the_second_visit_finds_the_file_of_the_first() -> None:
    user = f"test-{uuid.uuid4().hex[:8]}"
    try:
        with serve("user_workspace") as model:
            first = run("user_workspace", user, "I just finished Middlemarch.", model=model)
            assert first.returncode == 0, first.stderr
            second = run("user_workspace", user, "What have I read?", model=model)
            played(model, second)
        assert second.stdout == "You have read Middlemarch.\n"
    finally:
        Volume.get(f"workspace-{user}").delete()


def test_the_review_names_the_line_of_the_planted_bug(tmp_path: Path) -> None:
    source = '"""Prices."""\n\n\ndef average(prices):\n    return sum(prices) / len(prices)\n'
    project = written(tmp_path / "project", {"prices.py": source})
    line = source.splitlines().index("    return sum(prices) / len(prices)") + 1
    with serve("code_review") as model:
        done = run("code_review", str(project), "It adds the average of prices.", model=model)
        played(model, done, status=1)
    assert done.stdout.startswith(f"prices.py:{line}: ")


def test_the_tree_search_finds_the_best_steps_and_draws_its_tree(tmp_path: Path) -> None:
    picture = tmp_path / "tree.svg"
    done = run("tree_search", str(picture))
    assert done.returncode == 0, done.stderr
    # The mistyped prices and the rows without an area are gone, and the curve is a line.
    path = "cut the top 5% > logarithm > drop gaps"
    assert done.stdout == f"{path}: 0.974 from 0.028, 337 rows, 14 forks\n"
    drawn = ElementTree.parse(picture).getroot()
    boxes = drawn.findall("{http://www.w3.org/2000/svg}rect")
    lines = drawn.findall("{http://www.w3.org/2000/svg}path")
    assert (len(boxes), len(lines)) == (15, 14)
    assert len((HERE / "tree_search.py").read_text().splitlines()) < 200
