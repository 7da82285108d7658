// One case for each public method of the published TypeScript client.

import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Differs, begin, check, collect, equal, main, sdk, testCase, throws, waitUntil } from "./harness.mjs";

const { BadRequestError, Client, CommandError, ExploreError, NotFoundError, PandaStackError, Sandbox } = sdk;

// What is not offered must be refused with a status and a text, and not by a broken connection.
async function refused(call, what) {
  let value;
  try {
    value = await call();
  } catch (error) {
    check(error instanceof PandaStackError && error.statusCode >= 400, `${what}: ${error}`);
    check(error.message.length > 8, `${what}: no text`);
    return;
  }
  check(false, `${what}: not refused, gave ${JSON.stringify(value)}`);
}

// The client and who it is.

testCase("Client.me", async (world) => {
  equal(typeof (await world.client.me()).project, "string", "project");
});

testCase("Client.request", async (world) => {
  const answer = await world.client.request("GET", "/me");
  equal(answer, await world.client.me(), "the same as me()");
});

// Sandboxes.

testCase("Sandbox.create", async (world) => {
  const metadata = { conformance: world.run, name: "é" };
  const sandbox = world.keep(await Sandbox.create({ metadata, ttlSeconds: 1800 }));
  check(/^[a-z0-9-]{1,57}$/.test(sandbox.id), `id ${sandbox.id} is no DNS label`);
  equal(sandbox.info.metadata.name, "é", "metadata");
  check(["base", "ubuntu-24.04"].includes(sandbox.template), `template ${sandbox.template}`);
  check(Number.isInteger(sandbox.info.cpu) && Number.isInteger(sandbox.info.memory_mb), "sizes are no integers");
  check(!Number.isNaN(Date.parse(sandbox.info.created_at)), "created_at");
  equal((await sandbox.exec("echo default")).stdout, "default\n", "a command");
  await sandbox.kill();
});

testCase("sandboxes.create", async (world) => {
  const sandbox = await world.create({ persistent: true, volumes: [] });
  equal([sandbox.template, sandbox.info.persistent], ["base", true], "template and persistent");
  world.shared.base = sandbox;
  // Nulls that a caller passes go out on the wire and count as absent.
  await (await world.create({ persistent: null, ttlSeconds: null, fromSnapshot: null })).kill();
});

testCase("Sandbox.fromInfo", async (world) => {
  const sandbox = await world.sandbox();
  const same = Sandbox.fromInfo(sandbox.info, world.client);
  equal([same.id, same.template, same.status], [sandbox.info.id, "base", "running"], "fields");
  equal((await same.exec("echo same")).stdout, "same\n", "a command");
});

testCase(["Sandbox.list", "sandboxes.list"], async (world) => {
  const { id } = await world.sandbox();
  for (const list of [await Sandbox.list(), await world.client.sandboxes.list()]) {
    check(list.some((sandbox) => sandbox.id === id), "the list lacks ours");
  }
});

testCase(["Sandbox.get", "sandboxes.get"], async (world) => {
  const { id, info } = await world.sandbox();
  for (const got of [await Sandbox.get(id), await world.client.sandboxes.get(id)]) {
    equal([got.id, got.info.created_at], [id, info.created_at], "sandbox");
  }
  const error = await throws(NotFoundError, () => Sandbox.get("sb-nowhere"), "an unknown id");
  equal(error.statusCode, 404, "status");
});

// Commands and code.

testCase("Sandbox.exec", async (world) => {
  const sandbox = await world.sandbox();
  const result = await sandbox.exec("printf 'één\\n'; echo two >&2; exit 3");
  equal([result.stdout, result.stderr, result.exitCode, result.exit_code], ["één\n", "two\n", 3, 3], "result");
  check(Number.isInteger(result.duration_ms), "no duration");
  const failed = await throws(CommandError, () => sandbox.exec("echo out; exit 4", { check: true }), "check");
  equal([failed.exitCode, failed.stdout], [4, "out\n"], "CommandError");
  equal((await sandbox.exec("kill -9 $$")).exitCode, 137, "exit code of a signal");
});

testCase("commands.run", async (world) => {
  const result = await (await world.sandbox()).commands.run("cat <<'X'\nhere\nX", { timeoutSeconds: 20.5 });
  equal([result.stdout, result.exitCode], ["here\n", 0], "result");
});

