// What a sandbox, its processes and its lists offer, as the table of names has it.

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { AnswerTimeout, Forbidden, ForkFailed, NotFound, type OutputChunk, Sandbox } from "dayfly";
import { type Arrived, event, FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const PROCESS = {
  ...{ exec_id: "ex-1", title: "sleep 9", user: "agent", pid: 7, started_at: "", state: "running", duration_ms: 1 },
  ...{ terminal: false, takes_stdin: true, stdin_bytes: 0, stdout: { start: 0, end: 0 }, stderr: { start: 0, end: 0 } },
};
const EXIT = event("exit", { exit_code: 3, reason: "exited", duration_ms: 5 });
type Answer = (request: Arrived, response: ServerResponse) => unknown;

async function sandboxOf(answer: Answer): Promise<[Sandbox, FakeServer]> {
  const server = await FakeServer.start((request, response) => {
    if (request.method === "GET" && request.path === "/v1/sandboxes/sb-1") sendJson(response, 200, { ...SANDBOX, status: "paused" });
    else answer(request, response);
  });
  const sandbox = await Sandbox.create({ ...server.options }).catch(() => Sandbox.connect("sb-1", server.options));
  return [sandbox, server];
}

function stream(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(text);
}

test("status is what was known last, and refresh asks", async () => {
  const [sandbox, server] = await sandboxOf((_, response) => sendJson(response, 201, SANDBOX));
  assert.equal(sandbox.status, "running");
  assert.equal(server.arrived.length, 1);
  assert.equal((await sandbox.refresh()).status, "paused");
  assert.equal(sandbox.portUrl(8000, "/a"), `${server.options.apiUrl}/v1/sandboxes/sb-1/ports/8000/http/a`);
});

test("a detached sandbox is left alone at the end", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    return request.method === "DELETE" ? sendNothing(response) : sendJson(response, 201, SANDBOX);
  });
  {
    await using kept = sandbox.detach();
    assert.equal(kept, sandbox);
  }
  assert.equal(server.arrived.filter(({ method }) => method === "DELETE").length, 0);
});

function forked(count: number, failures: Record<string, string>): object {
  const children = Array.from({ length: count }, (_, index) => ({ ...SANDBOX, id: `sb-${index + 2}` }));
  return { children, failures, renewed: [], not_renewed: [], capture: {} };
}

test("a fork is all of its children or an error, unless a part will do", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.method === "DELETE") return sendNothing(response);
    return sendJson(response, 201, forked(2, { "sb-9": "the host has no room" }));
  });
  await assert.rejects(sandbox.forkMany(3, { ttlSeconds: 60 }), (error: unknown) => {
    assert.ok(error instanceof ForkFailed);
    assert.deepEqual(error.children, ["sb-2", "sb-3"]);
    assert.deepEqual(error.failures, { "sb-9": "the host has no room" });
    assert.match(error.message, /1 of 3 children could not be made: the host has no room/);
    return true;
  });
  const gone = server.arrived.filter(({ method }) => method === "DELETE").map(({ path }) => path);
  assert.deepEqual(gone.sort(), ["/v1/sandboxes/sb-2", "/v1/sandboxes/sb-3"]);
  assert.deepEqual(server.at("POST", "/v1/sandboxes/sb-1/fork")[0]?.json, { ttl_seconds: 60, count: 3 });
  const children = await sandbox.forkMany(3, { partial: true });
  assert.equal(children.length, 2);
  assert.deepEqual(children.failures, { "sb-9": "the host has no room" });
  assert.equal((await sandbox.forkTree(3, { partial: true })).children.length, 2);
  await assert.rejects(sandbox.forkTree(3), ForkFailed);
});

test("await using deletes the children of a fork that are still held", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/sb-2")) return refuse(response, 403, "forbidden");
    if (request.method === "DELETE") return sendNothing(response);
    return sendJson(response, 201, forked(3, {}));
  });
  const deleted = (): string[] => server.arrived.filter(({ method }) => method === "DELETE").map(({ path }) => path).sort();
  await assert.rejects(async () => {
    await using children = await sandbox.forkMany(3);
    children[1]?.detach();
    assert.equal(children.filter(({ id }) => id !== "sb-2").constructor, Array);
    assert.deepEqual(deleted(), []);
  }, Forbidden);
  // One that cannot be deleted is said, after the others are gone.
  assert.deepEqual(deleted(), ["/v1/sandboxes/sb-2", "/v1/sandboxes/sb-4"]);
  await (await sandbox.forkTree(3)).children.slice(1)[0]?.close();
  assert.equal(deleted().length, 3);
});

