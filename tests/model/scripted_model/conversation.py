"""What a request says, whichever wire format it came in."""
from dataclasses import dataclass, field


class Refused(Exception):
    """A request that a provider would not take. `param` is the place in it, as OpenAI names it."""

    def __init__(self, message: str, param: str | None = None):
        super().__init__(message)
        self.param = param


@dataclass(frozen=True)
class ToolCall:
    id: str
    tool: str
    arguments_text: str


@dataclass(frozen=True)
class ToolResult:
    """`is_error` and `images` are None where the wire format has no place for them."""

    call_id: str
    text: str
    is_error: bool | None
    images: int | None = 0


@dataclass
class Said:
    """One turn of the model, as the request gives it back."""

    text: str = ""
    calls: list = field(default_factory=list)


@dataclass
class Heard:
    """What came between two turns of the model: results of its calls, or words of the user."""

    text: str = ""
    results: list = field(default_factory=list)


@dataclass
class Conversation:
    """`turns` has Heard and Said in turn, and Heard at both ends."""

    model: str
    system: str
    tools: dict
    turns: list
    is_stream: bool
    input_tokens: int
    # What a format needs to give back or to shape its stream.
    request: dict = field(default_factory=dict)

    def said(self) -> list:
        return [turn for turn in self.turns if isinstance(turn, Said)]

    def heard(self) -> list:
        return [turn for turn in self.turns if isinstance(turn, Heard)]


def check_turns(turns: list, tools: dict) -> None:
    """Roles alternate, and every call has its one result in what comes next."""
    if not turns or not isinstance(turns[0], Heard) or turns[0].results:
        raise Refused("the first message must be of the user")
    if not isinstance(turns[-1], Heard):
        raise Refused("the last message must be of the user or of a tool")
    for before, after in zip([None, *turns], turns, strict=False):
        if type(before) is type(after):
            raise Refused("two turns of the same side follow each other")
        if isinstance(after, Heard):
            check_results(before.calls if before else [], after)
        elif not after.text and not after.calls:
            raise Refused("a message of the assistant is empty")
    calls = [call for turn in turns if isinstance(turn, Said) for call in turn.calls]
    ids = [call.id for call in calls]
    if len(set(ids)) != len(ids):
        raise Refused("two tool calls have the same id")
    if calls and not tools:
        raise Refused("a request with tool calls in its messages must define tools")


def check_results(calls: list, heard: Heard) -> None:
    wanted = [call.id for call in calls]
    given = [result.call_id for result in heard.results]
    for one in given:
        if one not in wanted:
            raise Refused(f"the tool result {one} has no tool call in the message before")
    if len(set(given)) != len(given):
        raise Refused("two tool results are for the same tool call")
    for one in wanted:
        if one not in given:
            raise Refused(f"the tool call {one} has no tool result in the next message")
    if not given and not heard.text.strip():
        raise Refused("a message of the user is empty")
    heard.results.sort(key=lambda result: wanted.index(result.call_id))


def tokens(text) -> int:
    """A quarter of the bytes, and never nothing: near enough for budgets."""
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return max(1, (size + 3) // 4)
