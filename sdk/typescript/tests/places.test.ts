// How many requests are under way at once, and what becomes of those that are over.

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client, InvalidSettings, me, Sandbox, ServerUnreachable } from "dayfly";
import { event, FakeServer, SANDBOX, sendJson } from "./fake-server.js";

const RESULT = { stdout: "", stderr: "", exit_code: 0, reason: "exited", duration_ms: 1, truncated: false };

/** Answers commands a little later, so that those of one moment overlap. */
async function slow(): Promise<FakeServer> {
  return await FakeServer.start((request, response) => {
    if (!request.path.endsWith("/exec")) return sendJson(response, 200, SANDBOX);
    return void setTimeout(5).then(() => sendJson(response, 200, RESULT));
  });
}

/** Holds every command until it is let go, and tells its output. */
async function holding(): Promise<{ server: FakeServer; letGo: () => void }> {
  const held: ServerResponse[] = [];
  const server = await FakeServer.start((request, response) => {
    if (!request.path.endsWith("/exec/stream")) return sendJson(response, 200, SANDBOX);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(event("started", { exec_id: "ex-1" }));
    held.push(response);
  });
  const letGo = (): void => {
    for (const response of held) response.end(event("exit", { exit_code: 0, reason: "exited", duration_ms: 1 }));
  };
  return { server, letGo };
}

test("600 commands at once have 100 connections, with a client or without", async () => {
  for (const hasClient of [false, true]) {
    const server = await slow();
    const options = hasClient ? { client: new Client(server.options) } : server.options;
    // Without a client each of these has a connection of its own.
    const sandboxes = await Promise.all(Array.from({ length: 6 }, () => Sandbox.connect("sb-1", options)));
    const results = await Promise.all(Array.from({ length: 600 }, (_, index) => sandboxes[index % 6]?.exec("true")));
    assert.equal(results.filter((result) => result?.ok).length, 600);
    // A few more than requests: those of the last `connect` are not idle yet when the first commands are sent.
    assert.ok(server.mostConnections <= 106, `${server.mostConnections} connections`);
    assert.ok(server.mostConnections > 50, `${server.mostConnections} connections`);
  }
});

test("a client has its own limit, and whoever comes first is served first", async () => {
  const server = await slow();
  await using client = new Client({ ...server.options, maxConnections: 2 });
  const sandbox = await Sandbox.connect("sb-1", { client });
  // Time for that connection to become idle.
  await setTimeout(20);
  const ended: number[] = [];
  await Promise.all(Array.from({ length: 9 }, (_, index) => sandbox.exec("true").then(() => ended.push(index))));
  assert.equal(server.mostConnections, 2);
  assert.deepEqual(ended, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  for (const maxConnections of [0, 1.5, -1]) assert.throws(() => new Client({ maxConnections }), InvalidSettings);
});

test("a command that is followed holds its connection, and the others say so when none gets on", async () => {
  const { server, letGo } = await holding();
  await using client = new Client({ ...server.options, maxConnections: 1, timeoutMs: 150 });
  const sandbox = await Sandbox.connect("sb-1", { client });
  const followed = sandbox.exec("sleep inf", { onStdout: () => undefined });
  await server.until(({ path }) => path.endsWith("/exec/stream"));
  const before = server.arrived.length;
  await assert.rejects(me({ client }), (error: unknown) => {
    assert.ok(error instanceof ServerUnreachable);
    assert.equal(error.name, "ServerUnreachable");
    assert.equal(error.message, "all 1 connections of this client have been in use for 0.15 s");
    return /maxConnections/.test(error.hint ?? "");
  });
  await assert.rejects(sandbox.exec("true", { signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  assert.equal(server.arrived.filter(({ method }) => method === "GET").length, 1);
  const waiting = me({ client });
  letGo();
  assert.equal((await followed).exitCode, 0);
  await waiting;
  assert.ok(server.arrived.length > before);
});

test("a body that is read, cancelled or cut off gives its connection back", async () => {
  const server = await FakeServer.start((request, response) => {
    if (!request.path.endsWith("/fs")) return sendJson(response, 200, SANDBOX);
    response.write("x".repeat(1000));
    if (request.query.get("path") === "cut") return void setTimeout(5).then(() => response.destroy());
    if (request.query.get("path") === "whole") response.end();
  });
  await using client = new Client({ ...server.options, maxConnections: 1, timeoutMs: 2000 });
  const { files } = await Sandbox.connect("sb-1", { client });
  const whole = await files.readStream("whole");
  assert.equal((await new Response(whole).text()).length, 1000);
  await (await files.readStream("endless")).cancel();
  await assert.rejects(new Response(await files.readStream("cut")).text());
  await me({ client });
});
