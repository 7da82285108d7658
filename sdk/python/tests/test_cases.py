"""The shared cases, against a real daemon, for both kinds of sandbox."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from case_steps import CaseRun, load_cases
from daemon import daemon_settings

from dayfly import AsyncSandbox, Sandbox

CASES = load_cases()


@pytest.mark.parametrize("kind", [Sandbox, AsyncSandbox], ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], kind: type[Sandbox] | type[AsyncSandbox]) -> None:
    daemon_settings()
    asyncio.run(CaseRun(kind, case).run())


def test_there_are_cases() -> None:
    assert CASES, "tests/cases was not found beside the SDK"
