"""One case for each public method of the published Python client."""

import contextlib
import os
import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import pandastack
from harness import Differs, NotCalled, case, check, equal, main, raises, running, wait_until
from pandastack import (
    BadRequestError,
    Candidate,
    CommandFailed,
    ExploreError,
    NotFoundError,
    PandastackError,
    Sandbox,
)


def refused(call, what):
    """What is not offered must be refused with a text, and not by a broken connection."""
    try:
        value = call()
    except PandastackError as error:
        check(type(error) in (NotFoundError, BadRequestError, pandastack.ServerError), f"{what}: {error!r}")
        check(len(str(error)) > 8, f"{what}: no text")
    else:
        raise AssertionError(f"{what}: not refused, gave {value!r}")


# The client and who it is.


@case("Client.me")
def me(world):
    account = world.client.me()
    check(isinstance(account.get("project"), str), f"no project in {account!r}")


@case("pandastack.set_default_client", "pandastack.get_default_client")
def default_client(world):
    other = pandastack.Client()
    pandastack.set_default_client(other)
    check(pandastack.get_default_client() is other, "the client that was set is not used")
    pandastack.set_default_client(world.client)
    check(pandastack.get_default_client() is world.client, "the client that was set is not used")


# Sandboxes.


@case("Sandbox.create")
def sandbox_create(world):
    sandbox = world.keep(Sandbox.create(metadata={"conformance": world.run, "name": "é"}, ttl_seconds=1800))
    world.shared["code-interpreter"] = sandbox
    check(re.fullmatch(r"[a-z0-9-]{1,57}", sandbox.id), f"id {sandbox.id!r} is no DNS label")
    equal(sandbox.template, "code-interpreter", "template")
    equal(sandbox.status, "running", "status")
    check(sandbox.cpu >= 1 and sandbox.memory_mb >= 512, f"size {sandbox.cpu}, {sandbox.memory_mb}")
    equal(sandbox.metadata["name"], "é", "metadata")
    equal(sandbox.persistent, False, "persistent")
    datetime.fromisoformat(sandbox.created_at.replace("Z", "+00:00"))


@case("sandboxes.create")
def sandboxes_create(world):
    sandbox = world.create("base", persistent=True)
    equal((sandbox.template, sandbox.persistent), ("base", True), "template and persistent")
    world.shared["base"] = sandbox


@case("Sandbox.list", "sandboxes.list")
def sandbox_list(world):
    wanted = {world.sandbox().id, world.sandbox("code-interpreter").id}
    check(wanted <= {s.id for s in Sandbox.list()}, "Sandbox.list lacks ours")
    check(wanted <= {s.id for s in world.client.sandboxes.list()}, "sandboxes.list lacks ours")


@case("Sandbox.get", "sandboxes.get")
def sandbox_get(world):
    sandbox = world.sandbox()
    equal(Sandbox.get(sandbox.id), sandbox, "Sandbox.get")
    equal(world.client.sandboxes.get(sandbox.id), sandbox, "sandboxes.get")
    raises(NotFoundError, lambda: Sandbox.get("sb-nowhere"), "an unknown id")


# Commands and code.


@case("Sandbox.exec")
def sandbox_exec(world):
    sandbox = world.sandbox()
    result = sandbox.exec("printf 'één\\n'; echo two >&2; exit 3")
    equal((result.stdout, result.stderr, result.exit_code), ("één\n", "two\n", 3), "result")
    check(result.duration_ms > 0, "no duration")
    failed = raises(CommandFailed, lambda: sandbox.exec("echo out; exit 4", check=True), "check")
    equal((failed.exit_code, failed.stdout), (4, "out\n"), "CommandFailed")
    equal(sandbox.exec("kill -9 $$").exit_code, 137, "exit code of a signal")


@case("commands.run")
def commands_run(world):
    result = world.sandbox().commands.run("cat <<'X'\nhere\nX", timeout=20)
    equal((result.stdout, result.exit_code), ("here\n", 0), "result")


