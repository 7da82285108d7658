// What the shared cases do not show, against a real daemon.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client, NotFound, Sandbox, SandboxTimeout, Snapshot, templates, Volume } from "dayfly";

const apiUrl = process.env["DAYFLY_API_URL"] ?? "";
const isRequired = process.env["DAYFLY_REQUIRE_VM"] === "1";
const skip = apiUrl === "" && !isRequired && "DAYFLY_API_URL is not set: there is no daemon to run this against";

function daemonTest(name: string, work: () => Promise<void>): void {
  test(name, { skip, timeout: 300_000 }, async () => {
    assert.notEqual(apiUrl, "", "DAYFLY_REQUIRE_VM=1 and DAYFLY_API_URL is not set");
    await work();
  });
}

/** A way to the daemon that cuts connections after so many bytes of answers, each time after more. */
async function cuttingProxy(bytesAtFirst: number): Promise<{ apiUrl: string; cuts: () => number }> {
  const target = new URL(apiUrl);
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    sockets.add(near).add(far);
    let passed = 0;
    const bytesMax = bytesAtFirst * (1 + cuts / 2);
    near.on("data", (piece) => far.write(piece));
    far.on("data", (piece) => {
      const room = bytesMax - passed;
      passed += piece.length;
      near.write(piece.subarray(0, Math.max(room, 0)));
      if (passed < bytesMax) return;
      cuts += 1;
      // The bytes go out first; a client loses what was on its way in any case.
      setTimeout(() => near.destroy(), 20);
      far.destroy();
    });
    for (const [one, other] of [[near, far], [far, near]] as const) {
      one.on("error", () => undefined);
      one.on("close", () => other.end());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts };
}

daemonTest("a stream that is cut again and again is read whole and once, whatever its bytes are", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  const proxy = await cuttingProxy(2_500);
  const cut = await Sandbox.connect(sandbox.id, { apiUrl: proxy.apiUrl });
  const pause = "[ $((i % 10)) = 0 ] && sleep 0.3";
  const lines = `for i in $(seq 60); do printf "line %s é🦀\\n" $i; echo e$i >&2; ${pause}; done`;
  const clean = await sandbox.exec(lines);
  let heard = "";
  const result = await cut.exec(lines, { onStdout: (chunk) => void (heard += chunk) });
  assert.ok(proxy.cuts() > 0, "nothing was cut");
  assert.equal(result.stdout, clean.stdout);
  assert.equal(heard, clean.stdout);
  assert.equal(result.stderr, clean.stderr);

  const bytes = `for i in $(seq 80); do printf 'a\\377\\376é\\342\\202|%s\\n' $i; ${pause}; done`;
  const wild = `${bytes}; printf 'end\\360\\237'; exit 5`;
  const wildClean = await sandbox.exec(wild);
  const narrow = await cuttingProxy(2_500);
  const cutToo = await Sandbox.connect(sandbox.id, { apiUrl: narrow.apiUrl });
  const wildCut = await cutToo.exec(wild, { onStdout: () => undefined });
  assert.ok(narrow.cuts() > 0, "nothing was cut");
  assert.equal(wildCut.stdout, wildClean.stdout);
  assert.equal(wildCut.exitCode, 5);
});

daemonTest("a process in the background takes input, signals and its end", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  const reader = await sandbox.execBackground("cat; echo done", { stdinOpen: true });
  await reader.sendStdin("one\n");
  await reader.sendStdin("two\n", { close: true });
  assert.equal((await reader.wait({ timeoutSeconds: 60 })).stdout, "one\ntwo\ndone\n");
  const sleeper = await sandbox.execBackground(["sleep", "600"]);
  await sleeper.signal("SIGTERM");
  assert.equal((await sleeper.wait()).exitCode, 143);
  const other = await sandbox.execBackground("sleep 600", { timeoutSeconds: 1 });
  await assert.rejects(other.wait(), SandboxTimeout);
  const last = await sandbox.execBackground("echo kept; sleep 600");
  for await (const { text } of last.attach()) if (text.includes("kept")) break;
  await last.kill();
  assert.equal((await last.wait({ timeoutSeconds: 60 })).exitCode, 137);
  await last.kill();
  assert.equal((await last.output()).stdout, "kept\n");
  assert.ok((await sandbox.processes()).every(({ status }) => status === "exited"));
  await assert.rejects(sandbox.process("exec-nobody").info(), NotFound);
});