test("what children have of their source is left to the server", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/fork")) return sendJson(response, 201, forked(1, {}));
    return sendJson(response, 201, { ...SANDBOX, ttl_seconds: 120, metadata: { task: "42" } });
  });
  await sandbox.fork();
  await sandbox.fork({ ttlSeconds: undefined, metadata: { a: "b" } });
  await sandbox.fork({ persistent: true });
  assert.deepEqual(server.at("POST", "/v1/sandboxes/sb-1/fork").map(({ json }) => json), [
    { count: 1 },
    { metadata: { a: "b" }, count: 1 },
    { persistent: true, count: 1 },
  ]);
});

test("promote deletes the siblings unless they are to be kept", async () => {
  const promoted = { winner: "sb-1", tree_id: "t", deleted: [], failures: {} };
  const [sandbox, server] = await sandboxOf((_, response) => sendJson(response, 200, { ...SANDBOX, ...promoted }));
  await sandbox.promote();
  await sandbox.promote({ keepSiblings: true });
  const sent = server.at("POST", "/v1/sandboxes/sb-1/promote").map(({ json }) => json["cleanup_siblings"]);
  assert.deepEqual(sent, [true, false]);
  await assert.rejects(sandbox.promote({ cleanupSiblings: true } as object), /no option cleanupSiblings/);
});

test("a search takes functions, keeps to its limit at once and stops when it has enough", async () => {
  let count = 0;
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/fork-tree")) return sendJson(response, 201, forked(5, {}));
    if (request.path.endsWith("/promote")) return sendJson(response, 200, { winner: "", tree_id: "", deleted: [], failures: {} });
    const result = { stdout: "", stderr: "", exit_code: 0, reason: "exited", duration_ms: 1, truncated: false };
    return sendJson(response, 201, { ...SANDBOX, ...result, exec_id: request.json["exec_id"] });
  });
  let [running, most] = [0, 0];
  const candidate = (value: number) => async (child: Sandbox): Promise<number> => {
    most = Math.max(most, (running += 1));
    await child.exec("true");
    running -= 1;
    count += 1;
    return value;
  };
  const found = await sandbox.explore([1, 5, 3].map(candidate).concat([candidate(2), candidate(9)]), { maxParallel: 2 });
  assert.deepEqual(found.attempts.map(({ score }) => score), [1, 5, 3, 2, 9]);
  assert.equal(found.winner?.id, "sb-6");
  assert.equal(most, 2);
  count = 0;
  const never = (): Promise<number> => new Promise(() => undefined);
  const stopped = await sandbox.explore([never, candidate(5), candidate(7)], { maxParallel: 2, stopAt: 5 });
  assert.equal(stopped.best?.score, 5);
  assert.deepEqual(stopped.attempts.map(({ isSkipped }) => isSkipped), [true, false, true]);
  assert.equal(count, 1);
  assert.equal(server.at("POST", "/v1/sandboxes/sb-3/promote")[0]?.json["cleanup_siblings"], true);
  await assert.rejects(sandbox.explore(["true"], { atOnce: 3 } as object), /no option atOnce/);
  await assert.rejects(sandbox.explore(["true"], { maxParallel: 0 }), RangeError);
});

test("processes are handles, and a killed one keeps its output", async () => {
  let isOver = false;
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/processes")) return sendJson(response, 200, { items: [PROCESS] });
    if (request.path.endsWith("/signal")) {
      if (isOver) return refuse(response, 404, "not_found");
      isOver = true;
      return sendNothing(response);
    }
    if (request.path.endsWith("/output")) return void response.end(request.query.get("offset") === "0" ? "kept" : "");
    if (request.path.endsWith("/ex-2")) return refuse(response, 404, "not_found");
    if (request.path.endsWith("/ex-1")) return sendJson(response, 200, { ...PROCESS, state: isOver ? "exited" : "running" });
    return sendJson(response, 201, SANDBOX);
  });
  const [process] = await sandbox.processes();
  assert.ok(process !== undefined);
  assert.deepEqual([process.execId, process.pid, process.title, process.status], ["ex-1", 7, "sleep 9", "running"]);
  await process.kill();
  await process.kill();
  assert.equal(process.status, "exited");
  assert.equal((await process.output()).stdout, "kept");
  assert.deepEqual(server.at("POST", "/v1/sandboxes/sb-1/processes/ex-1/signal")[0]?.json, { signal: 9 });
  assert.equal(server.arrived.filter(({ method }) => method === "DELETE").length, 0);
  await assert.rejects(sandbox.process("ex-2").kill(), NotFound);
});