@case("Sandbox.exec_stream")
def exec_stream(world):
    out, err = [], []
    code = world.sandbox().exec_stream("echo one; sleep 0.5; echo two; echo bad >&2; exit 7", out.append, err.append)
    equal((code, "".join(out), "".join(err)), (7, "one\ntwo\n", "bad\n"), "stream")
    check(len(out) >= 2, "output before and after the pause came in one piece")


@case("Sandbox.run_code")
def run_code(world):
    sandbox = world.sandbox("code-interpreter")
    equal(sandbox.run_code("import sys\nprint('it\\'s', 6 * 7)").stdout, "it's 42\n", "Python")
    equal(sandbox.run_code("echo $((6 * 7))", language="bash").stdout, "42\n", "shell")
    raises(ValueError, lambda: sandbox.run_code("1", language="cobol"), "another language")


@case("Sandbox.create_code_context")
def create_code_context(world):
    context = world.sandbox("code-interpreter").create_code_context("py")
    check(re.fullmatch(r"[a-z0-9._-]+", context.id), f"id {context.id!r}")
    equal(context.language, "python", "language")
    world.shared["context"] = context


@case("CodeContext.run_code")
def context_run_code(world):
    context = world.shared["context"]
    context.run_code("x = 41")
    result = context.run_code("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx + 1")
    equal((result.text, result.exit_code, result.error), ("42", 0, None), "result")
    failed = context.run_code("1 / 0")
    check("ZeroDivisionError" in (failed.error or ""), f"error {failed.error!r}")
    check(failed.exit_code != 0, "a cell that raised has exit code 0")
    world.shared["execution"] = result


@case("Execution.logs", "Execution.text", "Execution.png")
def execution(world):
    result = world.shared["execution"]
    equal(result.logs, {"stdout": "out\n", "stderr": "err\n"}, "logs")
    equal((result.text, result.png), ("42", None), "text and png")
    check(result.duration_ms > 0, "no duration")


RICH = """
class Rich:
    def _repr_png_(self): return b'png'
    def _repr_jpeg_(self): return b'jpeg'
    def _repr_svg_(self): return '<svg/>'
    def _repr_html_(self): return '<b>1</b>'
    def _repr_markdown_(self): return '*1*'
    def _repr_json_(self): return {'a': [1]}
    def __repr__(self): return 'Rich'
Rich()
"""


@case(
    "Result.png", "Result.jpeg", "Result.svg", "Result.html", "Result.markdown", "Result.json", "Result.text",
    "Result.chart",
)
def rich_result(world):
    (result,) = world.shared["context"].run_code(RICH).results
    equal((result.png, result.jpeg, result.chart), ("cG5n", "anBlZw==", "cG5n"), "images in base 64")
    equal((result.svg, result.html, result.markdown), ("<svg/>", "<b>1</b>", "*1*"), "texts")
    equal((result.json, result.text), ({"a": [1]}, "Rich"), "JSON and plain text")


@case("CodeContext.close", "CodeContext.__exit__")
def context_close(world):
    context = world.shared["context"]
    context.close()
    raises(NotFoundError, lambda: context.run_code("x"), "a closed context")
    with world.sandbox("code-interpreter").create_code_context("bash") as shell:
        shell.run_code("y=5")
        equal(shell.run_code("echo $y").stdout, "5\n", "bash keeps its state")
    raises(NotFoundError, lambda: shell.run_code("echo"), "a context after its block")


@case("Sandbox.logs")
def logs(world):
    sandbox = world.create("base")
    sandbox.exec("echo first-line; echo second-line >&2")
    lines = list(sandbox.logs())
    check("first-line" in lines and "second-line" in lines, f"both: {lines!r}")
    equal("second-line" in list(sandbox.logs(stream="stdout")), False, "stderr among stdout")
    with running(sandbox, "sleep 4; echo third-line"):
        check("third-line" in list(sandbox.logs(follow=True)), "a followed line did not come")
    sandbox.kill()


# Files.


@case("filesystem.write")
def filesystem_write(world):
    files = world.sandbox().filesystem
    answer = files.write("/workspace/deep/er/text.txt", "é\n")
    equal((answer["path"], answer["bytes"]), ("/workspace/deep/er/text.txt", 3), "answer")
    files.write("/workspace/deep/bytes", bytes(range(256)))
    files.write("/workspace/deep/empty", b"")


