"""Arguments that a model made up, held to the schema of their tool.

Only the words of JSON Schema that our definitions use are known here; a test says that they use no
other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from ._for_model import named

KNOWN_WORDS = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "default",
        "enum",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "minLength",
        "items",
        "minItems",
        "maxItems",
    }
)
_KINDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}


# Larger whole numbers may not be exact in JSON, and the largest fit into no float.
NUMBER_MAX = 2**53


class ArgumentsRefused(Exception):
    """The arguments do not fit; the text says which and why, for the model."""


def parsed(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Arguments as an object; some providers give the text of one."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        value: object = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        raise ArgumentsRefused("the arguments are not JSON") from None
    if not isinstance(value, dict):
        raise ArgumentsRefused("the arguments are not a JSON object")
    return cast("dict[str, Any]", value)


def fitted(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with their defaults, or why they do not fit."""
    properties = cast("Mapping[str, Mapping[str, Any]]", schema["properties"])
    for name in arguments:
        if name not in properties:
            takes = ", ".join(properties)
            raise ArgumentsRefused(f"there is no argument {named(name)}; it takes {takes}")
    found: dict[str, Any] = {}
    for name, rule in properties.items():
        value = arguments.get(name)
        if value is None:
            # Some models send null for what they leave out.
            if name in schema["required"]:
                raise ArgumentsRefused(f"{name} is missing")
            found[name] = rule.get("default")
        else:
            found[name] = _value(name, rule, value)
    return found


def _value(name: str, rule: Mapping[str, Any], value: object) -> Any:
    kind = rule["type"]
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        value = int(value)
    if not _is_of(kind, value):
        raise ArgumentsRefused(f"{name} must be {_KINDS[kind]}")
    if isinstance(value, str):
        _check_text(name, rule, value)
    elif isinstance(value, (int, float)):
        _check_number(name, rule, value)
    elif isinstance(value, list):
        values = cast("list[object]", value)
        _check_length(name, rule, len(values))
        return [_value(f"{name}[{index}]", rule["items"], one) for index, one in enumerate(values)]
    return value


def _is_of(kind: str, value: object) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "array":
        return isinstance(value, list)
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (
        kind == "number" and isinstance(value, float) and math.isfinite(value)
    )


def _check_text(name: str, rule: Mapping[str, Any], value: str) -> None:
    allowed = rule.get("enum")
    if allowed is not None and value not in allowed:
        raise ArgumentsRefused(f"{name} must be one of {', '.join(allowed)}")
    if len(value) < rule.get("minLength", 0):
        raise ArgumentsRefused(f"{name} must not be empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ArgumentsRefused(f"{name} has a half of a surrogate pair in it") from None


def _check_number(name: str, rule: Mapping[str, Any], value: float) -> None:
    if isinstance(value, int) and abs(value) > NUMBER_MAX:
        raise ArgumentsRefused(f"{name} is too large")
    if "minimum" in rule and value < rule["minimum"]:
        raise ArgumentsRefused(f"{name} must be at least {rule['minimum']}")
    if "exclusiveMinimum" in rule and value <= rule["exclusiveMinimum"]:
        raise ArgumentsRefused(f"{name} must be greater than {rule['exclusiveMinimum']}")
    if "maximum" in rule and value > rule["maximum"]:
        raise ArgumentsRefused(f"{name} must be at most {rule['maximum']}")


def _check_length(name: str, rule: Mapping[str, Any], length: int) -> None:
    if length < rule.get("minItems", 0):
        raise ArgumentsRefused(f"{name} must have at least {rule['minItems']} entry")
    if length > rule.get("maxItems", length):
        raise ArgumentsRefused(f"{name} must have at most {rule['maxItems']} entries")
