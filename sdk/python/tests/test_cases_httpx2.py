"""The shared cases once more, with the driver on httpx2, under trio and under asyncio."""

from __future__ import annotations

from typing import Any

import pytest
from case_steps import CaseRun, load_cases
from daemon import daemon_settings

from dayfly import AsyncSandbox

anyio: Any = pytest.importorskip("anyio")
pytest.importorskip("httpx2")
pytest.importorskip("trio")

from dayfly.httpx2 import AsyncClient  # noqa: E402

CASES = load_cases()


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], backend: str) -> None:
    settings = daemon_settings()

    async def main() -> None:
        async with AsyncClient(settings.url, settings.key) as client:
            await CaseRun(AsyncSandbox, case, client).run()

    anyio.run(main, backend=backend)
