"""What the Python cases stand on: their order, their results, and what they must clean up."""

import contextlib
import inspect
import json
import os
import re
import sys
import threading
import time
import uuid

import pandastack
from pandastack import client as client_module
from pandastack import explore as explore_function
from pandastack import sandbox as sandbox_module
from pandastack import templates as templates_module
from pandastack import tokens as tokens_module
from pandastack import volumes as volumes_module
from pandastack import snapshots as snapshots_module

# The name under which a user reaches each class, and the class.
PUBLIC_CLASSES = {
    "Client": client_module.Client,
    "sandboxes": client_module.SandboxAPI,
    "Sandbox": sandbox_module.Sandbox,
    "filesystem": sandbox_module.SandboxFilesystem,
    "commands": sandbox_module.SandboxCommands,
    "CodeContext": sandbox_module.CodeContext,
    "Execution": sandbox_module.Execution,
    "Result": sandbox_module.Result,
    "snapshots": snapshots_module.SnapshotsAPI,
    "volumes": volumes_module.VolumesAPI,
    "templates": templates_module.TemplatesAPI,
    "tokens": tokens_module.TokensAPI,
    "Candidate": pandastack.Candidate,
    "ExploreResult": pandastack.ExploreResult,
}

# Functions of the package itself, beside its classes.
PUBLIC_MODULES = {
    "pandastack.templates": templates_module,
    "pandastack.tokens": tokens_module,
}

OUT_OF_SCOPE_CLASSES = {
    "apps": pandastack.AppsAPI,
    "databases": pandastack.DatabasesAPI,
    "functions": pandastack.FunctionsAPI,
    "schedules": pandastack.SchedulesAPI,
    "Worker": pandastack.Worker,
}

# These only lead to other objects or read an answer into one; every other case goes through them.
NOT_A_METHOD_OF_THE_API = {"from_dict", "filesystem", "commands"}


class Skip(Exception):
    """The case does not apply to this daemon; the text says why."""


class Differs(Exception):
    """The case saw the documented, deliberate difference that it looks for."""


class NotCalled(Exception):
    """The method works on something other than the API; the text says what."""


def public_names(owner):
    for name, value in vars(owner).items():
        if name.startswith("_") or name in NOT_A_METHOD_OF_THE_API:
            continue
        if isinstance(value, (staticmethod, classmethod, property)) or inspect.isfunction(value):
            yield name


def surface():
    """Every public method, so that one without a case is noticed."""
    names = [f"{label}.{name}" for label, owner in PUBLIC_CLASSES.items() for name in public_names(owner)]
    for label, module in PUBLIC_MODULES.items():
        names += [
            f"{label}.{name}"
            for name in public_names(module)
            if vars(module)[name].__module__ == module.__name__
        ]
    names += ["pandastack.explore", "pandastack.get_default_client", "pandastack.set_default_client"]
    names += ["Sandbox.__exit__", "CodeContext.__exit__"]
    assert callable(explore_function)
    return names


def out_of_scope():
    return {label: sorted(public_names(owner)) for label, owner in OUT_OF_SCOPE_CLASSES.items()}


CASES = []


def case(name, *more_names, slow=False, not_offered=False):
    """One function may stand for several methods that only make sense together."""

    def register(function):
        CASES.append((name, function, slow, not_offered))
        CASES.extend((other, name, slow, not_offered) for other in more_names)
        return function

    return register


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: wanted {wanted!r}, got {got!r}")


def raises(exception, call, what):
    """Calls `call`, which must raise exactly this type, and gives the exception."""
    try:
        value = call()
    except Exception as error:
        if type(error) is exception:
            return error
        raise AssertionError(f"{what}: wanted {exception.__name__}, got {type(error).__name__}: {error}") from error
    raise AssertionError(f"{what}: wanted {exception.__name__}, got {value!r}")


