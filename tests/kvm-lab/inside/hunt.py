"""Many creates, children of forks and sleeps, in turns with the bare engine, and how many are lost."""
from collections.abc import Callable

import bake
from hunt_bare import BareHunt
from hunt_product import ProductHunt
from product import Daemon
from report import tell
from trial import Tally

READY_SECONDS_MAX = 300
CHILDREN_OF_A_FORK = 2
TOLD_EVERY = 10


def in_turns(what: str, count: int, tally: Tally, trials: list[Callable[[], None]]) -> None:
    for turn in range(count):
        for trial in trials if turn % 2 == 0 else reversed(trials):
            trial()
        if (turn + 1) % TOLD_EVERY == 0 or turn + 1 == count:
            tell("turn", what=what, turn=turn + 1)
            tally.tell()


def all_kinds(plan: dict, tally: Tally, sides: list[ProductHunt | BareHunt]) -> None:
    def each(name: str, *arguments: int) -> list[Callable[[], None]]:
        return [lambda side=side: getattr(side, name)(*arguments) for side in sides]

    in_turns("create", plan["creates"], tally, each("create"))
    in_turns("fork", -(-plan["children"] // CHILDREN_OF_A_FORK), tally, each("fork", CHILDREN_OF_A_FORK))
    in_turns("sleep", plan["sleeps"], tally, each("sleep"))


def run(plan: dict) -> bool:
    """Whether nothing of the product was lost."""
    tally = Tally()
    with Daemon(bake.TEMPLATES) as daemon:
        daemon.wait_until_ready(READY_SECONDS_MAX)
        product = ProductHunt(tally, daemon, plan["session_mib"])
        bare = BareHunt(tally, plan["session_mib"]) if plan["bare"] else None
        all_kinds(plan, tally, [side for side in (product, bare) if side is not None])
        if bare:
            bare.drop_source()
    tell("hunted", lost=tally.lost("") - tally.lost("bare"), lost_bare=tally.lost("bare"))
    return tally.lost("") == tally.lost("bare")


def run_bare(plan: dict) -> bool:
    """Whether nothing of the bare engine was lost, on a host that has nothing of Dayfly."""
    tally = Tally()
    bare = BareHunt(tally, plan["session_mib"])
    if plan["at_once"] > 1:
        turns = -(-plan["creates"] // plan["at_once"])
        in_turns("create", turns, tally, [lambda: bare.create(plan["at_once"])])
    else:
        all_kinds(plan, tally, [bare])
    bare.drop_source()
    tell("hunted", lost=0, lost_bare=tally.lost("bare"))
    return tally.lost("bare") == 0
