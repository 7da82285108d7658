"""The Dockerfile that a builder makes, by the cases that both SDKs and the parser share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from template_calls import built

from dayfly import AsyncTemplate, Template
from dayfly._ignoring import IgnoreRules

SHARED = Path(__file__).parents[2] / "templates"
CASES = cast(
    "list[dict[str, Any]]",
    json.loads((SHARED / "dockerfiles.json").read_text(encoding="utf-8")),
)
IGNORED = cast(
    "list[tuple[str, str, bool]]",
    json.loads((SHARED / "ignored.json").read_text(encoding="utf-8")),
)


@pytest.mark.parametrize("kind", [Template, AsyncTemplate], ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_text_is_that_of_the_case(
    case: dict[str, Any], kind: type[Template] | type[AsyncTemplate]
) -> None:
    if "refused" in case:
        with pytest.raises(ValueError, match=case["refused"]):
            built(kind, case["calls"])
    else:
        assert built(kind, case["calls"]).dockerfile == "\n".join([*case["dockerfile"], ""])


def test_each_call_gives_a_new_builder() -> None:
    first = Template.from_template("base")
    one, other = first.run("a"), first.run("b")
    assert first.dockerfile == "FROM base\n"
    assert (one.dockerfile, other.dockerfile) == ("FROM base\nRUN a\n", "FROM base\nRUN b\n")


def test_a_dockerfile_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text("FROM base\nRUN a", encoding="utf-8")
    for given in (path, str(path)):
        assert Template.from_dockerfile(given).run("b").dockerfile == "FROM base\nRUN a\nRUN b\n"
    assert Template.from_dockerfile("from base").dockerfile == "from base"
    with pytest.raises(FileNotFoundError):
        Template.from_dockerfile("nowhere/Dockerfile")


def test_a_value_is_not_told_in_an_error() -> None:
    with pytest.raises(ValueError, match="KEY") as caught:
        Template.from_template("base").env({"KEY": "secret\n"})
    assert "secret" not in str(caught.value)


def test_nothing_is_left_out_that_the_server_would_take() -> None:
    understood = 0
    for patterns, path, is_hidden in IGNORED:
        hides = IgnoreRules(patterns).hides(path)
        assert not hides or is_hidden, (patterns, path)
        if not any(mark in patterns for mark in ("[", "\\", "..")):
            assert hides == is_hidden, (patterns, path)
            understood += 1
    assert understood > 40