testCase("Sandbox.execStream", async (world) => {
  const [out, err] = [[], []];
  const code = await (await world.sandbox()).execStream("echo one; sleep 0.5; echo two; echo bad >&2; exit 7", {
    onStdout: (chunk) => out.push(chunk),
    onStderr: (chunk) => err.push(chunk),
  });
  equal([code, out.join(""), err.join("")], [7, "one\ntwo\n", "bad\n"], "stream");
  check(out.length >= 2, "output before and after the pause came in one piece");
});

testCase("Sandbox.runCode", async (world) => {
  const sandbox = await world.sandbox();
  equal((await sandbox.runCode("echo $((6 * 7))")).stdout, "42\n", "shell");
  equal((await sandbox.runCode("print('it\\'s', 6 * 7)", "python")).stdout, "it's 42\n", "Python");
});

testCase("Sandbox.createCodeContext", async (world) => {
  const context = await (await world.sandbox("code-interpreter")).createCodeContext("py");
  check(/^[a-z0-9._-]+$/.test(context.id), `id ${context.id}`);
  equal(context.language, "python", "language");
  world.shared.context = context;
});

testCase("CodeContext.runCode", async (world) => {
  const { context } = world.shared;
  await context.runCode("x = 41");
  const result = await context.runCode("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx + 1");
  equal([result.text, result.exit_code, result.stdout, result.stderr], ["42", 0, "out\n", "err\n"], "result");
  check(result.duration_ms > 0 && !result.error, `duration or error of ${JSON.stringify(result)}`);
  const failed = await context.runCode("1 / 0");
  check(failed.error?.includes("ZeroDivisionError") && failed.exit_code !== 0, `error ${failed.error}`);
});

const RICH = `
class Rich:
    def _repr_png_(self): return b'png'
    def _repr_jpeg_(self): return b'jpeg'
    def _repr_svg_(self): return '<svg/>'
    def _repr_html_(self): return '<b>1</b>'
    def _repr_markdown_(self): return '*1*'
    def _repr_json_(self): return {'a': [1]}
    def __repr__(self): return 'Rich'
Rich()
`;

testCase(
  ["Result.png", "Result.jpeg", "Result.svg", "Result.html", "Result.markdown", "Result.json", "Result.text",
    "Result.chart", "Execution.png", "Execution.text"],
  async (world) => {
    const execution = await world.shared.context.runCode(RICH);
    equal(execution.results.length, 1, "results");
    const [result] = execution.results;
    equal([result.png, result.jpeg, result.chart], ["cG5n", "anBlZw==", "cG5n"], "images in base 64");
    equal([result.svg, result.html, result.markdown], ["<svg/>", "<b>1</b>", "*1*"], "texts");
    equal([result.json, result.text], [{ a: [1] }, "Rich"], "JSON and plain text");
    equal([execution.png, execution.text], ["cG5n", "Rich"], "of the execution");
  },
);

