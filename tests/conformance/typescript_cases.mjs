// Cases about no single method: texts, limits, silences, refusals.

import { setTimeout as sleep } from "node:timers/promises";
import { Differs, Skip, begin, check, collect, equal, sdk, testCase, throws } from "./harness.mjs";

const { AuthError, BadRequestError, Client, NotFoundError, Sandbox, SandboxTimeout, ServerError } = sdk;

const AWKWARD = Buffer.concat([
  Buffer.from("é х \u0085 \u2028 end\r\n"), Buffer.from([0xff, 0xfe, 0x7c]), Buffer.from("😀"),
  Buffer.from([0x0b, 0x0c, 0x1c]),
]);

async function streamed(sandbox, command, options = {}) {
  let text = "";
  const code = await sandbox.execStream(command, { ...options, onStdout: (chunk) => { text += chunk; } });
  return [code, text];
}

// Texts.

// Separators of lines in other alphabets, carriage returns, bytes that are no UTF-8.
testCase("case: texts in a stream", async (world) => {
  const sandbox = await world.sandbox();
  await sandbox.filesystem.write("/workspace/awkward", AWKWARD);
  equal(await streamed(sandbox, "cat /workspace/awkward"), [0, AWKWARD.toString("utf8")], "awkward text");
});

testCase("case: a megabyte without a line end in a stream", async (world) => {
  const sandbox = await world.sandbox();
  const [code, text] = await streamed(sandbox, "head -c 1048576 /dev/zero | tr '\\0' x");
  check(code === 0 && text === "x".repeat(1048576), `code ${code}, ${text.length} characters`);
  const wide = "a" + "é".repeat(200_000);
  await sandbox.filesystem.write("/workspace/wide", wide);
  check((await streamed(sandbox, "cat /workspace/wide"))[1] === wide, "a character was cut in two");
});

testCase("case: a command of 200,000 characters", async (world) => {
  const result = await (await world.sandbox()).exec("wc -c <<'X'\n" + "y".repeat(200_000) + "\nX");
  equal([result.stdout.trim(), result.exitCode], ["200001", 0], "result");
});

testCase("case: names of files", async (world) => {
  const { filesystem } = await world.sandbox();
  for (const name of ["é ü", "a+b", "a%2Fb", "a&b=c?d#e"]) {
    await filesystem.write(`/workspace/names/${name}`, name);
    equal(await filesystem.read(`/workspace/names/${name}`), name, "content");
  }
  equal((await filesystem.list("/workspace/names")).length, 4, "entries");
});

testCase("case: walk past a link to the parent", async (world) => {
  const sandbox = await world.sandbox();
  await sandbox.exec("mkdir -p /workspace/loop/in && ln -s .. /workspace/loop/in/up");
  const seen = await collect(sandbox.filesystem.walk("/workspace/loop"));
  equal(seen.map((step) => step.dir), ["/workspace/loop", "/workspace/loop/in"], "directories");
});

// Limits.

testCase("case: a command past its limit", async (world) => {
  const sandbox = await world.sandbox();
  await throws(SandboxTimeout, () => sandbox.exec("sleep 60", { timeoutSeconds: 2 }), "exec");
  const slow = () => streamed(sandbox, "echo begun; sleep 60", { timeoutSeconds: 2 });
  await throws(SandboxTimeout, slow, "stream");
});

testCase("case: a cell past its limit", async (world) => {
  const context = await (await world.sandbox("code-interpreter")).createCodeContext();
  const endless = () => context.runCode("while True: pass", { timeoutSeconds: 2 });
  await throws(SandboxTimeout, endless, "cell");
  equal((await context.runCode("1 + 1")).text, "2", "the context after it");
  await context.close();
});

const STUBBORN = `
import time
while True:
    try: time.sleep(60)
    except KeyboardInterrupt: pass
`;

testCase("case: a cell past its limit that cannot be interrupted", async (world) => {
  const context = await (await world.sandbox("code-interpreter")).createCodeContext();
  await throws(SandboxTimeout, () => context.runCode(STUBBORN, { timeoutSeconds: 2 }), "cell");
  await context.close();
});

testCase("case: the word timeout in a command", async (world) => {
  const sandbox = await world.sandbox();
  equal((await sandbox.exec("timeout 1 sleep 20")).exitCode, 124, "ended by a program of that name");
  equal((await sandbox.exec("timeout-nowhere 5")).exitCode, 127, "no such program");
  await sandbox.pause();
  await throws(BadRequestError, () => sandbox.exec("timeout 5 ls"), "in a paused sandbox");
  await sandbox.resume();
});

testCase("case: a stream silent for 35 s", async (world) => {
  equal(await streamed(await world.sandbox(), "echo a; sleep 35; echo b"), [0, "a\nb\n"], "stream");
}, { slow: true });

testCase("case: followed logs silent for 35 s", async (world) => {
  const sandbox = await world.create();
  const { ended } = await begin(sandbox, "sleep 35; echo late");
  check((await collect(sandbox.logs({ follow: true }))).includes("late"), "the line did not come");
  await ended;
  await sandbox.kill();
}, { slow: true });

testCase("case: the sandbox goes in mid-stream", async (world) => {
  const sandbox = await world.create();
  const gone = sleep(2500).then(() => sandbox.kill());
  await throws(ServerError, () => streamed(sandbox, "echo begun; sleep 60"), "stream");
  await gone;
});

// Refusals.

testCase("case: a wrong key", async () => {
  const error = await throws(AuthError, () => new Client({ apiKey: "wrong" }).me(), "me");
  equal(error.statusCode, 401, "status");
});

