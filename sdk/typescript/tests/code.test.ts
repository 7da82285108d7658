// Code: as it comes, with a limit, by the name of its context, and as a text for a model.

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { type Result, Sandbox, SandboxTimeout } from "dayfly";
import { type Arrived, event, FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const RUN = "/v1/sandboxes/sb-1/repl/sessions/default/run";
const ANSWER = { results: [], stdout: "", stderr: "", exit: 0, exit_code: 0, status: "ok", duration_ms: 1, truncated: false };
const END = event("end", { status: "ok", execution_count: 3, duration_ms: 5 });

async function sandboxOf(answer: (request: Arrived, response: ServerResponse) => void): Promise<[Sandbox, FakeServer]> {
  const server = await FakeServer.start((request, response) => {
    if (request.method === "GET" && request.path === "/v1/sandboxes/sb-1") sendJson(response, 200, SANDBOX);
    else answer(request, response);
  });
  return [await Sandbox.connect("sb-1", server.options), server];
}

function stream(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(text);
}

test("code is heard while it runs: output, what it displays, and its error", async () => {
  const [sandbox, server] = await sandboxOf((_, response) => {
    const said = event("started", {}) + event("stdout", { chunk: "a\n" }) + event("stderr", { chunk: "b" });
    const shown = event("result", { data: { "text/plain": "42" } });
    const failed = event("failure", { error: "ValueError: c", traceback: ["line 1", "line 2"] });
    stream(response, said + shown + failed + event("end", { status: "error", execution_count: 3, duration_ms: 5 }));
  });
  const heard: string[] = [];
  const execution = await sandbox.runCode("x", {
    timeoutSeconds: 2,
    onStdout: (text) => void heard.push(`out ${text}`),
    onStderr: (text) => void heard.push(`err ${text}`),
    onResult: (result: Result) => void heard.push(`result ${result.text}`),
  });
  assert.deepEqual(heard, ["out a\n", "err b", "result 42"]);
  assert.deepEqual([execution.text, execution.status, execution.exitCode, execution.executionCount], ["42", "error", 1, 3]);
  assert.equal(execution.stderr, "b\nline 1\nline 2\n");
  assert.deepEqual(execution.error, { name: "ValueError", value: "c", traceback: "line 1\nline 2" });
  const [run] = server.at("POST", `${RUN}/stream`);
  assert.equal(run?.json["timeout_ms"], 2000);
  assert.match(String(run?.json["run_id"]), /^run-/);
  await assert.rejects(sandbox.runCode("x", { onStdout: () => undefined, reportChanges: true }), /together/);
  await assert.rejects(sandbox.runCode("x", { timeout: 1 } as object), /no option timeout; did you mean timeoutSeconds/);
});

test("a stream of code that is cut off gives its result by its name, without a second run", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path === RUN) return sendJson(response, 200, { ...ANSWER, stdout: "ab" });
    return stream(response, event("stdout", { chunk: "a" }));
  });
  assert.equal((await sandbox.runCode("x", { onStdout: () => undefined })).stdout, "ab");
  const [first, second, ...others] = server.arrived.filter(({ path }) => path.startsWith(RUN));
  assert.equal(others.length, 0);
  assert.equal(first?.json["run_id"], second?.json["run_id"]);
});

test("code past its limit has what it said until then, heard or not", async () => {
  const [sandbox] = await sandboxOf((request, response) => {
    if (request.path === RUN) return refuse(response, 504, "timeout");
    return stream(response, event("stdout", { chunk: "half" }) + event("end", { status: "timed_out", duration_ms: 9 }));
  });
  for (const options of [{ timeoutSeconds: 1 }, { timeoutSeconds: 1, onStdout: () => undefined }]) {
    await assert.rejects(sandbox.runCode("x", options), (error: unknown) => {
      return error instanceof SandboxTimeout && error.stdout === "half" && error.code === "timeout";
    });
  }
});

