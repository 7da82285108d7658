"""Adapters without their frameworks; with them, they are tested by tests/adapters."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import dayfly.adapters

PLACE = Path(dayfly.adapters.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
# The modules, and what each of them needs.
EXTRAS = {
    "deepagents": "deepagents",
    "inspect": "inspect-ai",
    "langchain": "langchain-core",
    "mini_swe": "mini-swe-agent",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai-slim",
    "smolagents": "smolagents",
}
IMPORTED = {"inspect": "inspect_ai", "langchain": "langchain_core", "mini_swe": "minisweagent"}


def test_every_adapter_has_its_extra_and_its_line() -> None:
    found = {one.stem for one in PLACE.glob("[!_]*.py")}
    assert found == set(EXTRAS)
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    for module, package in EXTRAS.items():
        extra = module.replace("_", "-")
        assert [re.split("[<>=\\[]", one)[0] for one in extras[extra]] == [package]
        line = next(line for line in (dayfly.adapters.__doc__ or "").splitlines() if module in line)
        assert f"'dayfly[{extra}]'" in line
    assert PROJECT["entry-points"]["inspect_ai"] == {"dayfly": "dayfly.adapters.inspect"}


@pytest.mark.parametrize("module", list(EXTRAS))
def test_without_its_framework_an_adapter_names_the_extra(module: str) -> None:
    name = IMPORTED.get(module, module if module != "openai_agents" else "agents")
    if find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    extra = module.replace("_", "-")
    with pytest.raises(ImportError, match=re.escape(f"pip install 'dayfly[{extra}]'")):
        importlib.import_module(f"dayfly.adapters.{module}")


def test_the_package_imports_no_adapter() -> None:
    said = "import sys, dayfly.agents; print('dayfly.adapters' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(PLACE.parents[1])}
    printed = subprocess.check_output([sys.executable, "-c", said], env=environment, text=True)
    assert printed == "False\n"
