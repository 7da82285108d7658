"""What happens in a run, in the form in which it is sent."""

import json

from .limits import (
    ERROR_CHARACTERS_MAX,
    EVENT_BYTES_MAX,
    TEXT_CHARACTERS_MAX,
    TRACEBACK_LINES_MAX,
)

MIME_TYPES = (
    "text/plain",
    "text/html",
    "text/markdown",
    "text/latex",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "application/json",
)
# For the keys, numbers and quotes around the data of a result.
ENVELOPE_BYTES = 4096


def encode(event):
    """One line. What is no Unicode text, such as half a surrogate pair, is replaced."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def stream(kind, text):
    """`stdout` or `stderr`, in pieces that fit."""
    for start in range(0, len(text), TEXT_CHARACTERS_MAX):
        yield {"type": kind, "text": text[start : start + TEXT_CHARACTERS_MAX]}


def result(bundle, is_main):
    """A MIME bundle, with the types that clients know. All values are strings.

    What does not fit in a line is left out, and `left_out` says so with its size in bytes.
    """
    data, left_out = {}, {}
    room = EVENT_BYTES_MAX - ENVELOPE_BYTES
    for mime in MIME_TYPES:
        if mime not in bundle:
            continue
        value = _as_text(mime, bundle[mime])
        size = len(encode(value))
        if size > room:
            left_out[mime] = len(value.encode("utf-8", "replace"))
            continue
        room -= size
        data[mime] = value
    event = {"type": "result", "data": data, "is_main": is_main}
    if left_out:
        event["left_out"] = left_out
        if "text/plain" not in data:
            what = ", ".join(f"{mime} of {size} bytes" for mime, size in left_out.items())
            data["text/plain"] = f"[left out, larger than an event may be: {what}]"
    return event if data else None


def _as_text(mime, value):
    if isinstance(value, str):
        # Some libraries wrap the lines of an image.
        return value.replace("\n", "") if mime in ("image/png", "image/jpeg") else value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        if mime != "application/json":
            return "".join(value)
    return json.dumps(value, ensure_ascii=False)


def restarted(why):
    """The run found no interpreter, and has a new one without the state of before."""
    return {"type": "restarted", "reason": _shortened(why)}


def error(name, value, traceback=()):
    lines = [_shortened(line) for line in traceback]
    if len(lines) > TRACEBACK_LINES_MAX:
        half = TRACEBACK_LINES_MAX // 2
        omitted = len(lines) - 2 * half
        lines = lines[:half] + [f"[{omitted} lines left out]"] + lines[-half:]
    # Together they must fit too.
    while len(encode(lines)) > EVENT_BYTES_MAX // 2:
        half = len(lines) // 4
        lines = lines[:half] + ["[lines left out]"] + lines[len(lines) - half :]
    return {
        "type": "error",
        "name": _shortened(name),
        "value": _shortened(value),
        "traceback": lines,
    }


def _shortened(text):
    omitted = len(text) - ERROR_CHARACTERS_MAX
    if omitted <= 0:
        return text
    return f"{text[:ERROR_CHARACTERS_MAX]}[{omitted} characters left out]"