@case("filesystem.read")
def filesystem_read(world):
    files = world.sandbox().filesystem
    equal(files.read("/workspace/deep/er/text.txt"), "é\n".encode(), "text")
    equal(files.read("/workspace/deep/bytes"), bytes(range(256)), "bytes")
    equal(files.read("/workspace/deep/empty"), b"", "an empty file")
    raises(NotFoundError, lambda: files.read("/workspace/nowhere"), "no such file")


@case("filesystem.upload", "filesystem.download")
def filesystem_upload(world):
    files = world.sandbox().filesystem
    content = os.urandom(300_000)
    with tempfile.TemporaryDirectory() as folder:
        source, copy = Path(folder, "a"), Path(folder, "b")
        source.write_bytes(content)
        equal(files.upload(source, "/workspace/up load+1")["bytes"], len(content), "bytes")
        files.download("/workspace/up load+1", copy)
        check(copy.read_bytes() == content, "what came back is not what was sent")


@case("filesystem.listdir")
def filesystem_listdir(world):
    files = world.sandbox().filesystem
    entries = {e.name: e for e in files.listdir("/workspace/deep")}
    equal(sorted(entries), ["bytes", "empty", "er"], "names")
    equal((entries["er"].is_dir, entries["bytes"].is_dir), (True, False), "is_dir")
    equal((entries["bytes"].path, entries["bytes"].size), ("/workspace/deep/bytes", 256), "path and size")
    check("etc" in {e.name for e in files.listdir()}, "the default is not the root")


@case("filesystem.stat")
def filesystem_stat(world):
    entry = world.sandbox().filesystem.stat("/workspace/deep/bytes")
    equal((entry.name, entry.is_dir, entry.size), ("bytes", False, 256), "entry")
    check(entry.mtime > 1_700_000_000, f"mtime {entry.mtime}")
    check(re.fullmatch(r"0?[0-7]{3,6}", entry.mode), f"mode {entry.mode!r}")


@case("filesystem.exists")
def filesystem_exists(world):
    files = world.sandbox().filesystem
    equal((files.exists("/workspace/deep"), files.exists("/workspace/nowhere")), (True, False), "exists")


@case("filesystem.walk")
def filesystem_walk(world):
    seen = [(path, [d.name for d in dirs], [f.name for f in files])
            for path, dirs, files in world.sandbox().filesystem.walk("/workspace/deep")]
    equal(seen[0][1], ["er"], "directories of the first")
    equal(seen[1], ("/workspace/deep/er", [], ["text.txt"]), "the second")


# States and how long a sandbox lives.


@case("Sandbox.pause", "Sandbox.resume", "Sandbox.refresh")
def pause_and_resume(world):
    sandbox = world.sandbox()
    sandbox.pause()
    equal(sandbox.refresh().status, "paused", "after pause")
    sandbox.resume()
    equal(sandbox.refresh().status, "running", "after resume")
    equal(sandbox.exec("echo on").stdout, "on\n", "a command after resume")


@case("Sandbox.hibernate", "Sandbox.wake")
def hibernate_and_wake(world):
    sandbox = world.sandbox()
    sandbox.exec("echo kept > /dev/shm/memory")
    sandbox.hibernate()
    equal(sandbox.refresh().status, "hibernated", "after hibernate")
    sandbox.wake()
    equal(sandbox.refresh().status, "running", "after wake")
    equal(sandbox.exec("cat /dev/shm/memory").stdout, "kept\n", "memory")
    sandbox.hibernate()
    equal(sandbox.exec("echo woken").stdout, "woken\n", "a command wakes it")


