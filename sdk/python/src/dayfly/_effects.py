"""How the one implementation serves both worlds.

Every call of this package is written once, as a generator that yields what it wants done (send
this, wait so long) and is given the outcome. A driver does the work: ``_sync`` with blocking
sockets, ``_async`` with asyncio. So the rules about repeating, waiting and attaching again exist
once, and neither world imitates the other with threads: cancelling an asyncio task closes its
connection, as one would expect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ._wire import Answer, Request

T = TypeVar("T")


class Body(Protocol):
    """An answer whose body is still coming."""

    status: int
    headers: dict[str, str]

    def close(self) -> None: ...


@dataclass(frozen=True)
class Send:
    """Send a request, read its whole answer. Gives an ``Answer``."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Send a request, read the head of its answer. Gives a ``Body``."""

    request: Request


@dataclass(frozen=True)
class Read:
    """The next bytes of a body; none at its end."""

    body: Body
    timeout: float | None


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Ask:
    """Call a function of the user's. In asyncio it may be a coroutine function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Within:
    """As ``Ask``, but nobody waits longer than so long: then it is ``TimeoutError``.

    In asyncio what was asked is cancelled. Blocking code cannot be ended: it goes on in a thread of
    its own, and what it gives is dropped.
    """

    seconds: float
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Together:
    """Carry out several operations at once. Gives a list of results and exceptions."""

    operations: Sequence[Generator[Any, Any, Any]]
    at_once: int


@dataclass(frozen=True)
class Know:
    """What the client that does this knows. Gives its ``ClientFacts``."""


Effect = Send | Open | Read | Sleep | Ask | Within | Together | Know
Operation = Generator[Effect, Any, T]


def ask(function: Callable[..., Any] | None, *arguments: Any) -> Operation[Any]:
    """Calls a function of the user's, if there is one."""
    if function is None:
        return None
    return (yield Ask(function, arguments))


def send_once(request: Request) -> Operation[Answer]:
    answer: Answer = yield Send(request)
    return answer
