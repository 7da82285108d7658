"""The calls of a builder as shared cases have them."""

from __future__ import annotations

from typing import Any

from dayfly import AsyncTemplate, Template


def built(
    kind: type[Template] | type[AsyncTemplate], calls: list[list[Any]], **options: Any
) -> Any:
    """A builder after those calls. ``options`` are of the first."""
    builder: Any = kind
    for name, *arguments in calls:
        keywords = options if name.startswith("from_") else {}
        if name == "start" and len(arguments) == 2:
            keywords = {"ready": arguments.pop()}
        elif name == "copy" and len(arguments) == 3:
            keywords = arguments.pop()
        builder = getattr(builder, name)(*arguments, **keywords)
    return builder
