"""Clients that do what a good loop does, with the results that a scenario has for its rehearsal.

A puppet makes the requests of one wire format and reads its responses, both as plain JSON; how they
are carried is left to a function: over a bare connection here, or by a published package.
"""
import http.client
import json
import pathlib
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from scripted_model.conversation import ToolCall  # noqa: E402
from scripted_model.script import Script, load_script  # noqa: E402
from scripted_model.server import ScriptedModel  # noqa: E402

TOOLS = json.loads((HERE.parents[2] / "sdk/tools/tools.json").read_text(encoding="utf-8"))["tools"]
NATIVE_TOOLS = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
]
# The tool of a loop that keeps checkpoints; the others are of the sandbox.
UNDO_TOOL = {
    "name": "undo",
    "description": "Undo tool calls.",
    "input": {"type": "object", "properties": {"steps": {"type": "integer", "minimum": 1}}, "additionalProperties": False},
}
MODEL = "script-1"
# A client that is held gives up after this long; one that is not has time enough on a busy machine.
PATIENCE_SECONDS = 1.5
DEADLINE_SECONDS = 60.0
ENDLESS_REQUESTS = 2


class Failure(Exception):
    """The provider did not respond, or with an error. `status` is None without a whole response."""

    def __init__(self, status, kind: str = "", retry_after: float = 0.0):
        super().__init__(f"{status} {kind}")
        self.status, self.kind, self.retry_after = status, kind, retry_after


@dataclass
class Reply:
    text: str
    calls: list
    stop: str
    input_tokens: int
    output_tokens: int
    # As it came, to be given back.
    raw: object = None


@dataclass
class Results:
    """One (call, text, is_error) for each call, and what the user says after them."""

    given: list = field(default_factory=list)
    text: str = ""


def tools_of(run: dict | None) -> list:
    return [*TOOLS, UNDO_TOOL] if run and run.get("undo_tool") else TOOLS


class AnthropicPuppet:
    path, headers = "/v1/messages", {"x-api-key": "key", "anthropic-version": "2026-10-21"}

    def body(self, history: list, run: dict | None = None) -> dict:
        tools = NATIVE_TOOLS if run and run.get("native_tools") else [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["input"]}
            for tool in tools_of(run)
        ]
        return {"model": MODEL, "max_tokens": 4096, "tools": tools, "messages": [self.message(one) for one in history]}

    def message(self, one) -> dict:
        if isinstance(one, Reply):
            return {"role": "assistant", "content": one.raw}
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": is_error}
            for call, text, is_error in one.given
        ]
        return {"role": "user", "content": blocks + ([{"type": "text", "text": one.text}] if one.text else [])}

    def reply(self, value: dict) -> Reply:
        blocks = [
            {name: part for name, part in block.items() if name in ("type", "text", "id", "name", "input")}
            for block in value["content"]
        ]
        return Reply(
            "".join(block["text"] for block in blocks if block["type"] == "text"),
            [ToolCall(one["id"], one["name"], json.dumps(one["input"])) for one in blocks if one["type"] == "tool_use"],
            value["stop_reason"],
            value["usage"]["input_tokens"],
            value["usage"]["output_tokens"],
            blocks,
        )


class ChatPuppet:
    path, headers = "/v1/chat/completions", {"authorization": "Bearer key"}

    def body(self, history: list, run: dict | None = None) -> dict:
        functions = [
            {"name": tool["name"], "description": tool["description"], "parameters": tool["input"]}
            for tool in tools_of(run)
        ]
        return {
            "model": MODEL,
            "tools": [{"type": "function", "function": function} for function in functions],
            "messages": [message for one in history for message in self.messages(one)],
        }

    def messages(self, one) -> list:
        if isinstance(one, Reply):
            return [one.raw]
        given = [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text, _ in one.given]
        return given + ([{"role": "user", "content": one.text}] if one.text else [])

    def reply(self, value: dict) -> Reply:
        choice = value["choices"][0]
        message = choice["message"]
        calls = [
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or []
        ]
        raw = {"role": "assistant", "content": message.get("content"), "refusal": message.get("refusal")}
        if calls:
            raw["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments_text}}
                for call in calls
            ]
        usage = value["usage"]
        text = message.get("content") or message.get("refusal") or ""
        return Reply(text, calls, choice["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"], raw)


