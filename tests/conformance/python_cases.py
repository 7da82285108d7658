"""Cases about no single method: texts, limits, silences, refusals."""

import threading

import pandastack
from harness import Differs, Skip, case, check, equal, raises, running
from pandastack import AuthError, BadRequestError, ExecInterrupted, NotFoundError, SandboxTimeout

AWKWARD = "é х \u0085 \u2028 end\r\n".encode() + b"\xff\xfe|" + "😀".encode() + b"\x0b\x0c\x1c"


def streamed(sandbox, command, **options):
    pieces = []
    code = sandbox.exec_stream(command, pieces.append, **options)
    return code, "".join(pieces)


# Texts.


@case("case: texts in a stream")
def stream_texts(world):
    """Separators of lines in other alphabets, carriage returns, bytes that are no UTF-8."""
    sandbox = world.sandbox()
    sandbox.filesystem.write("/workspace/awkward", AWKWARD)
    equal(streamed(sandbox, "cat /workspace/awkward"), (0, AWKWARD.decode(errors="replace")), "awkward text")


@case("case: a megabyte without a line end in a stream")
def stream_large(world):
    sandbox = world.sandbox()
    code, text = streamed(sandbox, "head -c 1048576 /dev/zero | tr '\\0' x")
    check(code == 0 and text == "x" * 1048576, f"code {code}, {len(text)} characters")
    sandbox.filesystem.write("/workspace/wide", "a" + "é" * 200_000)
    code, text = streamed(sandbox, "cat /workspace/wide")
    check(text == "a" + "é" * 200_000, "a character was cut in two")


@case("case: a command of 200,000 characters")
def long_command(world):
    result = world.sandbox().exec("wc -c <<'X'\n" + "y" * 200_000 + "\nX")
    equal((result.stdout.strip(), result.exit_code), ("200001", 0), "result")


@case("case: names of files")
def file_names(world):
    files = world.sandbox().filesystem
    for name in ("é ü", "a+b", "a%2Fb", "a&b=c?d#e"):
        files.write(f"/workspace/names/{name}", name)
        equal(files.read(f"/workspace/names/{name}"), name.encode(), "content")
    equal(len(files.listdir("/workspace/names")), 4, "entries")


@case("case: walk past a link to the parent")
def walk_with_a_loop(world):
    sandbox = world.sandbox()
    sandbox.exec("mkdir -p /workspace/loop/in && ln -s .. /workspace/loop/in/up")
    equal([path for path, _, _ in sandbox.filesystem.walk("/workspace/loop")],
          ["/workspace/loop", "/workspace/loop/in"], "directories")


# Limits.


@case("case: a command past its limit")
def command_limit(world):
    sandbox = world.sandbox()
    raises(SandboxTimeout, lambda: sandbox.exec("sleep 60", timeout_seconds=2), "exec")
    raises(SandboxTimeout, lambda: streamed(sandbox, "echo begun; sleep 60", timeout_seconds=2), "stream")


@case("case: a cell past its limit")
def cell_limit(world):
    with world.sandbox("code-interpreter").create_code_context() as context:
        raises(SandboxTimeout, lambda: context.run_code("while True: pass", timeout_seconds=2), "cell")
        equal(context.run_code("1 + 1").text, "2", "the context after it")


STUBBORN = """
import time
while True:
    try: time.sleep(60)
    except KeyboardInterrupt: pass
"""


@case("case: a cell past its limit that cannot be interrupted")
def stubborn_cell(world):
    with world.sandbox("code-interpreter").create_code_context() as context:
        raises(SandboxTimeout, lambda: context.run_code(STUBBORN, timeout_seconds=2), "cell")


@case("case: the word timeout in a command")
def timeout_as_a_word(world):
    sandbox = world.sandbox()
    equal(sandbox.exec("timeout 1 sleep 20").exit_code, 124, "ended by a program of that name")
    equal(sandbox.exec("timeout-nowhere 5").exit_code, 127, "no such program")
    sandbox.pause()
    raises(BadRequestError, lambda: sandbox.exec("timeout 5 ls"), "in a paused sandbox")
    sandbox.resume()


