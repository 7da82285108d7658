"""Methods as tools of an agent: which arguments a model is shown.

Frameworks make a tool of a method by its signature, and most of them have pydantic write a schema
of it. A callback or an interpreter has none, and what a program decides is not for a model to
choose. Such arguments are marked, and pydantic leaves them out; nothing here needs it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

T = TypeVar("T")


class _ForPrograms:
    """Has pydantic leave an argument out of the schema, and take any value for it."""

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> dict[str, Any]:
        return {"type": "any"}

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, Any]:
        from pydantic_core import PydanticOmit  # type: ignore[import-not-found,unused-ignore]

        raise PydanticOmit

    def __repr__(self) -> str:
        return "FOR_PROGRAMS"


FOR_PROGRAMS = _ForPrograms()

# An argument that is for the program that holds the sandbox, not for a model that uses it.
Own = Annotated[T, FOR_PROGRAMS]
# Is told of output.
OnOutput = Callable[[str], Any]
