"""How results read to a model: the cases that every client is held to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from dayfly import ExecResult, Execution, ExecutionError, Result
from dayfly._for_model import MODEL_BYTES, named

TEXTS = cast(
    "dict[str, Any]",
    json.loads((Path(__file__).parents[2] / "tools" / "texts.json").read_text(encoding="utf-8")),
)
CASES = cast("list[dict[str, Any]]", TEXTS["cases"])
NAMES = cast("list[dict[str, str]]", TEXTS["names"])


def result_of(case: dict[str, Any]) -> ExecResult | Execution:
    if "exec" in case:
        return ExecResult(**case["exec"])
    given = dict(case["code"])
    given["results"] = [Result(one) for one in given["results"]]
    if "error" in given:
        given["error"] = ExecutionError(given["error"]["name"], given["error"]["value"])
    return Execution(**given)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_result_reads_as_in_the_list(case: dict[str, Any]) -> None:
    most = case.get("max_bytes", TEXTS["default_max_bytes"])
    assert result_of(case).for_model(most) == case["text"]


@pytest.mark.parametrize("case", NAMES, ids=[ascii(case["name"][:20]) for case in NAMES])
def test_a_name_reads_as_in_the_list(case: dict[str, str]) -> None:
    assert named(case["name"]) == case["shown"]


def test_half_of_a_surrogate_pair_in_a_name_can_be_sent() -> None:
    # Not in the list: not every language has such texts.
    assert named("a\udc80") == '"a\ufffd"'


def test_the_limit_is_the_one_of_the_list() -> None:
    assert TEXTS["default_max_bytes"] == MODEL_BYTES


def test_a_hundred_changed_files_are_not_all_named() -> None:
    files = [f"/workspace/{number}" for number in range(100)]
    text = ExecResult("", "", 0, changed_files=files).for_model()
    assert text.splitlines()[1].endswith("/workspace/19 and 80 more")