@case("case: a stream silent for 35 s", slow=True)
def silent_stream(world):
    equal(streamed(world.sandbox(), "echo a; sleep 35; echo b"), (0, "a\nb\n"), "stream")


@case("case: followed logs silent for 35 s", slow=True)
def silent_logs(world):
    sandbox = world.create()
    with running(sandbox, "sleep 35; echo late"):
        check("late" in list(sandbox.logs(follow=True)), "the line did not come")
    sandbox.kill()


@case("case: the sandbox goes in mid-stream")
def lost_stream(world):
    sandbox = world.create()
    pieces = []
    killer = threading.Timer(2.5, lambda: pandastack.Client().sandboxes.delete(sandbox.id))
    killer.start()
    error = raises(ExecInterrupted, lambda: sandbox.exec_stream("echo begun; sleep 60", pieces.append), "stream")
    killer.join()
    equal((error.partial_stdout, "".join(pieces)), ("begun\n", "begun\n"), "what came before")


# Refusals.


@case("case: a wrong key")
def wrong_key(world):
    error = raises(AuthError, pandastack.Client(api_key="wrong").me, "me")
    check("key" in str(error).lower(), f"text {error}")


@case("case: an id that is not there")
def unknown_ids(world):
    sandbox = world.create()
    sandbox.kill()
    raises(NotFoundError, lambda: sandbox.exec("true"), "exec")
    raises(NotFoundError, lambda: streamed(sandbox, "true"), "stream")
    raises(NotFoundError, sandbox.fork, "fork")
    raises(NotFoundError, lambda: sandbox.filesystem.read("/etc/passwd"), "read")
    raises(NotFoundError, lambda: world.client.snapshots.get("snap-nowhere"), "snapshot")
    raises(NotFoundError, lambda: world.client.volumes.get("nowhere"), "volume")


@case("case: addresses of the API with and without /v1")
def base_addresses(world):
    for ending in ("", "/", "/v1", "/v1/"):
        client = pandastack.Client(api_url=world.api_url.rstrip("/") + ending)
        equal(client.me(), world.client.me(), f"with {ending!r}")


@case("case: POST without a body under three content types")
def empty_bodies(world):
    path = f"/sandboxes/{world.sandbox().id}"
    for content_type in (None, "text/plain;charset=UTF-8", "application/json"):
        headers = {"Content-Type": content_type} if content_type else {}
        for action in ("pause", "resume", "wake"):
            equal(world.http("POST", f"{path}/{action}", headers=headers).status_code, 204, f"{action}, {content_type}")


@case("case: apps, databases, functions and schedules are refused")
def absent_services(world):
    client = world.client
    for service in (client.apps, client.databases, client.functions, client.schedules):
        error = raises(NotFoundError, service.list, type(service).__name__)
        check(len(str(error)) > 8, "no text")


# What differs on purpose.


@case("case: what a new sandbox reaches")
def egress(world):
    sandbox = world.sandbox()
    equal(world.http("GET", f"/sandboxes/{sandbox.id}").json()["network_mode"], "deny", "network_mode")
    answer = sandbox.exec("curl -s -m 10 -w '%{http_code}' http://1.1.1.1/").stdout
    check("egress_denied" in answer and answer.endswith("403"), f"not denied: {answer!r}")
    check(sandbox.exec("curl -s -m 10 https://example.com/").exit_code != 0, "a host was reached")
    raise Differs("egress is closed by default; the clients have no argument for it, the project's default or a PUT opens it")


@case("case: a lifecycle without an idle time")
def no_idle_time(world):
    equal(world.sandbox().lifecycle()["idle_seconds"], None, "idle_seconds")
    raise Differs("`idle_seconds` is null when there is none")


@case("case: followed logs of a sandbox where nothing runs")
def idle_logs(world):
    sandbox = world.create()
    sandbox.exec("echo before")
    equal(list(sandbox.logs(follow=True)), ["before"], "lines")
    sandbox.kill()
    raise Differs("following ends when the last command that ran at its beginning has ended")