class ResponsesPuppet:
    path, headers = "/v1/responses", {"authorization": "Bearer key"}
    item_fields = ("type", "id", "role", "status", "content", "call_id", "name", "arguments")
    part_fields = ("type", "text", "annotations", "refusal")

    def body(self, history: list, run: dict | None = None) -> dict:
        tools = [
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input"],
                "strict": False,
            }
            for tool in tools_of(run)
        ]
        return {"model": MODEL, "tools": tools, "input": [item for one in history for item in self.items(one)]}

    def items(self, one) -> list:
        if isinstance(one, Reply):
            return one.raw
        given = [{"type": "function_call_output", "call_id": call.id, "output": text} for call, text, _ in one.given]
        return given + ([{"role": "user", "content": one.text}] if one.text else [])

    def reply(self, value: dict) -> Reply:
        items = [{name: item[name] for name in self.item_fields if name in item} for item in value["output"]]
        for item in items:
            if "content" in item:
                item["content"] = [{k: part[k] for k in self.part_fields if k in part} for part in item["content"]]
        parts = [part for item in items for part in item.get("content", [])]
        return Reply(
            "".join(part.get("text") or part.get("refusal") for part in parts),
            [ToolCall(i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call"],
            value["status"],
            value["usage"]["input_tokens"],
            value["usage"]["output_tokens"],
            items,
        )


PUPPETS = {"anthropic": AnthropicPuppet(), "chat": ChatPuppet(), "responses": ResponsesPuppet()}


def post(address: str, puppet, body, timeout: float = DEADLINE_SECONDS) -> dict:
    """A request over a bare connection."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=timeout)
    try:
        headers = {"content-type": "application/json", **puppet.headers}
        connection.request("POST", puppet.path, json.dumps(body), headers)
        response = connection.getresponse()
        value = json.loads(response.read())
    except (OSError, http.client.HTTPException) as error:
        raise Failure(None, type(error).__name__) from error
    finally:
        connection.close()
    if response.status != 200:
        retry_after = float(response.headers.get("retry-after", 0))
        raise Failure(response.status, value["error"]["message"], retry_after)
    return value


@dataclass(frozen=True)
class Limits:
    """How long a request may take, and how often the client tries again."""

    seconds: float
    retries: int


def limits_of(script: Script, turn) -> Limits:
    """A timeout of the client stands for a caller that cancels, who does not try again."""
    if turn.hold:
        return Limits(PATIENCE_SECONDS, 0)
    return Limits(DEADLINE_SECONDS, script.run.get("max_retries", 2))


def bare(limits: Limits, address: str, puppet, body: dict) -> dict:
    """Carries a request, again after errors that pass, as the published packages do."""
    for left in range(limits.retries, -1, -1):
        try:
            return post(address, puppet, body, limits.seconds)
        except Failure as failure:
            if not left or failure.status not in (429, 500, 503, 529):
                raise
            time.sleep(failure.retry_after)
    raise AssertionError("the last try either returns or raises")


def rehearse(script: Script, form: str, carry=bare) -> tuple[dict, list]:
    """Plays all of a script. Gives the server's log, and the last reply or failure of each conversation."""
    ends = []
    with ScriptedModel(script) as model:
        for turns in script.conversations:
            ends.append(converse(script, turns, model.address, PUPPETS[form], carry))
        return model.log(), ends


def rehearse_all(test, ways: dict) -> None:
    """Every scenario over every format in every way to carry requests, each a subtest."""
    for path in sorted((HERE.parent / "scenarios").glob("*.json")):
        script = load_script(path)
        tried = [(form, way) for form in script.formats for way in ways]
        # Side by side: most of the time is delays of the scripts.
        with ThreadPoolExecutor(len(tried)) as pool:
            played = list(pool.map(lambda one, of=script: rehearse(of, one[0], ways[one[1]]), tried))
        for (form, way), (log, ends) in zip(tried, played, strict=True):
            with test.subTest(scenario=path.stem, format=form, way=way):
                test.assertEqual(log["violations"], [])
                test.assertTrue(log["finished"])
                check_end(test, script, ends[-1])


def check_end(test, script: Script, end) -> None:
    """What breaks off only in a stream is whole without one, so a failure is possible and not required."""
    stop = script.outcome["stop"]
    if isinstance(end, Failure):
        # What puts streams together in the packages of OpenAI raises for one that ends for its length.
        test.assertIn(stop, ("model_error", "cancelled", "output_limit"), end)
    elif stop == "done":
        test.assertEqual(end.calls, [])
        test.assertEqual(end.text, script.outcome.get("text", {}).get("equals", end.text))


def converse(script: Script, turns: list, address: str, puppet, carry):
    """The results stand in the script beside their calls; a call without one is where the client ends."""
    rehearsals = [part.rehearsal for turn in turns for part in turn.content if not isinstance(part, str)]
    is_endless = turns[-1].times is None
    tasks, history, requests = list(script.run.get("tasks", ["Go."])), [], 0
    pending = Results(text=tasks.pop(0))
    while True:
        history.append(pending)
        try:
            # Exact where no error comes before a held turn, and no scenario has one.
            limits = limits_of(script, turns[min(requests, len(turns) - 1)])
            reply = puppet.reply(carry(limits, address, puppet, puppet.body(history, script.run)))
        except Failure as failure:
            return failure
        requests += 1
        history.append(reply)
        taken = rehearsals[:1] * len(reply.calls) if is_endless else rehearsals[: len(reply.calls)]
        del rehearsals[: 0 if is_endless else len(reply.calls)]
        if None in taken or (is_endless and requests == ENDLESS_REQUESTS) or (not reply.calls and not tasks):
            return reply
        given = [
            (call, one["text"], one.get("is_error", False)) for call, one in zip(reply.calls, taken, strict=True)
        ]
        # A run that stops for its budget has results that only the next task brings to the model.
        is_stop = requests == script.run.get("budget", {}).get("steps") and tasks
        pending = Results(given, tasks.pop(0) if tasks and (is_stop or not given) else "")