daemonTest("children are tried, the best stays and the source too", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  const exploration = await sandbox.explore(["exit 1", "echo best > /workspace/x"], { ttlSeconds: 300 });
  assert.ok(exploration.winner !== undefined);
  await using winner = exploration.winner;
  assert.equal(await winner.files.readText("/workspace/x"), "best\n");
  assert.equal(exploration.best, exploration.attempts[1]);
  const tree = await sandbox.forkTree(1);
  assert.equal(tree.children[0]?.metadata["fork_tree_id"], tree.treeId);
  const ids = (await Sandbox.list()).map(({ id }) => id);
  await Promise.all(tree.children.map((child) => child.delete()));
  assert.ok(ids.includes(sandbox.id) && ids.includes(winner.id));
  assert.ok(tree.notRenewed.length > 0);
});

daemonTest("a terminal takes input, shows it and knows its size", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  await using pty = await sandbox.pty({ cols: 97, rows: 31, command: ["sh"] });
  await pty.write("stty size; echo se''en\n");
  let shown = "";
  for await (const text of pty) if ((shown += text).includes("seen")) break;
  assert.match(shown, /31 97/);
  await pty.resize({ cols: 50, rows: 20 });
  await pty.write("stty size\nexit 4\n");
  const result = await pty.wait({ timeoutSeconds: 60 });
  assert.equal(result.exitCode, 4);
  assert.match(result.stdout, /20 50/);
});

daemonTest("a local directory goes up and comes down, and an aborted create leaves nothing", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300, metadata: { walk: "local" } });
  const place = mkdtempSync(join(tmpdir(), "dayfly-daemon-"));
  try {
    const long = `${"long-".repeat(30)}name.txt`;
    mkdirSync(join(place, "up", "below"), { recursive: true });
    writeFileSync(join(place, "up", "below", long), "hello");
    symlinkSync("below", join(place, "up", "link"));
    await sandbox.files.upload(join(place, "up"), "/workspace/tree");
    assert.equal((await sandbox.exec(["cat", `/workspace/tree/link/${long}`])).stdout, "hello");
    await sandbox.files.download("/workspace/tree", join(place, "down"));
    assert.equal(readFileSync(join(place, "down", "below", long), "utf8"), "hello");
  } finally {
    rmSync(place, { recursive: true });
  }
  const client = new Client();
  const metadata = { aborted: String(Date.now()) };
  await assert.rejects(Sandbox.create({ client, ttlSeconds: 300, metadata, signal: AbortSignal.timeout(30) }));
  // Waits for what goes on in the background, which is the deletion.
  await client.close();
  assert.equal((await Sandbox.list({ metadata })).length, 0);
  const child = await sandbox.fork();
  assert.equal(child.metadata["walk"], "local");
  await child.delete();
});

daemonTest("code is heard, has its output past a limit, is aborted, and outlives its interpreter", async () => {
  await using sandbox = await Sandbox.create({ template: "code-interpreter", ttlSeconds: 300 });
  const heard: string[] = [];
  const loud = await sandbox.runCode("print('a')\n1 + 1", {
    onStdout: (text) => void heard.push(text),
    onResult: (result) => void heard.push(result.text ?? ""),
  });
  assert.deepEqual([heard.join(""), loud.text], ["a\n2", "2"]);
  const endless = "import time\nx = 7\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)";
  await assert.rejects(sandbox.runCode(endless, { timeoutSeconds: 3 }), (error: unknown) => {
    return error instanceof SandboxTimeout && error.stdout === "begun\n";
  });
  await assert.rejects(sandbox.runCode(endless, { signal: AbortSignal.timeout(3_000) }), { name: "TimeoutError" });
  assert.equal((await sandbox.runCode("x", { timeoutSeconds: 30 })).text, "7");
  await sandbox.runCode("import os; os._exit(1)");
  const revived = await sandbox.runCode("1 + 1");
  assert.deepEqual([revived.text, revived.stateLost], ["2", true]);
});

