"""JSON Schema, as much of it as tools and the requests of the three wire formats need.

A keyword that is not known here is refused, in a tool's schema as well: a keyword that a provider
ignores is a rule that nobody keeps.
"""
import re
from collections.abc import Iterator

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}
# What a keyword's own value must be.
TEXT, FLAG, COUNT, NUMBER, ANY = "string", "boolean", "count", "number", "any"
SCHEMA, SCHEMAS, NAMED_SCHEMAS, LIST, NAMES = "schema", "schemas", "named schemas", "array", "names"
KEYWORDS = {
    "$defs": NAMED_SCHEMAS,
    "$ref": TEXT,
    "$schema": TEXT,
    "additionalProperties": SCHEMA,
    "anyOf": SCHEMAS,
    "const": ANY,
    "default": ANY,
    "description": TEXT,
    "enum": LIST,
    "examples": LIST,
    "exclusiveMaximum": NUMBER,
    "exclusiveMinimum": NUMBER,
    "format": TEXT,
    "items": SCHEMA,
    "maxItems": COUNT,
    "maxLength": COUNT,
    "maximum": NUMBER,
    "minItems": COUNT,
    "minLength": COUNT,
    "minimum": NUMBER,
    "pattern": TEXT,
    "properties": NAMED_SCHEMAS,
    "required": NAMES,
    "title": TEXT,
    "type": "type",
}


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_type(value, name: str) -> bool:
    if name == "number":
        return is_number(value)
    if name == "integer":
        return is_number(value) and float(value).is_integer()
    return isinstance(value, TYPES[name])


def same(left, right) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def schema_errors(schema, place: str = "$") -> Iterator[str]:
    """What is wrong with a schema itself."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{place} is not a schema"
        return
    for keyword, value in schema.items():
        kind = KEYWORDS.get(keyword)
        if kind is None:
            yield f"{place} has the unknown keyword {keyword!r}"
        else:
            yield from keyword_errors(kind, value, f"{place}.{keyword}")
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if isinstance(properties, dict) and isinstance(required, list) and "properties" in schema:
        for name in required:
            if name not in properties:
                yield f"{place}.required names {name!r}, which is not among the properties"


def keyword_errors(kind: str, value, place: str) -> Iterator[str]:
    if kind == SCHEMA:
        yield from schema_errors(value, place)
    elif kind in (SCHEMAS, NAMED_SCHEMAS):
        is_list = kind == SCHEMAS
        if not isinstance(value, list if is_list else dict) or (is_list and not value):
            yield f"{place} does not hold schemas"
            return
        for name, part in enumerate(value) if is_list else value.items():
            yield from schema_errors(part, f"{place}.{name}")
    elif not is_keyword_value(kind, value):
        yield f"{place} must not be {value!r}"


def is_keyword_value(kind: str, value) -> bool:
    if kind == "type":
        names = value if isinstance(value, list) else [value]
        return bool(names) and all(name in ("number", "integer", *TYPES) for name in names)
    if kind == COUNT:
        return is_type(value, "integer") and value >= 0
    if kind == NAMES:
        return isinstance(value, list) and all(isinstance(name, str) for name in value)
    return kind == ANY or is_type(value, kind)


def value_errors(value, schema, root=None, place: str = "$") -> list[str]:
    """What is wrong with a value, the deepest place first where several forms were possible."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return [] if schema else [f"{place} is not known here"]
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return value_errors(value, root["$defs"][name], root, place)
    if "anyOf" in schema:
        found = form_errors(value, schema["anyOf"], root, place)
        if found:
            return found
    names = schema.get("type", [])
    names = names if isinstance(names, list) else [names]
    if names and not any(is_type(value, name) for name in names):
        return [f"{place} must be {' or '.join(names)}, not {short(value)}"]
    return [
        *plain_errors(value, schema, place),
        *(object_errors(value, schema, root, place) if isinstance(value, dict) else ()),
        *(list_errors(value, schema, root, place) if isinstance(value, list) else ()),
    ]


def form_errors(value, forms, root, place: str) -> list[str]:
    """Nothing when one form fits; else the errors of the form that `type` or `role` chooses."""
    tried = []
    for form in forms:
        found = value_errors(value, form, root, place)
        if not found:
            return []
        chosen = any(f"{place}.{mark} must be" in error for mark in ("type", "role") for error in found)
        tried.append((chosen, any(error.startswith(f"{place} must be") for error in found), len(found), found))
    return min(tried, key=lambda one: one[:3])[3]


def plain_errors(value, schema, place: str) -> Iterator[str]:
    if "const" in schema and not same(value, schema["const"]):
        yield f"{place} must be {schema['const']!r}, not {short(value)}"
    if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
        yield f"{place} must be one of {schema['enum']}, not {short(value)}"
    if is_number(value):
        for keyword, is_kept, words in (
            ("minimum", lambda limit: value >= limit, "at least"),
            ("maximum", lambda limit: value <= limit, "at most"),
            ("exclusiveMinimum", lambda limit: value > limit, "more than"),
            ("exclusiveMaximum", lambda limit: value < limit, "less than"),
        ):
            if keyword in schema and not is_kept(schema[keyword]):
                yield f"{place} must be {words} {schema[keyword]}"
    if isinstance(value, str):
        yield from size_errors(len(value), schema, "Length", "characters", place)
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{place} must match {schema['pattern']}"


def size_errors(size: int, schema, keyword: str, of_what: str, place: str) -> Iterator[str]:
    if size < schema.get(f"min{keyword}", 0):
        yield f"{place} must have at least {schema[f'min{keyword}']} {of_what}"
    if size > schema.get(f"max{keyword}", size):
        yield f"{place} must have at most {schema[f'max{keyword}']} {of_what}"


def object_errors(value: dict, schema, root, place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place}.{name} is missing"
    for name, part in value.items():
        if name in properties:
            yield from value_errors(part, properties[name], root, f"{place}.{name}")
        elif "additionalProperties" in schema:
            yield from value_errors(part, schema["additionalProperties"], root, f"{place}.{name}")


def list_errors(value: list, schema, root, place: str) -> Iterator[str]:
    yield from size_errors(len(value), schema, "Items", "items", place)
    for index, part in enumerate(value):
        yield from value_errors(part, schema.get("items", True), root, f"{place}[{index}]")


def short(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