testCase("case: an id that is not there", async (world) => {
  const sandbox = await world.create();
  await sandbox.kill();
  await throws(NotFoundError, () => sandbox.exec("true"), "exec");
  await throws(NotFoundError, () => streamed(sandbox, "true"), "stream");
  await throws(NotFoundError, () => sandbox.fork(), "fork");
  await throws(NotFoundError, () => sandbox.filesystem.read("/etc/passwd"), "read");
  await throws(NotFoundError, () => world.client.snapshots.get("snap-nowhere"), "snapshot");
  await throws(NotFoundError, () => world.client.volumes.get("nowhere"), "volume");
});

testCase("case: addresses of the API with and without /v1", async (world) => {
  for (const ending of ["", "/", "/v1", "/v1/"]) {
    const client = new Client({ apiUrl: world.apiUrl.replace(/\/$/, "") + ending });
    equal(await client.me(), await world.client.me(), `with ${ending}`);
  }
});

testCase("case: POST without a body under three content types", async (world) => {
  const { id } = await world.sandbox();
  for (const type of [undefined, "text/plain;charset=UTF-8", "application/json"]) {
    const headers = { authorization: `Bearer ${world.apiKey}`, ...(type && { "content-type": type }) };
    for (const action of ["pause", "resume", "wake"]) {
      const answer = await fetch(new URL(`/v1/sandboxes/${id}/${action}`, world.apiUrl), { method: "POST", headers });
      equal(answer.status, 204, `${action}, ${type}`);
    }
  }
});

testCase("case: apps, databases, functions and schedules are refused", async (world) => {
  const { apps, databases, functions, schedules } = world.client;
  for (const service of [apps, databases, functions, schedules]) {
    const error = await throws(NotFoundError, () => service.list(), service.constructor.name);
    check(error.message.length > 8, "no text");
  }
});

// What differs on purpose.

testCase("case: what a new sandbox reaches", async (world) => {
  const sandbox = await world.sandbox();
  equal(sandbox.info.network_mode, "deny", "network_mode");
  const { stdout } = await sandbox.exec("curl -s -m 10 -w '%{http_code}' http://1.1.1.1/");
  check(stdout.includes("egress_denied") && stdout.endsWith("403"), `not denied: ${stdout}`);
  check((await sandbox.exec("curl -s -m 10 https://example.com/")).exitCode !== 0, "a host was reached");
  throw new Differs(
    "egress is closed by default; the clients have no argument for it, the project's default or a PUT opens it");
});

testCase("case: a lifecycle without an idle time", async (world) => {
  equal((await (await world.sandbox()).lifecycle()).idle_seconds, null, "idle_seconds");
  throw new Differs("`idle_seconds` is null when there is none");
});

testCase("case: followed logs of a sandbox where nothing runs", async (world) => {
  const sandbox = await world.create();
  await sandbox.exec("echo before");
  equal(await collect(sandbox.logs({ follow: true })), ["before"], "lines");
  await sandbox.kill();
  throw new Differs("following ends when the last command that ran at its beginning has ended");
});

// Lives.

testCase("case: ports without a listener", async (world) => {
  const sandbox = await world.create();
  equal(await sandbox.previewUrls(), {}, "previewUrls");
  await sandbox.kill();
});

testCase("case: explore in a child of a fork", async (world) => {
  await world.drop("code-interpreter");
  const source = await world.sandbox();
  const [first, sibling] = await source.forkTree({ count: 2 });
  [first, sibling].forEach((child) => world.keep(child));
  const result = await first.explore(["exit 1", "exit 2", "echo ok"], { ttlSeconds: 120 });
  world.keep(result.winner);
  equal([result.errors, result.reaped.length], [[], 2], "errors and losers");
  const alive = await world.ids();
  const kept = [source, first, sibling, result.winner];
  check(kept.every((sandbox) => alive.has(sandbox.id)), "one too many was deleted");
  check(!result.reaped.some((id) => alive.has(id)), "a loser lives");
  check((await result.winner.lifecycle()).ttl_seconds > 120, "the winner keeps the branches' TTL");
  for (const sandbox of [result.winner, first, sibling]) await sandbox.kill();
});

// A full server.

// Takes the disk that the node may promise until nothing more fits; gives the fillers.
async function fill(world) {
  const node = await world.client.request("GET", "/node").catch(() => {
    throw new Skip("the key may not read the node's capacity");
  });
  const free = node.disk_available_mb - node.disk_committed_mb - node.disk_reserve_mb;
  const common = { template: "base", ttl_seconds: 120, metadata: { conformance: world.run } };
  // Others may free disk meanwhile, so small ones follow the large one until one is refused.
  const sizes = [{ disk_gb: Math.max(2, Math.floor(free / 1024) - 1) }, {}, {}, {}, {}];
  const fillers = [];
  for (const size of sizes) {
    const made = await world.client.request("POST", "/sandboxes", { json: { ...common, ...size } }).catch((error) => {
      if (error.statusCode === 503 && !size.disk_gb) return null;
      throw error;
    });
    if (!made) return fillers;
    fillers.push(world.keep(Sandbox.fromInfo(made, world.client)));
  }
  throw new Error("the server cannot be filled");
}

testCase("case: a full server refuses and leaves nothing over", async (world) => {
  const sandbox = await world.sandbox();
  const fillers = await fill(world);
  const before = (await world.ours()).length;
  const calls = {
    create: () => world.create(),
    fork: () => sandbox.fork(),
    forkTree: () => sandbox.forkTree({ count: 2 }),
  };
  try {
    for (const [name, call] of Object.entries(calls)) {
      const error = await throws(ServerError, call, name);
      equal(error.statusCode, 503, `${name}: status`);
      check(error.message.length > 8, `${name}: no text`);
    }
    equal((await world.ours()).length, before, "sandboxes");
  } finally {
    for (const filler of fillers) await filler.kill();
  }
});
