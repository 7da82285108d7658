"""Plays a script: which turn is next, whether the request before it was right, and what is sent."""
import json
import re
import threading
import time
from dataclasses import dataclass, field

from .answer import Answer, output_tokens
from .conversation import Conversation, Refused, Said, ToolCall
from .expectations import unmet
from .schema import value_errors
from .script import Script, ScriptError, Turn, fill

STEM = re.compile(r"s(\d+)t\d+c\d+$")


@dataclass
class Session:
    """One conversation of the script, as far as it has come."""

    number: int
    turns: list
    position: int = 0
    # How often the turn at the position was played.
    repeats: int = 0
    requests: int = 0
    is_claimed: bool = False
    # What the client has of the model, in order.
    sent: list = field(default_factory=list)
    picked: dict = field(default_factory=dict)
    # When the last response began: no client can have it earlier.
    last_response: float | None = None

    def is_finished(self) -> bool:
        left = self.turns[self.position :]
        return not left or (len(left) == 1 and left[0].times is None and self.repeats > 0)


@dataclass(frozen=True)
class Step:
    """What the server is to do for one request."""

    session: Session
    turn: Turn
    answer: Answer


class Play:
    """The judge. Its methods are called by one thread for each connection."""

    def __init__(self, script: Script):
        self.script = script
        self.sessions = [Session(number, turns) for number, turns in enumerate(script.conversations)]
        self.violations: list[str] = []
        self.lock = threading.Lock()

    def is_finished(self) -> bool:
        with self.lock:
            return all(session.is_finished() for session in self.sessions)

    def note(self, violation: str) -> None:
        with self.lock:
            self.violations.append(violation)

    def step(self, conversation: Conversation, wire) -> Step:
        """The next step, or Refused, which is then also among the violations."""
        with self.lock:
            if wire.NAME not in self.script.formats:
                raise Refused(f"this script is not for the wire format {wire.NAME}")
            session = self.session_of(conversation)
            gap_ms = 0.0 if session.last_response is None else (time.monotonic() - session.last_response) * 1000
            check_history(session, conversation, self.script.history)
            turn = next_turn(session)
            errors = list(unmet(turn.expect, conversation, gap_ms))
            if errors:
                raise Refused(f"turn {session.position} of the script: {'; '.join(errors)}")
            pick(session, turn, conversation)
            try:
                filled = fill(turn, session.picked)
            except ScriptError as error:
                raise Refused(str(error)) from error
            answer = make_answer(session, filled, conversation, wire)
            advance(session, turn)
            if turn.is_answer():
                session.sent.append(answer)
            return Step(session, filled, answer)

    def begins(self, step: Step) -> None:
        """The response is on its way from now on."""
        with self.lock:
            step.session.last_response = time.monotonic()

    def ended(self, step: Step, is_complete: bool) -> None:
        """A client that went away before the end does not have the turn."""
        with self.lock:
            if not is_complete and step.answer in step.session.sent:
                step.session.sent.remove(step.answer)

    def session_of(self, conversation: Conversation) -> Session:
        """By the ids of the calls that it gives back; else the first that nobody plays."""
        if len(self.sessions) == 1:
            return self.sessions[0]
        for turn in reversed(conversation.said()):
            for call in turn.calls:
                found = STEM.search(call.id)
                if found and int(found[1]) < len(self.sessions):
                    return self.sessions[int(found[1])]
        # One whose first request failed is waiting for the client to try again.
        waiting = [one for one in self.sessions if one.is_claimed and one.requests and not one.sent]
        free = [one for one in self.sessions if not one.is_claimed]
        if not waiting and not free:
            raise Refused("the script has no further conversation")
        session = (waiting or free)[0]
        session.is_claimed = True
        return session


def next_turn(session: Session) -> Turn:
    if session.position >= len(session.turns):
        raise Refused(f"the script has ended after {session.requests} requests, and another came")
    return session.turns[session.position]


def advance(session: Session, turn: Turn) -> None:
    session.requests += 1
    session.repeats += 1
    if session.repeats == turn.times:
        session.position += 1
        session.repeats = 0


def check_history(session: Session, conversation: Conversation, history: str) -> None:
    """The client must give back what the model said: no word less, and none of its own."""
    if history == "free":
        return
    said = conversation.said()
    if history == "may_be_cut":
        del session.sent[len(said) :]
    if len(said) != len(session.sent):
        raise Refused(f"the history has {len(said)} turns of the assistant, {len(session.sent)} were sent")
    for index, (given, sent) in enumerate(zip(said, session.sent, strict=True)):
        if given.text != sent.text():
            raise Refused(f"turn {index} of the assistant has the text {given.text!r}, {sent.text()!r} was sent")
        check_calls(index, given, sent)


def check_calls(index: int, given: Said, sent: Answer) -> None:
    wanted = [(call.id, call.tool, parsed(call)) for call in sent.calls()]
    found = [(call.id, call.tool, parsed(call)) for call in given.calls]
    # Arguments that were not JSON are not compared: Anthropic's format has no way to give them back.
    is_same = len(found) == len(wanted) and all(
        one[:2] == other[:2] and other[2] in (None, one[2]) for one, other in zip(found, wanted, strict=True)
    )
    if not is_same:
        raise Refused(f"turn {index} of the assistant has the tool calls {found}, {wanted} were sent")


def parsed(call: ToolCall):
    try:
        return json.loads(call.arguments_text)
    except ValueError:
        return None


def pick(session: Session, turn: Turn, conversation: Conversation) -> None:
    results = [result.text for heard in conversation.heard()[-1:] for result in heard.results]
    for name, pattern in turn.pick.items():
        found = next((match for text in results for match in [re.search(pattern, text)] if match), None)
        if found is None:
            raise Refused(f"no tool result has a match of {pattern!r} for {name!r}: {results}")
        session.picked[name] = found[1] if found.re.groups else found[0]


def make_answer(session: Session, turn: Turn, conversation: Conversation, wire) -> Answer:
    stem = f"s{session.number}t{session.requests}"
    content, calls = [], 0
    for part in turn.content:
        if isinstance(part, str):
            content.append(part)
            continue
        check_call(part, conversation.tools)
        content.append(ToolCall(f"{wire.CALL_PREFIX}{stem}c{calls}", part.tool, part.arguments_text))
        calls += 1
    return Answer(
        stem=stem,
        content=content,
        stop=turn.stop,
        input_tokens=turn.usage.get("input", conversation.input_tokens),
        output_tokens=turn.usage.get("output", output_tokens(content)),
    )


def check_call(call, tools: dict) -> None:
    """A script that calls what is not offered tests nothing."""
    if not call.fits:
        return
    if call.tool not in tools:
        raise Refused(f"the script calls {call.tool}, which is not among the tools {sorted(tools)}")
    errors = value_errors(call.arguments, tools[call.tool])
    if errors:
        raise Refused(f"the script calls {call.tool} with arguments that do not fit: {'; '.join(errors)}")
