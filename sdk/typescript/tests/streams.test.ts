import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { CommandFailed, ExecInterrupted, GuestUnavailable, NotFound, Sandbox, SandboxTimeout } from "dayfly";
import { type Arrived, event, FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const EXIT = event("exit", { exit_code: 0, reason: "exited", duration_ms: 5 });

function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

/** Writes, and cuts the connection only when that has gone out. */
function writeAndCut(response: ServerResponse, text: string): void {
  begin(response);
  response.write(text, () => setTimeout(() => response.destroy(), 20));
}

/** A server whose sandbox exists; `answer` has the rest. */
async function sandboxOf(
  answer: (request: Arrived, response: ServerResponse) => void,
  state: { status: string } = { status: "running" },
): Promise<[Sandbox, FakeServer]> {
  const server = await FakeServer.start((request, response) => {
    const isAboutSandbox = request.method === "GET" && request.path === "/v1/sandboxes/sb-1";
    if (isAboutSandbox) sendJson(response, 200, { ...SANDBOX, ...state });
    else answer(request, response);
  });
  return [await Sandbox.connect("sb-1", server.options), server];
}

test("a stream that is cut goes on where it was", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/exec/stream")) {
      const id = request.json["exec_id"];
      const half = event("started", { exec_id: id }) + event("stdout", { chunk: "é1" });
      writeAndCut(response, `${half}${event("stderr", { chunk: "e" })}event: stdout\ndata: {"chu`);
    } else {
      begin(response);
      response.end(`${event("started", {})}: alive\n\n${event("stdout", { chunk: "2" })}${EXIT}`);
    }
  });
  const heard: string[] = [];
  const result = await sandbox.exec("work", { onStdout: (chunk) => void heard.push(chunk) });
  assert.equal(result.stdout, "é12");
  assert.equal(result.stderr, "e");
  assert.equal(result.exitCode, 0);
  assert.deepEqual(heard, ["é1", "2"]);
  const [start] = server.at("POST", "/v1/sandboxes/sb-1/exec/stream");
  assert.equal(result.execId, start?.json["exec_id"]);
  const [attach] = server.at("GET", `/v1/sandboxes/sb-1/processes/${result.execId}/attach`);
  assert.equal(attach?.query.get("stdout_offset"), "3");
  assert.equal(attach?.query.get("stderr_offset"), "1");
});

test("a stream that is cut before it begins is asked for again with the same id", async () => {
  let tries = 0;
  const [sandbox, server] = await sandboxOf((_, response) => {
    tries += 1;
    if (tries === 1) {
      response.destroy();
    } else {
      begin(response);
      response.end(event("stdout", { chunk: "x" }) + EXIT);
    }
  });
  const result = await sandbox.exec("work", { onStdout: () => undefined });
  assert.equal(result.stdout, "x");
  const ids = server.at("POST", "/v1/sandboxes/sb-1/exec/stream").map(({ json }) => json["exec_id"]);
  assert.equal(ids.length, 2);
  assert.match(String(ids[0]), /^exec-[0-9a-f]{32}$/);
  assert.equal(ids[0], ids[1]);
  assert.notEqual((await sandbox.exec("work", { onStdout: () => undefined })).execId, ids[0]);
});

test("an end without an exit is never a success", async () => {
  const [sandbox] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/attach")) return refuse(response, 404, "not_found");
    begin(response);
    return void response.end(event("started", {}) + event("stdout", { chunk: "half" }));
  });
  await assert.rejects(sandbox.exec("work", { onStdout: () => undefined }), (error: unknown) => {
    assert.ok(error instanceof ExecInterrupted);
    assert.equal(error.stdout, "half");
    assert.ok(error.cause instanceof NotFound);
    return true;
  });
});