daemonTest("a volume outlives its sandbox", async () => {
  const name = `typescript-${Date.now()}`;
  const volume = await Volume.create(name, { sizeMb: 64 });
  try {
    {
      await using writer = await Sandbox.create({ ttlSeconds: 300, volumes: [volume.mount("/workspace/data")] });
      await writer.files.write("/workspace/data/kept", "yes");
    }
    assert.equal((await Volume.getOrCreate(name, { sizeMb: 32 })).sizeMb, 64);
    await volume.grow({ sizeMb: 128 });
    const mount = volume.mount("/mnt/data", { readOnly: true });
    await using reader = await Sandbox.create({ ttlSeconds: 300, volumes: [mount] });
    assert.equal(await reader.files.readText("/mnt/data/kept"), "yes");
    assert.ok((await Volume.list()).some((one) => one.name === name));
  } finally {
    await volume.delete();
  }
});

daemonTest("files are listed whole, in parts and as they change", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  const make = "mkdir -p many/deep && cd many && for i in $(seq 1200); do : > f$i; done && echo 0123456789 > deep/x";
  await sandbox.exec(make, { check: true });
  assert.equal((await sandbox.files.list("many")).length, 1201);
  const walked = [];
  for await (const { name } of sandbox.files.walk("many")) walked.push(name);
  assert.equal(walked.length, 1202);
  assert.ok(walked.includes("deep/x"));
  assert.equal(await sandbox.files.readText("many/deep/x", { offset: 2, length: 3 }), "234");
  await sandbox.files.chmod("many/deep/x", "0600");
  assert.match((await sandbox.files.stat("many/deep/x")).mode, /600$/);
  await using watch = sandbox.files.watch("many/deep");
  await watch.ready;
  await sandbox.exec("mv many/deep/x many/deep/y");
  for await (const change of watch) {
    assert.equal(change.kind, "moved");
    break;
  }
  const piece = new TextEncoder().encode("x".repeat(65_536));
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let index = 0; index < 16; index += 1) controller.enqueue(piece);
      controller.close();
    },
  });
  assert.equal((await sandbox.files.write("large", stream)).bytes, 1 << 20);
  assert.equal((await sandbox.files.read("large")).length, 1 << 20);
  assert.ok((await sandbox.files.changes("/workspace")).entries.some(({ path }) => path === "/workspace/large"));
});

daemonTest("a port is opened by a link", async () => {
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  const link = await sandbox.portLink(8000, { ttlSeconds: 60 });
  assert.ok(typeof link.token === "string" && link.url.includes(link.token));
  assert.deepEqual((await sandbox.portLinks(8000)).map(({ id }) => id), [link.id]);
  await sandbox.revokeLink(link);
  assert.deepEqual(await sandbox.portLinks(8000), []);
});

daemonTest("templates, snapshots and the network can be asked about", async () => {
  assert.ok((await templates()).some(({ name, state }) => name === "base" && state === "ready"));
  await using sandbox = await Sandbox.create({ ttlSeconds: 300 });
  const snapshot = await sandbox.snapshot({ name: "first" });
  try {
    assert.equal((await Snapshot.get(snapshot.id)).info.name, "first");
    assert.equal((await Snapshot.list({ sandboxId: sandbox.id })).length, 1);
  } finally {
    await snapshot.delete();
  }
  await sandbox.network.allow("example.com", { host: "*.example.org", ports: [22] });
  assert.deepEqual((await sandbox.network.get()).allow.sort(), ["*.example.org:22", "example.com"]);
  await sandbox.exec("getent hosts nowhere.example.net");
  const { records } = await sandbox.network.log({ waitSeconds: 10 });
  assert.ok(records.some(({ name, decision }) => name === "nowhere.example.net" && decision === "denied"));
  assert.deepEqual((await sandbox.network.suggest()).rules, []);
  assert.equal((await sandbox.network.deny()).mode, "deny");
});
