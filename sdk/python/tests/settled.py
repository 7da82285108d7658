"""One text for both worlds: what has to be awaited is awaited."""

from __future__ import annotations

import inspect
from typing import Any


async def settled(value: Any) -> Any:
    if inspect.isawaitable(value):
        return await value
    return value