@case("Sandbox.set_ttl", "Sandbox.set_persistent", "Sandbox.lifecycle")
def lifecycle(world):
    sandbox = world.create("base")
    equal(sandbox.set_ttl(900)["ttl_seconds"], 900, "set_ttl")
    answer = sandbox.set_persistent(True)
    equal((answer["persistent"], answer["ttl_seconds"]), (True, 900), "set_persistent leaves the TTL")
    equal(sandbox.set_persistent(False)["persistent"], False, "set_persistent(False)")
    shown = sandbox.lifecycle()
    equal((shown["ttl_seconds"], shown["persistent"]), (900, False), "lifecycle")
    check("idle_seconds" in shown, "no idle_seconds")
    sandbox.set_ttl(1)
    wait_until(lambda: sandbox.id not in {s.id for s in Sandbox.list()}, "deleted at its TTL")


# Services in a sandbox.


@case("Sandbox.preview_urls", "Sandbox.preview_url")
def preview(world):
    sandbox = world.sandbox()
    sandbox.exec("mkdir -p /workspace/www; echo hi > /workspace/www/index.html")
    sandbox.exec("cd /workspace/www && (setsid python3 -m http.server 8000 >/dev/null 2>&1 &)")
    urls = wait_until(sandbox.preview_urls, "a port that listens")
    domain = re.sub(r"^https?://[^.]+\.", "", world.http("GET", f"/sandboxes/{sandbox.id}/ports").json()["ports"][0]["url"])
    sandbox._client.preview_host = domain.strip("/")
    url = sandbox.preview_url(8000, scheme="http")
    equal(url, f"http://8000-{sandbox.id}.{domain.strip('/')}", "preview_url")
    equal(list(urls), [8000], "ports")
    raises(ValueError, lambda: sandbox.preview_url(0), "port 0")
    without, with_key = visit(world, url, {}), visit(world, url, {"Authorization": f"Bearer {world.api_key}"})
    equal(with_key, (200, "hi\n"), "with the key")
    equal(without[0], 404, "without key or link")
    raise Differs("private by default: the address wants a key or a link")


def visit(world, url, headers):
    """Asks the daemon for the host of `url`, whose name need not be known to a resolver."""
    import requests

    answer = requests.get(world.api_url, headers={"Host": url.split("//")[1], **headers}, timeout=30)
    return answer.status_code, answer.text


# Snapshots, forks, explore.


@case("Sandbox.snapshot")
def snapshot(world):
    sandbox = world.sandbox()
    sandbox.filesystem.write("/workspace/moment", "then")
    world.shared["snapshot"] = sandbox.snapshot()
    check(re.fullmatch(r"[a-z0-9._-]+", world.shared["snapshot"]), f"id {world.shared['snapshot']!r}")
    sandbox.filesystem.write("/workspace/moment", "later")
    copy = world.create("code-interpreter", from_snapshot=world.shared["snapshot"])
    equal((copy.template, copy.from_snapshot), ("base", world.shared["snapshot"]), "the snapshot wins")
    equal(copy.filesystem.read("/workspace/moment"), b"then", "the content of that moment")
    copy.kill()


@case("snapshots.list", "snapshots.get")
def snapshots_list(world):
    source, wanted = world.sandbox().id, world.shared["snapshot"]
    (entry,) = world.client.snapshots.list(sandbox_id=source)
    equal((entry["id"], entry["sandbox_id"], entry["template"]), (wanted, source, "base"), "entry")
    check(isinstance(entry["size_bytes"], int), f"size_bytes {entry['size_bytes']!r}")
    check(wanted in {s["id"] for s in world.client.snapshots.list()}, "the whole list lacks it")
    equal(world.client.snapshots.get(wanted)["created_at"], entry["created_at"], "get")


@case("snapshots.delete")
def snapshots_delete(world):
    world.client.snapshots.delete(world.shared["snapshot"])
    raises(NotFoundError, lambda: world.client.snapshots.get(world.shared["snapshot"]), "a deleted snapshot")


