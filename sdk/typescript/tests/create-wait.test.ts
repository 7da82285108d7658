// Refusals that created nothing are waited out, each as long as its reason deserves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Forbidden, NoCapacity, NodeUnavailable, Sandbox, TemplateBaking, TooMany } from "dayfly";
import { Waits } from "#internal/create-wait";
import { FakeServer, refuse, SANDBOX, sendJson } from "./fake-server.js";

const baking = new TemplateBaking("baking", { percent: 7 });
const starting = new NodeUnavailable("starting");
const full = new NoCapacity("full");

test("only refusals that left nothing are waited for, and each as long as it may take", () => {
  for (const error of [new Forbidden("no"), new TooMany("no"), new Error("no")]) {
    assert.equal(new Waits(undefined).after(error, 0), undefined);
  }
  for (const [error, limitMs] of [[starting, 30_000], [full, 60_000], [baking, 1_800_000]] as const) {
    const waits = new Waits(undefined);
    assert.ok(waits.after(error, 0));
    assert.ok(waits.after(error, limitMs - 1));
    assert.equal(waits.after(error, limitMs), undefined);
  }
});

test("a node that starts again after a long bake is waited for, but not for ever", () => {
  const waits = new Waits(undefined);
  assert.ok(waits.after(baking, 0));
  assert.ok(waits.after(starting, 180_000));
  assert.equal(waits.after(starting, 210_000), undefined);
  assert.equal(waits.after(baking, 1_800_000), undefined);
});

test("the pause is the server's within limits, and the caller's limit is for everything", () => {
  const pauseMs = (retryAfterSeconds?: number): number | undefined =>
    new Waits(undefined).after(new TemplateBaking("x", { retryAfterSeconds }), 0)?.pauseMs;
  assert.deepEqual([undefined, 0, 3, 60].map(pauseMs), [1_000, 100, 3_000, 5_000]);
  assert.equal(new Waits(0).after(starting, 0), undefined);
  assert.equal(new Waits(0.5).after(baking, 0)?.pauseMs, 500);
  assert.equal(new Waits(3600).after(baking, 1_900_000)?.progress.percent, 7);
});

test("a create waits for a bake and then for the node, and says so once", async () => {
  let tries = 0;
  const server = await FakeServer.start((_, response) => {
    tries += 1;
    if (tries <= 2) refuse(response, 503, "template_baking", { percent: 1 }, "0.1");
    else if (tries <= 7) refuse(response, 503, "node_unavailable", {}, "0.01");
    else sendJson(response, 201, SANDBOX);
  });
  const warned: string[] = [];
  const client = new Client({ ...server.options, maxRetries: 1, logger: { warn: (text) => warned.push(text) } });
  assert.equal((await Sandbox.create({ client })).id, "sb-1");
  assert.deepEqual(warned, ["dayfly: a create waits: refused: template_baking"]);
  const typo = { ...server.options, ttl: 5 };
  await assert.rejects(Sandbox.create(typo), /no option ttl; did you mean ttlSeconds/);
});