test("a server that does not come back is given up on", { timeout: 30_000 }, async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/attach")) writeAndCut(response, event("started", {}));
    else writeAndCut(response, event("started", {}) + event("stderr", { chunk: "half" }));
  });
  const start = Date.now();
  await assert.rejects(sandbox.exec("work", { onStderr: () => undefined }), (error: unknown) => {
    return error instanceof ExecInterrupted && error.stderr === "half";
  });
  assert.ok(Date.now() - start < 15_000);
  assert.ok(server.arrived.length > 3);
});

test("a sandbox that was put to sleep is not woken to follow a command", async () => {
  const state = { status: "running" };
  const [sandbox, server] = await sandboxOf((_, response) => {
    state.status = "hibernated";
    writeAndCut(response, event("started", {}));
  }, state);
  await assert.rejects(sandbox.exec("work", { onStdout: () => undefined }), ExecInterrupted);
  assert.equal(server.arrived.filter(({ path }) => path.endsWith("/attach")).length, 0);
});

test("a gap is told, and what comes behind it is at its own place", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    const gap = event("gap", { stream: "stdout", offset: 1, bytes: 99 });
    if (!request.path.endsWith("/attach")) writeAndCut(response, event("stdout", { chunk: "a" }) + gap);
    else {
      begin(response);
      response.end(event("stdout", { chunk: "b" }) + EXIT);
    }
  });
  const result = await sandbox.exec("work", { onStdout: () => undefined });
  assert.equal(result.stdout, "ab");
  assert.equal(result.truncated, true);
  assert.equal(server.arrived.at(-1)?.query.get("stdout_offset"), "100");
});

test("what the server says it lost is attached to again, what it ended is an error", async () => {
  let streams = 0;
  const [sandbox] = await sandboxOf((request, response) => {
    begin(response);
    if (request.path.endsWith("/attach")) return void response.end(event("stdout", { chunk: "b" }) + EXIT);
    streams += 1;
    const code = streams === 1 ? "guest_unavailable" : "timeout";
    const last = `event: lost\ndata: {}\n\ndata: ${JSON.stringify({ error: "gone", code })}\nevent: error\n\n`;
    return void response.end(event("stdout", { chunk: "a" }) + last);
  });
  const listeners = { onStdout: () => undefined };
  assert.equal((await sandbox.exec("work", listeners)).stdout, "ab");
  await assert.rejects(sandbox.exec("work", listeners), (error: unknown) => {
    return error instanceof SandboxTimeout && error.stdout === "a" && error.code === "timeout";
  });
});

test("a listener's own error is not taken for a lost connection", async () => {
  const [sandbox, server] = await sandboxOf((_, response) => {
    begin(response);
    response.end(event("stdout", { chunk: "a" }) + EXIT);
  });
  const mistake = new Error("mine");
  await assert.rejects(sandbox.exec("x", { onStdout: () => Promise.reject(mistake) }), mistake);
  assert.equal(server.arrived.filter(({ path }) => path.endsWith("/attach")).length, 0);
});

test("a plain command is repeated with the same id, and a status is a result", async () => {
  let tries = 0;
  const answer = { stdout: "", stderr: "no\n", exit_code: 3, duration_ms: 1, reason: "exited", truncated: false };
  const [sandbox, server] = await sandboxOf((request, response) => {
    tries += 1;
    if (tries === 1) response.destroy();
    else sendJson(response, 200, { ...answer, exec_id: request.json["exec_id"] });
  });
  const result = await sandbox.exec(["false", "a b"], { env: { SOME_name: "v" }, timeoutSeconds: 2 });
  assert.equal(result.exitCode, 3);
  assert.equal(result.ok, false);
  const [first, second] = server.at("POST", "/v1/sandboxes/sb-1/exec");
  assert.match(String(first?.json["exec_id"]), /^exec-[0-9a-f]{32}$/);
  assert.deepEqual(first?.json, second?.json);
  assert.deepEqual(first?.json["cmd"], ["false", "a b"]);
  assert.deepEqual(first?.json["env"], { SOME_name: "v" });
  assert.equal(first?.json["timeout_seconds"], 2);
  await assert.rejects(sandbox.exec("false", { check: true }), (error: unknown) => {
    return error instanceof CommandFailed && error.exitCode === 3 && error.result.stderr === "no\n";
  });
});

