// A caller that has had enough leaves nothing behind.

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { Sandbox } from "dayfly";
import { FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const REASON = new Error("enough");
const isDelete = ({ method }: { method: string }): boolean => method === "DELETE";

/** A server that keeps the response to each request to make something until it is let go. */
async function slowServer(make: string): Promise<{ server: FakeServer; letGo: (answer: unknown) => void }> {
  const waiting: ServerResponse[] = [];
  const server = await FakeServer.start((request, response) => {
    if (isDelete(request)) sendNothing(response);
    else if (request.method === "POST" && request.path === make) waiting.push(response);
    else sendJson(response, 200, SANDBOX);
  });
  return { server, letGo: (answer) => waiting.forEach((response) => sendJson(response, 201, answer)) };
}

test("an aborted create fails at once, and what it made is deleted", async () => {
  const { server, letGo } = await slowServer("/v1/sandboxes");
  const controller = new AbortController();
  const create = Sandbox.create({ ...server.options, signal: controller.signal });
  await server.until(({ path }) => path === "/v1/sandboxes");
  controller.abort(REASON);
  await assert.rejects(create, REASON);
  assert.equal(server.arrived.filter(isDelete).length, 0);
  letGo(SANDBOX);
  assert.equal((await server.until(isDelete)).path, "/v1/sandboxes/sb-1");
});

test("an aborted fork deletes every child", async () => {
  const { server, letGo } = await slowServer("/v1/sandboxes/sb-1/fork");
  const sandbox = await Sandbox.connect("sb-1", server.options);
  const controller = new AbortController();
  const forks = sandbox.forkMany(2, { signal: controller.signal });
  const { json } = await server.until(({ path }) => path.endsWith("/fork"));
  assert.equal(json["signal"], undefined);
  controller.abort(REASON);
  await assert.rejects(forks, REASON);
  const children = ["sb-2", "sb-3"].map((id) => ({ ...SANDBOX, id }));
  letGo({ children, failures: {}, renewed: [], not_renewed: [], capture: {} });
  await server.until(({ path }) => path === "/v1/sandboxes/sb-2");
  await server.until(({ path }) => path === "/v1/sandboxes/sb-3");
});

test("a create whose response is lost after the abort is asked for again and deleted", async () => {
  let tries = 0;
  const server = await FakeServer.start((request, response) => {
    if (isDelete(request)) return sendNothing(response);
    tries += 1;
    if (tries > 1) return sendJson(response, 201, SANDBOX);
    controller.abort(REASON);
    setTimeout(() => response.destroy(), 20);
  });
  const controller = new AbortController();
  await assert.rejects(Sandbox.create({ ...server.options, signal: controller.signal }), REASON);
  await server.until(isDelete);
  const keys = server.at("POST", "/v1/sandboxes").map(({ headers }) => headers["idempotency-key"]);
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
});

test("a signal that is aborted before sends nothing, and one that is not used stays quiet", async () => {
  const server = await FakeServer.start((_, response) => sendJson(response, 201, SANDBOX));
  await assert.rejects(Sandbox.create({ ...server.options, signal: AbortSignal.abort(REASON) }), REASON);
  assert.equal(server.arrived.length, 0);
  const controller = new AbortController();
  const sandbox = await Sandbox.create({ ...server.options, signal: controller.signal });
  controller.abort(REASON);
  await sandbox.info();
  assert.equal(server.arrived.filter(isDelete).length, 0);
  const full = await FakeServer.start((_, response) => refuse(response, 403, "forbidden"));
  await assert.rejects(Sandbox.create({ ...full.options, signal: controller.signal }), REASON);
});

test("code that is given up on is interrupted", async () => {
  let isInterrupted = false;
  const waiting: ServerResponse[] = [];
  const server = await FakeServer.start((request, response) => {
    if (request.path.endsWith("/run")) {
      const answer = { results: [], stdout: "", stderr: "", exit: 0, exit_code: 0, status: "ok", duration_ms: 1 };
      if (isInterrupted) sendJson(response, 200, { ...answer, truncated: false });
      else waiting.push(response);
    } else if (request.path.endsWith("/interrupt")) {
      isInterrupted = true;
      sendNothing(response);
    } else sendJson(response, 200, SANDBOX);
  });
  const sandbox = await Sandbox.connect("sb-1", server.options);
  const controller = new AbortController();
  const run = sandbox.runCode("while True: pass", { signal: controller.signal });
  await server.until(({ path }) => path.endsWith("/run"));
  controller.abort(REASON);
  await assert.rejects(run, REASON);
  assert.equal(server.at("POST", "/v1/sandboxes/sb-1/repl/sessions/default/interrupt").length, 1);
  assert.equal((await sandbox.runCode("1 + 1")).ok, true);
});
