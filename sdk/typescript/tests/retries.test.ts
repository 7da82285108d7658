import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerLost, NoCapacity, Sandbox, ServerUnreachable, TemplateBaking, TooMany, type WaitProgress } from "dayfly";
import { repeat } from "#internal/retry";
import { FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

test("a create whose answer is lost is repeated with the same key", async () => {
  let tries = 0;
  const server = await FakeServer.start((_, response) => {
    tries += 1;
    if (tries === 1) response.destroy();
    else sendJson(response, 201, SANDBOX);
  });
  const sandbox = await Sandbox.create({ ...server.options, ttlSeconds: 60, metadata: { some_name: "x" } });
  assert.equal(sandbox.id, "sb-1");
  const [first, second, ...others] = server.at("POST", "/v1/sandboxes");
  assert.equal(others.length, 0);
  assert.match(String(first?.headers["idempotency-key"]), /^[0-9a-f]{32}$/);
  assert.equal(first?.headers["idempotency-key"], second?.headers["idempotency-key"]);
  assert.equal(first?.headers["authorization"], "Bearer df_test");
  assert.deepEqual(first?.json, { ttl_seconds: 60, metadata: { some_name: "x" } });
  assert.equal(first?.body, second?.body);
});

test("a create without a template leaves it to the server", async () => {
  const server = await FakeServer.start((_, response) => sendJson(response, 201, SANDBOX));
  await Sandbox.create(server.options);
  await Sandbox.create({ ...server.options, template: undefined });
  await Sandbox.create({ ...server.options, template: "tools" });
  assert.deepEqual(server.arrived.map(({ json }) => json), [{}, {}, { template: "tools" }]);
});

test("forks and snapshots carry a key as well, and each call another one", async () => {
  const snapshot = { id: "snap-1", sandbox_id: "sb-1", template: "base", created_at: "", size_bytes: 1, capture: {} };
  let isLost = false;
  const server = await FakeServer.start((request, response) => {
    isLost = !isLost;
    if (request.method === "POST" && isLost) response.destroy();
    else if (request.path.endsWith("/snapshots")) sendJson(response, 201, snapshot);
    else if (request.path.endsWith("/fork")) {
      const answer = { children: [SANDBOX], failures: {}, renewed: [], not_renewed: [], capture: {}, sandbox: SANDBOX };
      sendJson(response, 201, answer);
    } else {
      isLost = false;
      sendJson(response, 200, SANDBOX);
    }
  });
  const sandbox = await Sandbox.connect("sb-1", server.options);
  await sandbox.fork();
  await sandbox.snapshot();
  const posts = server.arrived.filter(({ method }) => method === "POST");
  const keys = posts.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(keys.length, 4);
  assert.equal(keys[0], keys[1]);
  assert.equal(keys[2], keys[3]);
  assert.notEqual(keys[0], keys[2]);
});

test("what may have been carried out and cannot be repeated is not repeated", async () => {
  const server = await FakeServer.start((request, response) => {
    if (request.method === "GET") sendJson(response, 200, SANDBOX);
    else response.destroy();
  });
  const sandbox = await Sandbox.connect("sb-1", server.options);
  await assert.rejects(sandbox.run("touch x"), AnswerLost);
  await assert.rejects(sandbox.files.move("/a", "/b"), AnswerLost);
  await assert.rejects(sandbox.files.write("/a", "x", { append: true }), AnswerLost);
  // A second one would throw away what was done between the two.
  await assert.rejects(sandbox.rollback("snap-1"), AnswerLost);
  const sent = server.arrived.filter(({ method }) => method !== "GET").map(({ path }) => path.split("/").at(-1));
  assert.deepEqual(sent, ["run", "move", "fs", "rollback"]);
});

test("a read is repeated a bounded number of times", async () => {
  const server = await FakeServer.start((_, response) => void response.destroy());
  await assert.rejects(Sandbox.list(server.options), AnswerLost);
  assert.equal(server.arrived.length, 4);
  await assert.rejects(Sandbox.list({ ...server.options, maxRetries: 0 }), AnswerLost);
  assert.equal(server.arrived.length, 5);
});

test("a refusal that has done nothing is repeated when the server says so", async () => {
  let tries = 0;
  const server = await FakeServer.start((_, response) => {
    tries += 1;
    if (tries === 1) refuse(response, 429, "too_many", {}, "0.2");
    else sendJson(response, 200, { items: [] });
  });
  const start = Date.now();
  assert.deepEqual(await Sandbox.list(server.options), []);
  assert.ok(Date.now() - start >= 190, "it did not wait");
});

test("nobody waits longer than the budget allows", async () => {
  const server = await FakeServer.start((_, response) => refuse(response, 429, "too_many", {}, "3600"));
  await assert.rejects(Sandbox.list(server.options), TooMany);
  assert.equal(server.arrived.length, 1);
});

test("a server that is not there is said to be not there", async () => {
  const server = await FakeServer.start((_, response) => sendNothing(response));
  const { options } = server;
  server.stop();
  await assert.rejects(Sandbox.create(options), (error: unknown) => {
    assert.ok(error instanceof ServerUnreachable);
    assert.equal(error.code, "server_unreachable");
    return true;
  });
});

test("a create waits for a bake, tells how far it is, and gives up in time", async () => {
  let tries = 0;
  const server = await FakeServer.start((_, response) => {
    tries += 1;
    if (tries <= 2) refuse(response, 503, "template_baking", { percent: tries * 40 }, "0.1");
    else sendJson(response, 201, SANDBOX);
  });
  const heard: WaitProgress[] = [];
  await Sandbox.create({ ...server.options, onProgress: (progress) => heard.push(progress) });
  assert.deepEqual(heard.map(({ reason, percent }) => [reason, percent]), [
    ["template_baking", 40],
    ["template_baking", 80],
  ]);

  const stuck = await FakeServer.start((_, response) => {
    refuse(response, 503, "template_baking", { percent: 1 }, "0.1");
  });
  await assert.rejects(Sandbox.create({ ...stuck.options, waitSeconds: 0.3 }), (error: unknown) => {
    return error instanceof TemplateBaking && error.percent === 1;
  });
  const full = await FakeServer.start((_, response) => refuse(response, 503, "no_capacity", {}, "0.1"));
  await assert.rejects(Sandbox.create({ ...full.options, waitSeconds: 0 }), NoCapacity);
});

test("an answer that takes longer than the platform waits is asked for again and again", async () => {
  const impatience = Object.assign(new Error("no head"), { code: "UND_ERR_HEADERS_TIMEOUT" });
  const lost = new AnswerLost(new TypeError("fetch failed", { cause: impatience }));
  const rules = { isRepeatable: true, maxRetries: 0, signal: undefined };
  let tries = 0;
  const attempt = (): Promise<string> => {
    tries += 1;
    return tries < 9 ? Promise.reject(lost) : Promise.resolve("done");
  };
  assert.equal(await repeat({ ...rules, waitsLong: true }, attempt), "done");
  tries = 0;
  await assert.rejects(repeat({ ...rules, waitsLong: false }, attempt));
  assert.equal(tries, 1);
});

test("a caller that has had enough does not wait", async () => {
  const server = await FakeServer.start((_, response) => refuse(response, 503, "template_baking", {}, "5"));
  const reason = new Error("enough");
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 100);
  await assert.rejects(Sandbox.create({ ...server.options, signal: controller.signal }), reason);
});