def wait_until(condition, what, seconds=20.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {seconds:.0f} s")


@contextlib.contextmanager
def running(sandbox, command):
    """Has the command under way, on a connection of its own, while the block runs."""
    other = pandastack.Client().sandboxes.get(sandbox.id)
    begun = threading.Event()
    thread = threading.Thread(target=lambda: other.exec_stream(f"echo begun; {command}", lambda _: begun.set()))
    thread.start()
    check(begun.wait(20), f"{command!r} did not begin")
    yield
    thread.join()


class World:
    """The daemon, and everything that the cases made there."""

    def __init__(self):
        self.run = uuid.uuid4().hex[:8]
        self.api_url = os.environ["PANDASTACK_API"]
        self.api_key = os.environ["PANDASTACK_API_KEY"]
        # So long does a create wait for room; the default of 60 s would hide a fault for a minute.
        self.client = pandastack.Client(max_create_retry_seconds=40)
        pandastack.set_default_client(self.client)
        self.shared = {}
        self.made = set()

    def keep(self, sandbox):
        self.made.add(sandbox.id)
        return sandbox

    def create(self, template="base", **options):
        options.setdefault("ttl_seconds", 1800)
        metadata = {"conformance": self.run, **options.pop("metadata", {})}
        return self.keep(self.client.sandboxes.create(template=template, metadata=metadata, **options))

    def sandbox(self, template="base"):
        """A sandbox that cases share; made when first asked for."""
        if template not in self.shared:
            self.shared[template] = self.create(template)
        return self.shared[template]

    def drop(self, template):
        """Ends a shared sandbox, to leave room for cases that make many."""
        if template in self.shared:
            self.shared.pop(template).kill()

    def http(self, method, path, **options):
        """A request beside the client, where a case looks at the wire itself."""
        import requests

        headers = {"Authorization": f"Bearer {self.api_key}", **options.pop("headers", {})}
        url = self.api_url.rstrip("/") + "/v1" + path
        return requests.request(method, url, headers=headers, timeout=30, **options)

    def ours(self):
        """Our sandboxes that still exist, forks of them included."""
        listed = self.client.sandboxes.list()
        while True:
            found = {
                s.id
                for s in listed
                if s.metadata.get("conformance") == self.run or s.metadata.get("fork_parent_id") in self.made
            }
            if found <= self.made:
                return [s for s in listed if s.id in self.made]
            self.made |= found

    def clean_unshared(self):
        """After a case that failed half way, so that it does not take the room of the next."""
        shared = {getattr(value, "id", None) for value in self.shared.values()}
        for sandbox in self.ours():
            if sandbox.id not in shared:
                sandbox.kill()

    def clean(self):
        for sandbox in self.ours():
            sandbox.kill()
        for snapshot in self.client.snapshots.list():
            if snapshot.get("sandbox_id") in self.made:
                self.client.snapshots.delete(snapshot["id"])
        for volume in self.client.volumes.list():
            if volume["name"].startswith(f"conformance-{self.run}"):
                self.client.volumes.delete(volume["name"])
        for token in self.client.tokens.list():
            if token.name.startswith(f"conformance-{self.run}"):
                self.client.tokens.revoke(token.prefix)


def run_one(function, world):
    try:
        function(world)
    except Skip as reason:
        return "skip", str(reason)
    except NotCalled as reason:
        return "not called", str(reason)
    except Differs as difference:
        return "differs", str(difference)
    except Exception as error:
        text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        return "fail", text
    return "pass", ""


def plain(reason):
    """One line without ids and times, so that a second run writes the same table."""
    line = re.sub(r"(duration_ms\W{1,3})\d+", r"\1N", " ".join(reason.split()))
    return re.sub(r"\b(sb|snap|ctx|tree|req|exec)-[a-z0-9-]{8,}", r"\1-ID", line)[:300]


def main(slow_too, only):
    emit = lambda record: print(json.dumps(record), flush=True)
    emit({"surface": surface(), "out_of_scope": out_of_scope(), "version": pandastack.__version__})
    world, results = World(), {}
    try:
        for name, function, slow, not_offered in CASES:
            if only and not any(word in name for word in only):
                continue
            started = time.monotonic()
            if isinstance(function, str):
                outcome, reason = results.get(function, ("skip", f"with {function}"))
            elif slow and not slow_too:
                outcome, reason = "not run", "slow"
            else:
                outcome, reason = run_one(function, world)
                if outcome == "fail":
                    world.clean_unshared()
            if not_offered and outcome == "pass":
                outcome = "not offered"
            results[name] = (outcome, reason)
            emit({"id": name, "outcome": outcome, "reason": plain(reason)})
            print(f"{time.monotonic() - started:6.1f} s  {outcome:11} {name}  {reason}", file=sys.stderr, flush=True)
    finally:
        world.clean()
    left = world.ours()
    outcome = "fail" if left else "pass"
    emit({"id": "case: nothing is left over", "outcome": outcome, "reason": f"{len(left)} sandboxes" if left else ""})