test("output is iterated piece by piece, from an offset on, and left at any time", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (!request.path.endsWith("/attach")) return sendJson(response, 201, SANDBOX);
    const text = event("stdout", { chunk: "a" }) + event("stderr", { chunk: "b" }) + event("stdout", { chunk: "c" });
    return stream(response, text + EXIT);
  });
  const process = sandbox.process("ex-1");
  const attachment = process.attach({ stdoutOffset: 10, stderrOffset: 2 });
  const chunks: OutputChunk[] = [];
  for await (const chunk of attachment) chunks.push(chunk);
  assert.deepEqual(chunks.map(({ stream: name, text }) => `${name} ${text}`), ["stdout a", "stderr b", "stdout c"]);
  assert.equal((await attachment).exitCode, 3);
  const [attach, ...others] = server.arrived.filter(({ path }) => path.endsWith("/attach"));
  assert.equal(others.length, 0);
  assert.deepEqual([attach?.query.get("stdout_offset"), attach?.query.get("stderr_offset")], ["10", "2"]);
  for await (const { text } of process.attach()) {
    assert.equal(text, "a");
    break;
  }
  const heard: string[] = [];
  const result = await process.attach({ onStdout: (text) => void heard.push(text) });
  assert.deepEqual([heard, result.stdout], [["a", "c"], "ac"]);
  await assert.rejects(async () => {
    for await (const chunk of process.attach({ onStdout: () => undefined })) assert.fail(chunk.text);
  }, TypeError);
});

test("an error of a followed command reaches the loop", async () => {
  const [sandbox] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/attach")) return refuse(response, 404, "not_found");
    return sendJson(response, 201, SANDBOX);
  });
  await assert.rejects(async () => {
    for await (const { text } of sandbox.process("ex-1").attach()) assert.fail(text);
  }, NotFound);
});

test("lists come page by page, and no further than somebody reads", async () => {
  const pages = [["sb-1", "sb-2"], ["sb-3"]];
  const [, server] = await sandboxOf((request, response) => {
    const index = Number(request.query.get("cursor") ?? 0);
    const items = (pages[index] ?? []).map((id) => ({ ...SANDBOX, id }));
    return sendJson(response, 200, { ...SANDBOX, items, ...(index === 0 ? { next_cursor: "1" } : {}) });
  });
  const lists = (): number => server.at("GET", "/v1/sandboxes").length;
  for await (const { id } of Sandbox.list(server.options)) if (id === "sb-2") break;
  assert.equal(lists(), 1);
  const ids: string[] = [];
  for await (const { id } of Sandbox.list(server.options)) ids.push(id);
  assert.deepEqual(ids, ["sb-1", "sb-2", "sb-3"]);
  assert.equal((await Sandbox.list(server.options)).length, 3);
  Sandbox.list(server.options);
  assert.equal(lists(), 5);
});

test("a port is waited for, and not for ever", async () => {
  const waits: unknown[] = [];
  const [sandbox] = await sandboxOf((request, response) => {
    if (!request.path.endsWith("/wait")) return sendJson(response, 201, SANDBOX);
    waits.push(request.json);
    if (request.path.endsWith("/8000/wait")) return sendJson(response, 200, { port: 8000, address: "0.0.0.0" });
    if (request.path.endsWith("/8001/wait")) return refuse(response, 504, "timeout", { hint: "h", hint_code: "port_timeout" });
  });
  assert.equal((await sandbox.waitForPort(8000)).port, 8000);
  assert.equal(waits.length, 1);
  await assert.rejects(sandbox.waitForPort(8001, { timeoutSeconds: 0 }), (error: unknown) => {
    assert.ok(error instanceof AnswerTimeout);
    assert.match(error.hint ?? "", /sandbox\.ports\(\)/);
    return error.message === "nothing listens on port 8001 after 0 s";
  });
  assert.deepEqual(waits[1], { timeout_ms: 0 });
  await assert.rejects(sandbox.waitForPort(8002, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
});

test("an option that nobody knows is refused, with the one that was meant", async () => {
  const [sandbox, server] = await sandboxOf((_, response) => sendJson(response, 201, SANDBOX));
  const before = server.arrived.length;
  const cases: [Promise<unknown>, RegExp][] = [
    [sandbox.exec("sleep 5", { timeout: 1 } as object), /Sandbox\.exec has no option timeout; did you mean timeoutSeconds\?/],
    [sandbox.exec("x", { max_ouput_bytes: 1 } as object), /did you mean maxOutputBytes/],
    [sandbox.execBackground("x", { onStdout: () => undefined } as object), /Sandbox\.execBackground has no option onStdout/],
    [sandbox.fork({ ttl: 3 } as object), /Sandbox\.fork has no option ttl; did you mean ttlSeconds/],
    [sandbox.fork({ partial: true } as object), /Sandbox\.fork has no option partial/],
    [sandbox.forkTree(2, { allOrNothing: true } as object), /no option allOrNothing/],
  ];
  for (const [call, said] of cases) {
    await assert.rejects(call, (error: unknown) => error instanceof TypeError && said.test(error.message));
  }
  assert.equal(server.arrived.length, before);
});