@case("Sandbox.fork", "sandboxes.fork")
def fork(world):
    world.drop("code-interpreter")
    source = world.sandbox()
    source.exec("echo shared > /dev/shm/fork")
    child = world.keep(source.fork(metadata={"who": "child", "fork_parent_id": "forged"}))
    equal((child.metadata["who"], child.metadata["fork_parent_id"]), ("child", source.id), "metadata")
    equal(child.exec("cat /dev/shm/fork; echo own > /dev/shm/fork").stdout, "shared\n", "memory of the source")
    equal(source.exec("cat /dev/shm/fork").stdout, "shared\n", "the source after the child wrote")
    child.kill()
    other = world.keep(world.client.sandboxes.fork(source.id))
    equal((other.status, other.template), ("running", "base"), "a fork by id")
    other.kill()


@case("Sandbox.fork_tree", "sandboxes.fork_tree", "Sandbox.promote", "sandboxes.promote")
def fork_tree(world):
    source = world.sandbox()
    children = [world.keep(c) for c in source.fork_tree(2, metadata={"who": "branch"})]
    equal(len({c.id for c in children}), 2, "children")
    tree = {c.metadata["fork_tree_id"] for c in children}
    equal(len(tree), 1, "trees")
    others = [world.keep(c) for c in world.client.sandboxes.fork_tree(source.id, 1)]
    kept = children[0].promote()
    equal((kept["winner"], kept["deleted"]), (children[0].id, []), "promote without cleanup")
    raises(BadRequestError, lambda: children[0].promote(cleanup_siblings=True, tree_id="tree-other"), "another tree")
    answer = world.client.sandboxes.promote(children[0].id, cleanup_siblings=True, tree_id=tree.pop())
    equal(sorted(answer["deleted"]), sorted(c.id for c in children[1:]), "deleted")
    equal(answer["failures"], {}, "failures")
    alive = {s.id for s in Sandbox.list()}
    check({source.id, children[0].id, *(c.id for c in others)} <= alive, "too much was deleted")
    for sandbox in [children[0], *others]:
        sandbox.kill()


@case("Sandbox.explore", "pandastack.explore", "ExploreResult.best", "ExploreResult.table")
def explore(world):
    source = world.sandbox()
    result = source.explore(["exit 3", "echo won > ~/answer; echo PASS"])
    world.keep(result.winner)
    equal(result.errors, [], "errors")
    equal(result.winner_outcome.stdout_tail, "PASS\n", "the winner's output")
    equal(result.winner_outcome.files_changed, ["/home/agent/answer"], "files that changed")
    equal(result.winner.filesystem.read("/home/agent/answer"), b"won\n", "the winner's file")
    equal(result.best()[0], result.winner_outcome, "best")
    check(result.table().count("\n") == 2, "a table of two branches")
    equal(len(result.reaped), 1, "reaped")
    result.winner.kill()
    before = len(world.ours())
    raises(ExploreError, lambda: pandastack.explore(source, ["exit 1", "exit 2"]), "no branch succeeds")
    equal(len(world.ours()), before, "branches left over")


@case("Candidate.shell", "Candidate.call")
def candidates(world):
    shell = Candidate.shell("by shell", "sh -c 'test $WHO = me'", env={"WHO": "me"}, score=1.0)
    call = Candidate.call("by call", lambda sb: sb.exec("echo 42").stdout, score=2.0)
    result = world.sandbox().explore([shell, call], capture_files=False)
    world.keep(result.winner)
    equal((result.winner_outcome.label, result.winner_outcome.value), ("by call", "42\n"), "winner")
    check(all(o.ok for o in result.outcomes), "the command with a variable failed")
    result.winner.kill()


# Volumes.


@case("volumes.create", "volumes.get", "volumes.list")
def volumes(world):
    name = f"conformance-{world.run}"
    made = world.client.volumes.create(name, 64)
    equal((made["name"], made["size_mb"]), (name, 64), "create")
    equal(world.client.volumes.get(name)["created_at"], made["created_at"], "get")
    check(name in {v["name"] for v in world.client.volumes.list()}, "list lacks it")