# Lives.


@case("case: ports without a listener")
def no_ports(world):
    sandbox = world.create()
    equal(sandbox.preview_urls(), {}, "preview_urls")
    sandbox.kill()


@case("case: a block around a persistent sandbox")
def persistent_block(world):
    made = world.create(persistent=True)
    with pandastack.Sandbox.get(made.id) as sandbox:
        check(sandbox.persistent, "persistent is not told")
    equal(pandastack.Sandbox.get(made.id).status, "running", "after the block")
    made.kill()


@case("case: explore in a child of a fork")
def explore_in_a_child(world):
    world.drop("code-interpreter")
    first, sibling = [world.keep(c) for c in world.sandbox().fork_tree(2)]
    result = first.explore(["exit 1", "exit 2", "echo ok"], ttl_seconds=120)
    world.keep(result.winner)
    equal((result.errors, len(result.reaped)), ([], 2), "errors and losers")
    alive = {s.id for s in pandastack.Sandbox.list()}
    check({world.sandbox().id, first.id, sibling.id, result.winner.id} <= alive, "one too many was deleted")
    check(not alive & set(result.reaped), "a loser lives")
    check(result.winner.lifecycle()["ttl_seconds"] > 120, "the winner keeps the branches' TTL")
    for sandbox in (result.winner, first, sibling):
        sandbox.kill()


# A full server.


def fill(world):
    """Takes the disk that the node may promise until nothing more fits; gives the ids of the fillers."""
    node = world.http("GET", "/node").json()
    if "disk_available_mb" not in node:
        raise Skip("the key may not read the node's capacity")
    free_mb = node["disk_available_mb"] - node["disk_committed_mb"] - node["disk_reserve_mb"]
    body = {"template": "base", "ttl_seconds": 120, "metadata": {"conformance": world.run}}
    # Others may free disk meanwhile, so small ones follow the large one until one is refused.
    sizes = [{"disk_gb": max(2, free_mb // 1024 - 1)}, {}, {}, {}, {}]
    fillers = []
    for size in sizes:
        answer = world.http("POST", "/sandboxes", json={**body, **size})
        if answer.status_code == 503 and not size:
            return fillers
        equal(answer.status_code, 201, f"filler {size}: {answer.text}")
        world.made.add(answer.json()["id"])
        fillers.append(answer.json()["id"])
    raise AssertionError("the server cannot be filled")


def empty(world, fillers):
    while fillers:
        world.http("DELETE", f"/sandboxes/{fillers.pop()}")


@case("case: a full server has room again")
def full_server(world):
    sandbox, fillers, waits = world.sandbox(), [], []

    def room_appears(event):
        waits.append(event)
        empty(world, fillers)

    client = pandastack.Client(max_create_retry_seconds=40, on_create_retry=room_appears)
    calls = {
        "create": lambda: [client.sandboxes.create("base", metadata={"conformance": world.run})],
        "fork": lambda: [client.sandboxes.fork(sandbox.id)],
        "fork_tree": lambda: client.sandboxes.fork_tree(sandbox.id, 1),
    }
    for name, call in calls.items():
        before, waits[:] = len(world.ours()), []
        fillers[:] = fill(world)
        made = [world.keep(s) for s in call()]
        check(waits, f"{name}: there was room all the time")
        equal(len(world.ours()), before + len(made), f"{name}: sandboxes")
        for child in made:
            child.kill()


@case("case: a create that is called off")
def cancelled_create(world):
    fillers, cancel = fill(world), threading.Event()
    client = pandastack.Client(max_create_retry_seconds=40, on_create_retry=lambda _: cancel.set())
    before, metadata = len(world.ours()), {"conformance": world.run}
    create = lambda: client.sandboxes.create("base", metadata=metadata, cancel=cancel)
    raises(pandastack.CreateCancelled, create, "create")
    equal(len(world.ours()), before, "sandboxes")
    empty(world, fillers)
