"""What a script expects of a request, and what a request has instead."""
import re
from collections.abc import Iterator

from .conversation import Conversation, ToolResult

EXIT_CODE = re.compile(r"^(?:exit code|[^\n]*\(exit code) (\d+)")


def unmet(expect: dict, conversation: Conversation, gap_ms: float) -> Iterator[str]:
    """A sentence for each expectation that the request does not meet."""
    heard = conversation.heard()[-1]
    wanted = expect.get("results") or ([expect["result"]] if "result" in expect else [])
    if wanted and len(wanted) != len(heard.results):
        yield f"expected {len(wanted)} tool results, got {len(heard.results)}"
    for index, (one, result) in enumerate(zip(wanted, heard.results, strict=False)):
        yield from (f"tool result {index}: {words}" for words in unmet_text(one, result))
    if "user" in expect:
        last = next((turn.text for turn in reversed(conversation.heard()) if turn.text), "")
        yield from (f"the user's message: {words}" for words in unmet_text(expect["user"], words_of(last)))
    if "system" in expect:
        given = words_of(conversation.system)
        yield from (f"the system's message: {words}" for words in unmet_text(expect["system"], given))
    if "tools" in expect and sorted(conversation.tools) != sorted(expect["tools"]):
        yield f"expected the tools {sorted(expect['tools'])}, got {sorted(conversation.tools)}"
    for text in expect.get("only_in_results", []):
        yield from strays(text, conversation)
    if gap_ms < expect.get("gap_ms", 0):
        yield f"the request came after {gap_ms:.0f} ms, expected at least {expect['gap_ms']} ms"


def words_of(text: str) -> ToolResult:
    return ToolResult("", text, None)


def strays(text: str, conversation: Conversation) -> Iterator[str]:
    """Output of a tool is data: no word of it may stand where the user or the system speaks."""
    if text in conversation.system:
        yield f"the system's message has {text!r}, which only a tool said"
    for turn in conversation.heard():
        if text in turn.text:
            yield f"a message of the user has {text!r}, which only a tool said"
    if not any(text in result.text for turn in conversation.heard() for result in turn.results):
        yield f"no tool result has {text!r}"


def unmet_text(wanted: dict, given: ToolResult) -> Iterator[str]:
    text = given.text
    for part in listed(wanted.get("contains")):
        if part not in text:
            yield f"expected {part!r} in {start(text)}"
    for part in listed(wanted.get("lacks")):
        if part in text:
            yield f"expected no {part!r} in {start(text)}"
    if not text.startswith(wanted.get("starts_with", "")):
        yield f"expected {wanted['starts_with']!r} at the start of {start(text)}"
    if wanted.get("equals", text) != text:
        yield f"expected {wanted['equals']!r}, got {start(text)}"
    if "matches" in wanted and not re.search(wanted["matches"], text):
        yield f"expected a match of {wanted['matches']!r} in {start(text)}"
    size = len(text.encode("utf-8", "surrogatepass"))
    if not wanted.get("min_bytes", 0) <= size <= wanted.get("max_bytes", size):
        yield f"it has {size} bytes, which is outside of what was expected"
    if "exit_code" in wanted:
        found = EXIT_CODE.match(text)
        if not found or int(found[1]) != wanted["exit_code"]:
            yield f"expected exit code {wanted['exit_code']} in the first line of {start(text)}"
    # Not every format can say these: a result of Chat Completions is text alone.
    if given.is_error is not None and wanted.get("is_error", given.is_error) != given.is_error:
        yield f"expected is_error {wanted['is_error']} for {start(text)}"
    if given.images is not None and wanted.get("images", given.images) != given.images:
        yield f"expected {wanted['images']} images, got {given.images}"


def listed(value) -> list:
    return [] if value is None else [value] if isinstance(value, str) else value


def start(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")