@case("volumes.delete")
def volumes_delete(world):
    name = f"conformance-{world.run}"
    writer = world.create(volumes=[{"name": name}])
    equal(writer.exec(f"echo kept > /volumes/{name}/file && sync").exit_code, 0, "write")
    raises(BadRequestError, lambda: world.client.volumes.delete(name), "delete while attached")
    writer.kill()
    reader = world.create(volumes=[{"name": name, "read_only": True}])
    equal(reader.exec(f"cat /volumes/{name}/file").stdout, "kept\n", "read")
    check(reader.exec(f"touch /volumes/{name}/other").exit_code != 0, "a read-only volume was written")
    reader.kill()
    world.client.volumes.delete(name)
    raises(NotFoundError, lambda: world.client.volumes.get(name), "a deleted volume")


# Templates.


@case("templates.list", "pandastack.templates.list")
def templates_list(world):
    for listed in (world.client.templates.list(), pandastack.templates.list()):
        check({"base", "code-interpreter", "ubuntu-24.04"} <= {t.name for t in listed}, "list lacks some")


@case("templates.get", "pandastack.templates.get")
def templates_get(world):
    for template in (world.client.templates.get("base"), pandastack.templates.get("base")):
        equal((template.name, template.is_global), ("base", True), "template")
        check(template.size_bytes > 0 and template.memory_mb >= 128, f"sizes of {template!r}")
    raises(NotFoundError, lambda: world.client.templates.get("nowhere"), "no such template")


DOCKERFILE = "FROM base\nCOPY greeting/ /srv/greeting/\nRUN cat /srv/greeting/text && echo end\n"