test("listeners and a limit for a model go together", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path === RUN) return sendJson(response, 200, { ...ANSWER, stdout: "a...z" });
    return stream(response, event("stdout", { chunk: "abcz" }) + END);
  });
  const execution = await sandbox.runCode("x", { maxOutputBytes: 256, onStdout: () => undefined });
  assert.equal(execution.stdout, "a...z");
  assert.equal(server.at("POST", RUN)[0]?.json["max_output_bytes"], 256);
});

test("a context is had by its name, and the default one is made when it is needed", async () => {
  let isMade = false;
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.method === "DELETE" || request.path.endsWith("/restart")) return sendNothing(response);
    if (request.path.endsWith("/sessions")) {
      isMade = true;
      return sendJson(response, 201, { ...request.json, state: "idle", execution_count: 0, created_at: "" });
    }
    return isMade ? sendJson(response, 200, ANSWER) : refuse(response, 404, "not_found");
  });
  const context = sandbox.context("default");
  assert.equal(context.language, "python");
  assert.equal(server.arrived.length, 1);
  await context.run("x");
  await context.restart();
  await context.delete();
  await sandbox.runCode("x", { context: "ctx-1" });
  assert.deepEqual(server.arrived.slice(1).map(({ method, path }) => `${method} ${path.split("/sessions")[1]}`), [
    "POST /default/run",
    "POST ",
    "POST /default/run",
    "POST /default/restart",
    "DELETE /default",
    "POST /ctx-1/run",
  ]);
  assert.throws(() => sandbox.context("../x"), /not a valid context id/);
});

test("an interpreter that has died is started again, and that is said", async () => {
  let isDead = false;
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.endsWith("/restart")) {
      isDead = false;
      return sendNothing(response);
    }
    const died = { ...ANSWER, status: "died", exit_code: 1, error: "ContextDied: gone" };
    isDead ||= request.json["code"] === "die";
    return sendJson(response, 200, isDead ? died : { ...ANSWER, hint: "h" });
  });
  assert.equal((await sandbox.runCode("die")).error?.name, "ContextDied");
  const next = await sandbox.runCode("1 + 1");
  assert.deepEqual([next.ok, next.stateLost], [true, true]);
  assert.match(next.hint ?? "", /^the interpreter was started again, .* lost; h$/);
  assert.equal((await sandbox.runCode("1 + 1")).stateLost, false);
  assert.equal(server.arrived.filter(({ path }) => path.endsWith("/restart")).length, 1);
});

test("a death of the interpreter that only the server saw is told, once", async () => {
  const hint = "the interpreter had ended and was started anew";
  const [sandbox] = await sandboxOf((request, response) => {
    if (request.path === RUN) return sendJson(response, 200, { ...ANSWER, state_lost: true, hint });
    return stream(response, event("restarted", { reason: "it was ended by SIGKILL" }) + END);
  });
  const plain = await sandbox.runCode("x");
  assert.deepEqual([plain.stateLost, plain.hint], [true, hint]);
  const followed = await sandbox.runCode("x", { onStdout: () => undefined });
  assert.equal(followed.stateLost, true);
  assert.match(followed.hint ?? "", /^the interpreter was started again, its state is lost$/);
});

test("in a template without contexts code is a command, heard as it comes", async () => {
  const [sandbox, server] = await sandboxOf((request, response) => {
    if (request.path.includes("/repl/")) return refuse(response, 501, "not_implemented");
    return stream(response, event("stdout", { chunk: "1\n" }) + event("exit", { exit_code: 3, reason: "exited", duration_ms: 1 }));
  });
  const heard: string[] = [];
  const execution = await sandbox.runCode("print(1)", { onStdout: (text) => void heard.push(text) });
  assert.deepEqual([heard, execution.stdout, execution.exitCode, execution.ok], [["1\n"], "1\n", 3, false]);
  const { json } = server.at("POST", "/v1/sandboxes/sb-1/exec/stream")[0] ?? {};
  assert.deepEqual([json?.["cmd"], json?.["stdin"]], [["python3", "-"], "print(1)"]);
});
