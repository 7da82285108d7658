import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerTimeout, InvalidSettings, NoCapacity, SandboxPool } from "dayfly";
import { FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

interface World {
  server: FakeServer;
  gone: Set<string>;
  refusals: number;
  rollbackFails: boolean;
}

async function world(): Promise<World> {
  let [sandboxes, snapshots] = [0, 0];
  const state: Omit<World, "server"> = { gone: new Set(), refusals: 0, rollbackFails: false };
  const server = await FakeServer.start((request, response) => {
    const [, , , id = ""] = request.path.split("/");
    if (request.method === "DELETE") return sendNothing(response);
    if (state.gone.has(id)) return refuse(response, 404, "not_found");
    if (request.path.endsWith("/rollback") && state.rollbackFails) return refuse(response, 409, "snapshot_corrupt");
    if (request.path.endsWith("/snapshots")) {
      snapshots += 1;
      return sendJson(response, 201, { id: `snap-${snapshots}`, sandbox_id: id, template: "base", created_at: "", size_bytes: 1, capture: {} });
    }
    if (request.path === "/v1/sandboxes") {
      if (state.refusals > 0) {
        state.refusals -= 1;
        return refuse(response, 503, "no_capacity");
      }
      sandboxes += 1;
      return sendJson(response, 201, { ...SANDBOX, id: `sb-${sandboxes}` });
    }
    return sendJson(response, 200, { ...SANDBOX, id });
  });
  return Object.assign(state, { server });
}

const deleted = ({ server }: World): string[] =>
  server.arrived.filter(({ method }) => method === "DELETE").map(({ path }) => path.split("/").at(-1) ?? "");

test("a pool lends, sets back and lends again, and deletes all at its end", async () => {
  const one = await world();
  const pool = new SandboxPool({ ...one.server.options, size: 1, template: "base", ttlSeconds: 60 });
  assert.deepEqual(pool.status(), { size: 1, idle: 0, busy: 0, preparing: 1, error: undefined });
  const sandbox = await pool.acquire();
  assert.equal(pool.status().busy, 1);
  await assert.rejects(pool.acquire({ timeoutSeconds: 0.02 }), AnswerTimeout);
  await assert.rejects(pool.acquire({ signal: AbortSignal.timeout(10) }), { name: "TimeoutError" });
  const next = pool.acquire();
  pool.release(sandbox);
  assert.throws(() => pool.release(sandbox), InvalidSettings);
  assert.equal((await next).id, sandbox.id);
  assert.deepEqual(one.server.at("POST", "/v1/sandboxes/sb-1/rollback")[0]?.json, { snapshot_id: "snap-1", env: {} });
  const [create] = one.server.at("POST", "/v1/sandboxes");
  assert.deepEqual(create?.json, { template: "base", ttl_seconds: 60 });
  await pool.close();
  await pool.close();
  assert.deepEqual(deleted(one), ["sb-1", "snap-1"]);
  await assert.rejects(pool.acquire(), /the pool is closed/);
});

test("a sandbox that is gone, or cannot be set back, is replaced", async () => {
  const one = await world();
  await using pool = new SandboxPool({ ...one.server.options, size: 1 });
  await one.server.until(({ path }) => path.endsWith("/snapshots"));
  one.gone.add("sb-1");
  const second = await pool.acquire();
  assert.equal(second.id, "sb-2");
  one.rollbackFails = true;
  pool.release(second);
  assert.equal((await pool.acquire()).id, "sb-3");
  assert.ok(deleted(one).includes("snap-2"));
});

test("who waits hears why there is none, and a function gives back what it had", async () => {
  const one = await world();
  one.refusals = 1;
  const pool = new SandboxPool({ ...one.server.options, size: 1, waitSeconds: 0 });
  await assert.rejects(pool.acquire(), NoCapacity);
  assert.ok(pool.status().error instanceof NoCapacity);
  await pool.close();
  const two = await world();
  await using good = new SandboxPool({ ...two.server.options, size: 2 });
  assert.match(await good.use(({ id }) => id), /^sb-/);
  await assert.rejects(good.use(() => Promise.reject(new Error("mine"))), /mine/);
  assert.equal(good.status().busy, 0);
  assert.throws(() => new SandboxPool({ size: 0 }), InvalidSettings);
  assert.throws(() => new SandboxPool({ size: 1, ttl: 3 } as never), /no option ttl; did you mean ttlSeconds/);
});
