"""The real daemon that some tests need."""

from __future__ import annotations

import os

import pytest

from dayfly._settings import Settings, load_settings


def daemon_settings() -> Settings:
    """Where it is. Without one the test is skipped, or fails where one must be there."""
    if not os.environ.get("DAYFLY_API_URL") or not os.environ.get("DAYFLY_API_KEY"):
        reason = "needs a running daemon: set DAYFLY_API_URL and DAYFLY_API_KEY"
        if os.environ.get("DAYFLY_REQUIRE_VM") == "1":
            pytest.fail(f"DAYFLY_REQUIRE_VM=1, and this test {reason}")
        pytest.skip(reason)
    return load_settings()