test("a plain command whose answer never comes is of unknown outcome", async () => {
  const [sandbox] = await sandboxOf((_, response) => void response.destroy());
  await assert.rejects(sandbox.exec("work"), ExecInterrupted);
  const [other] = await sandboxOf((_, response) => refuse(response, 502, "guest_unavailable"));
  await assert.rejects(other.exec("work"), GuestUnavailable);
});

test("a command that the caller gives up on is ended", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.method === "DELETE") return sendNothing(response);
    begin(response);
    return void response.write(event("started", {}));
  });
  for (const options of [{}, { onStdout: () => undefined }]) {
    const controller = new AbortController();
    const reason = new Error("enough");
    setTimeout(() => controller.abort(reason), 50);
    await assert.rejects(sandbox.exec("work", { ...options, signal: controller.signal }), reason);
  }
  assert.equal(server.arrived.filter(({ method }) => method === "DELETE").length, 2);
});

test("a watch tells changes and does not hide that it was cut off", async () => {
  const [sandbox] = await sandboxOf((request, response) => {
    const change = { kind: "moved", path: "/w/b", is_dir: false, from: "/w/a" };
    const text = event("ready", {}) + event("change", change) + event("overflow", {});
    if (request.query.get("path") === "/cut") return writeAndCut(response, text);
    begin(response);
    return void response.end(text + event("end", {}));
  });
  const changes = [];
  for await (const change of sandbox.files.watch("/w")) changes.push(change);
  assert.deepEqual(changes, [{ kind: "moved", path: "/w/b", isDir: false, movedFrom: "/w/a" }, { kind: "overflow" }]);
  const cut = sandbox.files.watch("/cut");
  await assert.rejects(async () => {
    for await (const change of cut) assert.ok(change.kind);
  }, /lost/);
});

test("a command whose sandbox is gone does not send its caller to look for it", async () => {
  let isGone = false;
  const server = await FakeServer.start((request, response) => {
    if (isGone) return refuse(response, 404, "not_found");
    if (request.method === "GET") return sendJson(response, 200, SANDBOX);
    isGone = true;
    if (request.path.endsWith("/exec")) {
      return refuse(response, 502, "guest_unavailable", { hint: "its output is kept: GET processes/ex-1/output" });
    }
    begin(response);
    return void response.end(event("started", {}));
  });
  for (const options of [{}, { onStdout: () => undefined }]) {
    isGone = false;
    const sandbox = await Sandbox.connect("sb-1", server.options);
    await assert.rejects(sandbox.exec("sleep 30", options), (error: unknown) => {
      assert.match((error as { hint?: string }).hint ?? "", /the sandbox is gone/);
      return true;
    });
  }
});

test("of a long output that is listened to the head and the tail are kept", async () => {
  const [sandbox] = await sandboxOf((_, response) => {
    begin(response);
    for (let index = 0; index < 200; index += 1) response.write(event("stdout", { chunk: `line é ${index}\n` }));
    response.end(EXIT);
  });
  let heard = 0;
  const result = await sandbox.exec("seq", { maxOutputBytes: 300, onStdout: () => void (heard += 1) });
  assert.equal(heard, 200);
  assert.match(result.stdout, /^line é 0\n[^]*\[\.\.\. \d+ bytes left out, from offset \d+ \.\.\.\]\n[^]*line é 199\n$/);
  assert.ok(!result.stdout.includes("\uFFFD"));
  assert.ok(Buffer.byteLength(result.stdout) < 400);
  const [omitted] = result.omitted;
  assert.equal(result.truncated, true);
  assert.deepEqual([omitted?.stream, omitted?.readable], ["stdout", true]);
  await assert.rejects(sandbox.exec("x", { reportChanges: true, onStdout: () => undefined }), /together/);
});