testCase(["CodeContext.close", "CodeContext.asyncDispose"], async (world) => {
  const { context } = world.shared;
  await context.close();
  await throws(NotFoundError, () => context.runCode("x"), "a closed context");
  const shell = await (await world.sandbox("code-interpreter")).createCodeContext("bash");
  await shell.runCode("y=5");
  equal((await shell.runCode("echo $y")).stdout, "5\n", "bash keeps its state");
  await shell[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  await throws(NotFoundError, () => shell.runCode("echo"), "a context after its block");
});

testCase("Sandbox.logs", async (world) => {
  const sandbox = await world.create();
  await sandbox.exec("echo first-line; echo second-line >&2");
  const lines = await collect(sandbox.logs());
  check(lines.includes("first-line") && lines.includes("second-line"), `both: ${JSON.stringify(lines)}`);
  const stdout = await collect(sandbox.logs({ stream: "stdout", follow: false }));
  check(!stdout.includes("second-line"), "stderr among stdout");
  const { ended } = await begin(sandbox, "sleep 4; echo third-line");
  check((await collect(sandbox.logs({ follow: true }))).includes("third-line"), "a followed line did not come");
  await ended;
  await sandbox.kill();
});

// Files.

testCase("filesystem.write", async (world) => {
  const { filesystem } = await world.sandbox();
  equal(await filesystem.write("/workspace/deep/er/text.txt", "é\n").then((a) => [a.path, a.bytes]),
    ["/workspace/deep/er/text.txt", 3], "answer");
  await filesystem.write("/workspace/deep/bytes", Uint8Array.from({ length: 256 }, (_, i) => i));
  await filesystem.write("/workspace/deep/empty", "");
  equal((await (await world.sandbox()).exec("wc -c < /workspace/deep/bytes")).stdout.trim(), "256", "bytes");
});

testCase("filesystem.read", async (world) => {
  const { filesystem } = await world.sandbox();
  equal(await filesystem.read("/workspace/deep/er/text.txt"), "é\n", "text");
  equal(await filesystem.read("/workspace/deep/empty"), "", "an empty file");
  await throws(NotFoundError, () => filesystem.read("/workspace/nowhere"), "no such file");
});

testCase(["filesystem.upload", "filesystem.download"], async (world) => {
  const { filesystem } = await world.sandbox();
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  // The client reads every file as text, so this one is text.
  const content = randomBytes(150_000).toString("hex");
  try {
    await writeFile(join(folder, "a"), content);
    equal((await filesystem.upload(join(folder, "a"), "/workspace/up load+1")).bytes, content.length, "bytes");
    await filesystem.download("/workspace/up load+1", join(folder, "b"));
    check((await readFile(join(folder, "b"), "utf8")) === content, "what came back is not what was sent");
  } finally {
    await rm(folder, { recursive: true });
  }
});

testCase("filesystem.list", async (world) => {
  const { filesystem } = await world.sandbox();
  const entries = await filesystem.list("/workspace/deep");
  equal(entries.map((e) => e.name).sort(), ["bytes", "empty", "er"], "names");
  const bytes = entries.find((e) => e.name === "bytes");
  equal([bytes.path, bytes.size, bytes.is_dir], ["/workspace/deep/bytes", 256, false], "entry");
  equal(entries.find((e) => e.name === "er").is_dir, true, "is_dir");
  check((await filesystem.list()).some((e) => e.name === "etc"), "the default is not the root");
});

testCase("filesystem.stat", async (world) => {
  const entry = await (await world.sandbox()).filesystem.stat("/workspace/deep/bytes");
  equal([entry.name, entry.is_dir, entry.size], ["bytes", false, 256], "entry");
  check(Number.isInteger(entry.mtime) && entry.mtime > 1_700_000_000, `mtime ${entry.mtime}`);
  check(/^0?[0-7]{3,6}$/.test(entry.mode), `mode ${entry.mode}`);
});

testCase("filesystem.exists", async (world) => {
  const { filesystem } = await world.sandbox();
  equal([await filesystem.exists("/workspace/deep"), await filesystem.exists("/workspace/nowhere")],
    [true, false], "exists");
});

testCase("filesystem.walk", async (world) => {
  const seen = await collect((await world.sandbox()).filesystem.walk("/workspace/deep"));
  equal(seen[0].dirs.map((d) => d.name), ["er"], "directories of the first");
  equal([seen[1].dir, seen[1].files.map((f) => f.name)], ["/workspace/deep/er", ["text.txt"]], "the second");
});

// States and how long a sandbox lives.

const statusOf = async (sandbox) => (await Sandbox.get(sandbox.id)).status;

testCase(["Sandbox.pause", "Sandbox.resume"], async (world) => {
  const sandbox = await world.sandbox();
  await sandbox.pause();
  equal(await statusOf(sandbox), "paused", "after pause");
  await sandbox.resume();
  equal(await statusOf(sandbox), "running", "after resume");
  equal((await sandbox.exec("echo on")).stdout, "on\n", "a command after resume");
});

testCase(["Sandbox.hibernate", "Sandbox.wake"], async (world) => {
  const sandbox = await world.sandbox();
  await sandbox.exec("echo kept > /dev/shm/memory");
  await sandbox.hibernate();
  equal(await statusOf(sandbox), "hibernated", "after hibernate");
  await sandbox.wake();
  equal(await statusOf(sandbox), "running", "after wake");
  equal((await sandbox.exec("cat /dev/shm/memory")).stdout, "kept\n", "memory");
  await sandbox.hibernate();
  equal((await sandbox.exec("echo woken")).stdout, "woken\n", "a command wakes it");
});

testCase(["Sandbox.setTtl", "Sandbox.setPersistent", "Sandbox.lifecycle"], async (world) => {
  const sandbox = await world.create();
  equal((await sandbox.setTtl(900)).ttl_seconds, 900, "setTtl");
  const answer = await sandbox.setPersistent(true);
  equal([answer.persistent, answer.ttl_seconds], [true, 900], "setPersistent leaves the TTL");
  equal((await sandbox.setPersistent(false)).persistent, false, "setPersistent(false)");
  const shown = await sandbox.lifecycle();
  equal([shown.ttl_seconds, shown.persistent, "idle_seconds" in shown], [900, false, true], "lifecycle");
  await sandbox.setTtl(1);
  await waitUntil(async () => !(await world.ids()).has(sandbox.id), "deleted at its TTL");
});

// Services in a sandbox.

testCase(["Sandbox.previewUrls", "Sandbox.previewUrl"], async (world) => {
  const sandbox = await world.sandbox();
  await sandbox.exec("mkdir -p /workspace/www; echo hi > /workspace/www/index.html");
  await sandbox.exec("cd /workspace/www && (setsid python3 -m http.server 8000 >/dev/null 2>&1 &)");
  const urls = await waitUntil(async () => {
    const found = await sandbox.previewUrls();
    return Object.keys(found).length && found;
  }, "a port that listens");
  equal(Object.keys(urls), ["8000"], "ports");
  const { ports } = await world.client.request("GET", `/sandboxes/${sandbox.id}/ports`);
  world.client.previewHost = ports[0].url.replace(/^https?:\/\/[^.]+\./, "").replace(/\/$/, "");
  const url = sandbox.previewUrl(8000, "http");
  equal(url, `http://8000-${sandbox.id}.${world.client.previewHost}`, "previewUrl");
  equal(await visit(world, url, { authorization: `Bearer ${world.apiKey}` }), [200, "hi\n"], "with the key");
  equal((await visit(world, url, {}))[0], 404, "without key or link");
  throw new Differs("private by default: the address wants a key or a link");
});

// Asks the daemon for the host of `url`, whose name need not be known to a resolver.
function visit(world, url, headers) {
  const host = new URL(url).host;
  return new Promise((resolve, reject) => {
    get(world.apiUrl, { headers: { host, ...headers } }, async (response) => {
      resolve([response.statusCode, (await collect(response)).join("")]);
    }).on("error", reject);
  });
}

// Snapshots, forks, explore.

testCase("Sandbox.snapshot", async (world) => {
  const sandbox = await world.sandbox();
  await sandbox.filesystem.write("/workspace/moment", "then");
  const made = await sandbox.snapshot();
  world.shared.snapshot = made.id;
  equal(made.sandbox_id, sandbox.id, "sandbox_id");
  check(!Number.isNaN(Date.parse(made.created_at)), "created_at");
  await sandbox.filesystem.write("/workspace/moment", "later");
  const copy = await world.create({ template: "code-interpreter", fromSnapshot: made.id });
  equal([copy.template, copy.info.from_snapshot], ["base", made.id], "the snapshot wins");
  equal(await copy.filesystem.read("/workspace/moment"), "then", "the content of that moment");
  await copy.kill();
});

testCase(["snapshots.list", "snapshots.get"], async (world) => {
  const [source, wanted] = [(await world.sandbox()).id, world.shared.snapshot];
  const [entry, ...more] = await world.client.snapshots.list({ sandbox_id: source });
  equal([entry.id, entry.sandbox_id, entry.template, more.length], [wanted, source, "base", 0], "entry");
  check(Number.isInteger(entry.size_bytes), `size_bytes ${entry.size_bytes}`);
  check((await world.client.snapshots.list()).some((s) => s.id === wanted), "the whole list lacks it");
  equal((await world.client.snapshots.get(wanted)).created_at, entry.created_at, "get");
});

testCase("snapshots.delete", async (world) => {
  await world.client.snapshots.delete(world.shared.snapshot);
  await throws(NotFoundError, () => world.client.snapshots.get(world.shared.snapshot), "a deleted snapshot");
});

testCase("Sandbox.fork", async (world) => {
  await world.drop("code-interpreter");
  const source = await world.sandbox();
  await source.exec("echo shared > /dev/shm/fork");
  const child = world.keep(await source.fork({ metadata: { who: "child", fork_parent_id: "forged" } }));
  const { who, fork_parent_id: parent } = child.info.metadata;
  equal([who, parent], ["child", source.id], "metadata");
  const read = await child.exec("cat /dev/shm/fork; echo own > /dev/shm/fork");
  equal(read.stdout, "shared\n", "memory of the source");
  equal((await source.exec("cat /dev/shm/fork")).stdout, "shared\n", "the source after the child wrote");
  await child.kill();
  const other = world.keep(await source.fork());
  check(other.info.created_at !== source.info.created_at, "the answer leaves fields to be copied from the parent");
  await other.kill();
});

testCase(["Sandbox.forkTree", "Sandbox.promote"], async (world) => {
  const source = await world.sandbox();
  const children = await source.forkTree({ count: 2, metadata: { who: "branch" } });
  const others = await source.forkTree({ count: 1 });
  [...children, ...others].forEach((child) => world.keep(child));
  equal([children.length, others.length], [2, 1], "children");
  const [first, ...losers] = children;
  const tree = first.info.metadata.fork_tree_id;
  check(tree && children.every((c) => c.info.metadata.fork_tree_id === tree), "one tree for all");
  const kept = await first.promote();
  equal([kept.winner, kept.deleted], [first.id, []], "promote without cleanup");
  const options = { cleanupSiblings: true, treeId: "tree-other" };
  await throws(BadRequestError, () => first.promote(options), "another tree");
  const answer = await first.promote({ cleanupSiblings: true, treeId: tree });
  equal(answer.deleted.sort(), losers.map((c) => c.id).sort(), "deleted");
  equal(answer.failures, {}, "failures");
  const alive = await world.ids();
  check([source, first, ...others].every((s) => alive.has(s.id)), "too much was deleted");
  for (const sandbox of [first, ...others]) await sandbox.kill();
});

testCase("Sandbox.explore", async (world) => {
  const source = await world.sandbox();
  const result = await source.explore(["exit 3", "echo won > ~/answer; echo PASS"]);
  world.keep(result.winner);
  equal([result.errors, result.reaped.length, result.reapFailures], [[], 1, {}], "errors and losers");
  equal(result.winnerOutcome.stdoutTail, "PASS\n", "the winner's output");
  equal(result.winnerOutcome.filesChanged, ["/home/agent/answer"], "files that changed");
  equal(await result.winner.filesystem.read("/home/agent/answer"), "won\n", "the winner's file");
  await result.winner.kill();
  const before = (await world.ours()).length;
  await throws(ExploreError, () => source.explore(["exit 1", "exit 2"]), "no branch succeeds");
  equal((await world.ours()).length, before, "branches left over");
});

// Volumes.

testCase(["volumes.create", "volumes.get", "volumes.list"], async (world) => {
  const name = `conformance-${world.run}`;
  const made = await world.client.volumes.create({ name, size_mb: 64 });
  equal([made.name, made.size_mb], [name, 64], "create");
  equal((await world.client.volumes.get(name)).created_at, made.created_at, "get");
  check((await world.client.volumes.list()).some((v) => v.name === name), "list lacks it");
});

testCase("volumes.delete", async (world) => {
  const name = `conformance-${world.run}`;
  const writer = await world.create({ volumes: [{ name }] });
  equal((await writer.exec(`echo kept > /volumes/${name}/file && sync`)).exitCode, 0, "write");
  await throws(BadRequestError, () => world.client.volumes.delete(name), "delete while attached");
  await writer.kill();
  const reader = await world.create({ volumes: [{ name, readOnly: true }] });
  equal((await reader.exec(`cat /volumes/${name}/file`)).stdout, "kept\n", "read");
  check((await reader.exec(`touch /volumes/${name}/other`)).exitCode !== 0, "a read-only volume was written");
  await reader.kill();
  await world.client.volumes.delete(name);
  await throws(NotFoundError, () => world.client.volumes.get(name), "a deleted volume");
});

// Templates.

testCase("templates.list", async (world) => {
  const names = (await world.client.templates.list()).map((t) => t.name);
  check(["base", "code-interpreter", "ubuntu-24.04"].every((n) => names.includes(n)), `list lacks some: ${names}`);
});

testCase("templates.get", async (world) => {
  const template = await world.client.templates.get("base");
  equal([template.name, template.is_global], ["base", true], "template");
  check(template.size_bytes > 0 && template.memory_mb >= 128, "sizes");
  await throws(NotFoundError, () => world.client.templates.get("nowhere"), "no such template");
});

/** The cache of a build is snapshots of the project. */
async function dropSteps(world) {
  for (const snapshot of await world.client.snapshots.list()) {
    if ((snapshot.name ?? "").startsWith("step-")) await world.client.snapshots.delete(snapshot.id);
  }
}

testCase(
  ["templates.buildFromDockerfile", "templates.buildStatus", "templates.buildLogs", "templates.waitForBuild", "templates.builds", "templates.delete"],
  async (world) => {
    const { templates } = world.client;
    const name = `conformance-${world.run}`;
    const dockerfile = "FROM base\nCOPY greeting/ /srv/greeting/\nRUN cat /srv/greeting/text && echo end && echo 'event: done'\n";
    const begun = await templates.buildFromDockerfile({ name, dockerfile, context: { "greeting/text": "hello é\n" } });
    check(["queued", "running"].includes(begun.status), `begun: ${begun.status}`);
    const lines = await collect(templates.buildLogs(begun.id));
    // Also what a step says that looks like the end.
    for (const wanted of ["| hello é", "| end"]) check(lines.includes(wanted), `the log lacks ${wanted}: ${lines}`);
    check(lines.at(-1).startsWith(`built ${name}:latest`), `the last line: ${lines.at(-1)}`);
    const done = await templates.waitForBuild(begun.id);
    equal([done.status, done.image_ref], ["done", `${name}:latest`], "done");
    check(done.bytes > 0 && done.size_mb >= 1024, "sizes");
    equal(await collect(templates.buildLogs(begun.id, { follow: false })), lines, "the log of a build that ended");
    equal(await templates.buildStatus(begun.id), done, "buildStatus");
    equal((await templates.builds())[0].id, begun.id, "builds, newest first");
    const sandbox = await world.create({ template: done.image_ref });
    equal((await sandbox.exec("cat /srv/greeting/text")).stdout, "hello é\n", "the file that was sent");
    await sandbox.kill();
    check((await templates.list()).some((t) => t.name === name && t.is_global === false), "the list lacks it");
    await templates.delete(name);
    await throws(NotFoundError, () => templates.get(name), "a deleted template");
    await refused(() => templates.delete("base"), "delete of the server's");
    await throws(NotFoundError, () => templates.buildStatus("build-1"), "no such build");
    const failed = await templates.buildFromDockerfile({ name, dockerfile: "FROM base\nRUN exit 3\n" });
    await throws(sdk.TemplateBuildError, () => templates.waitForBuild(failed.id), "a build that fails");
    await dropSteps(world);
  },
);

testCase("templates.register", async (world) => {
  const { templates } = world.client;
  const name = `conformance-${world.run}-r`;
  const begun = await templates.register({ name, imageRef: "base" });
  const done = await templates.waitForBuild(begun.id);
  equal([begun.image_ref, done.image_ref], ["base", `${name}:latest`], "references");
  const sandbox = await world.create({ template: done.image_ref });
  equal((await sandbox.exec("echo 42")).stdout, "42\n", "exec");
  await sandbox.kill();
  await templates.delete(name);
  await refused(() => templates.register({ name: "builds", imageRef: "base" }), "a name that is a path");
  await dropSteps(world);
});

testCase("templates.build", async (world) => {
  const { templates } = world.client;
  await refused(() => templates.build({ name: "mine", rootfs: new Uint8Array(8) }), "build");
}, { notOffered: true });

// Tokens.

testCase(["tokens.create", "tokens.list", "tokens.revoke"], async (world) => {
  const { tokens } = world.client;
  const made = await tokens.create(`conformance-${world.run}`);
  equal(made.label, `conformance-${world.run}`, "label");
  const other = new Client({ apiKey: made.token });
  equal((await other.me()).project, (await world.client.me()).project, "the token's project");
  const listed = (await tokens.list()).find((t) => t.prefix === made.prefix);
  check(listed && !listed.token, "the list lacks it, or shows its secret");
  await tokens.revoke(made.prefix);
  await waitUntil(() => other.me().then(() => false, (e) => e instanceof sdk.AuthError), "refused", 10);
  const unnamed = await tokens.create();
  await tokens.revoke(unnamed.prefix);
  check(!(await tokens.list()).some((t) => [made.prefix, unnamed.prefix].includes(t.prefix)), "still listed");
});

// The end of a sandbox.

testCase(["Sandbox.kill", "sandboxes.delete"], async (world) => {
  const [first, second] = [await world.create(), await world.create()];
  await first.kill();
  await throws(NotFoundError, () => first.exec("true"), "a command in a deleted sandbox");
  await world.client.sandboxes.delete(second.id);
  await world.client.sandboxes.delete(second.id);
  const alive = await world.ids();
  check(!alive.has(first.id) && !alive.has(second.id), "still listed");
});

testCase("Sandbox.asyncDispose", async (world) => {
  const sandbox = await world.create();
  await sandbox[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  check(!(await world.ids()).has(sandbox.id), "alive after its block");
});

await import("./typescript_cases.mjs");
const words = process.argv.slice(2);
await main(words.includes("--slow"), words.filter((word) => !word.startsWith("--")));