@contextlib.contextmanager
def build_context():
    """A directory as people have it: with the Dockerfile in it."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "greeting").mkdir()
        (root / "greeting" / "text").write_text("hello é\n")
        (root / "Dockerfile").write_text(DOCKERFILE)
        yield root


def is_usable(world, build):
    """Whether a sandbox of what was built has what it should."""
    sandbox = world.create(template=build.image_ref)
    text = sandbox.exec("cat /srv/greeting/text").stdout
    sandbox.kill()
    equal(text, "hello é\n", "the file that was sent")


def drop_steps(world):
    """The cache of a build is snapshots of the project."""
    for snapshot in world.http("GET", "/snapshots").json()["snapshots"]:
        if (snapshot.get("name") or "").startswith("step-"):
            world.http("DELETE", f"/snapshots/{snapshot['id']}")


@case("templates.build_from_dockerfile", "templates.get_build", "templates.build_logs", "templates.wait_for_build",
      "templates.builds", "templates.delete")
def templates_build_from_dockerfile(world):
    templates, name = world.client.templates, f"conformance-{world.run}"
    with build_context() as root:
        begun = templates.build_from_dockerfile(name, str(root / "Dockerfile"), context_dir=str(root))
    check(begun.status in ("queued", "running") and begun.error is None, f"begun: {begun!r}")
    lines = list(templates.build_logs(begun.id))
    # Also what a step says that looks like the end.
    for wanted in ("[2/2] RUN cat /srv/greeting/text && echo end", "| hello é", "| end"):
        check(wanted in lines, f"the log lacks {wanted!r}: {lines}")
    done = templates.wait_for_build(begun.id)
    equal((done.status, done.error, done.image_ref), ("done", None, f"{name}:latest"), "done")
    check(done.bytes > 0 and done.size_mb >= 1024 and done.started_at <= done.ended_at, f"done: {done!r}")
    equal(list(templates.build_logs(begun.id, follow=False)), lines, "the log of a build that ended")
    equal(templates.get_build(begun.id), done, "get_build")
    equal([b.id for b in templates.builds()][:1], [begun.id], "builds, newest first")
    is_usable(world, done)
    mine = templates.get(name)
    equal((mine.name, mine.is_global), (name, False), "template")
    check(name in {t.name for t in templates.list()}, "the list lacks it")
    templates.delete(name)
    raises(NotFoundError, lambda: templates.get(name), "a deleted template")
    refused(lambda: templates.delete("base"), "delete of the server's")
    equal(templates.get("base").name, "base", "still there")
    raises(NotFoundError, lambda: templates.get_build("build-1"), "no such build")
    failed = templates.build_from_dockerfile(name, "FROM base\nRUN exit 3\n")
    error = raises(pandastack.TemplateBuildError, lambda: templates.wait_for_build(failed.id), "a build that fails")
    check("exit code 3" in str(error), f"why it failed: {error}")
    drop_steps(world)


@case("pandastack.templates.build_from_dockerfile", "pandastack.templates.build_logs",
      "pandastack.templates.wait_for_build", "pandastack.templates.delete")
def module_build_from_dockerfile(world):
    name = f"conformance-{world.run}-m"
    with build_context() as root:
        begun = pandastack.templates.build_from_dockerfile(name, DOCKERFILE, context_dir=str(root))
    check("| end" in list(pandastack.templates.build_logs(begun.id)), "the log lacks a line")
    is_usable(world, pandastack.templates.wait_for_build(begun.id))
    pandastack.templates.delete(name)
    raises(NotFoundError, lambda: pandastack.templates.get(name), "a deleted template")
    drop_steps(world)


@case("templates.register", "pandastack.templates.register")
def templates_register(world):
    for number, templates in enumerate((world.client.templates, pandastack.templates)):
        name = f"conformance-{world.run}-r{number}"
        begun = templates.register(name, "base", memory_mb=512)
        equal(begun.image_ref, "base", "what was asked for")
        done = templates.wait_for_build(begun.id)
        equal((done.status, done.image_ref), ("done", f"{name}:latest"), "done")
        sandbox = world.create(template=done.image_ref)
        equal(sandbox.exec("echo 42").stdout, "42\n", "exec")
        sandbox.kill()
        templates.delete(name)
    refused(lambda: world.client.templates.register("mine", "base", kernel="mine"), "a kernel")
    refused(lambda: world.client.templates.register("builds", "base"), "a name that is a path")
    drop_steps(world)


@case("templates.build", "pandastack.templates.build", not_offered=True)
def templates_build(world):
    for owner in (world.client.templates, pandastack.templates):
        with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
            archive.write(b"x")
            archive.flush()
            refused(lambda: owner.build("mine", rootfs_tar=archive.name), "build")


@case("templates.push", "pandastack.templates.push", "pandastack.templates.registry_ref")
def templates_push(world):
    raise NotCalled("needs a container engine and a registry before it does what `register` does")


# Tokens.


@case("tokens.create", "tokens.list", "tokens.revoke")
def tokens(world):
    token_cases(world, world.client.tokens)


@case("pandastack.tokens.create", "pandastack.tokens.list", "pandastack.tokens.revoke")
def module_tokens(world):
    token_cases(world, pandastack.tokens)


def token_cases(world, tokens):
    name = f"conformance-{world.run}"
    made = tokens.create(name, expires_in_days=1)
    equal(made.name, name, "name")
    other = pandastack.Client(api_key=made.token)
    equal(other.me()["project"], world.client.me()["project"], "the token's project")
    check(made.prefix in {t.prefix for t in tokens.list()}, "list lacks it")
    check(all(t.token is None for t in tokens.list()), "the list shows a secret")
    tokens.revoke(made.prefix)
    check(made.prefix not in {t.prefix for t in tokens.list()}, "a revoked token is listed")
    wait_until(lambda: denied(other), "the token is refused", 10)


def denied(client):
    try:
        client.me()
    except pandastack.AuthError:
        return True
    return False


# The end of a sandbox.


@case("Sandbox.kill", "sandboxes.delete")
def kill(world):
    first, second = world.create(), world.create()
    first.kill()
    raises(NotFoundError, lambda: first.exec("true"), "a command in a deleted sandbox")
    world.client.sandboxes.delete(second.id)
    check(not {first.id, second.id} & {s.id for s in Sandbox.list()}, "still listed")
    world.client.sandboxes.delete(second.id)


@case("Sandbox.__exit__")
def with_block(world):
    with world.create() as sandbox:
        equal(sandbox.exec("echo in").stdout, "in\n", "inside the block")
    check(sandbox.id not in {s.id for s in Sandbox.list()}, "alive after its block")


if __name__ == "__main__":
    import python_cases  # noqa: F401  registers the cases that are about no single method

    arguments = sys.argv[1:]
    main("--slow" in arguments, [a for a in arguments if not a.startswith("--")])
