// Runs that are ended from outside: cancelled, not listened to any more, one of several.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEvent, AgentResult, ModelFunction, TurnWish } from "dayfly/agents";
import { calling, DONE, Script, shell, world } from "./agent-world.js";
import { CREATE, ONE, RAN } from "./fake-daemon.js";
import { SANDBOX, sendJson } from "./fake-server.js";

const never = (): Promise<TurnWish> => new Promise(() => undefined);

test("a signal ends a run while the model speaks, and deletes the sandbox", async () => {
  const { daemon, make } = await world();
  const stop = new AbortController();
  const hang: ModelFunction = () => {
    stop.abort(new Error("enough"));
    return never();
  };
  const agent = make(hang);
  await assert.rejects(agent.run("do it", { signal: stop.signal }), /^Error: enough$/);
  assert.ok(daemon.isDeleted);
  assert.equal(agent.transcript.stop, "cancelled");
});

test("a signal ends a run while a tool runs, and what it runs", async () => {
  const { daemon, make } = await world();
  const stop = new AbortController();
  daemon.on("POST", `${ONE}/exec`, () => stop.abort(new Error("enough")));
  const agent = make(new Script(calling(shell())));
  await assert.rejects(agent.run("do it", { signal: stop.signal }), /^Error: enough$/);
  assert.ok(daemon.isDeleted);
  assert.ok(daemon.server.arrived.some(({ method, path }) => method === "DELETE" && path.includes("/processes/")));
  const last = agent.transcript.messages.at(-1);
  assert.ok(last?.kind === "results" && last.results[0]?.text.includes("not known"));
});

test("a signal that was sent before ends a run before anything is made", async () => {
  const { daemon, make } = await world();
  await assert.rejects(make(new Script(DONE)).run("do it", { signal: AbortSignal.abort(new Error("no")) }), /no/);
  assert.equal(daemon.server.arrived.length, 0);
});

test("a sandbox that was made for a run that nobody wants any more is deleted", async () => {
  const { daemon, make } = await world();
  const stop = new AbortController();
  daemon.on("POST", CREATE, (_, response) => {
    stop.abort(new Error("enough"));
    sendJson(response, 201, SANDBOX);
  });
  await assert.rejects(make(new Script(DONE)).run("do it", { signal: stop.signal }), /enough/);
  await daemon.server.until(({ method, path }) => method === "DELETE" && path === ONE);
});

test("events are iterated over", async () => {
  const { daemon, make } = await world();
  const told: AgentEvent[] = [];
  for await (const event of make(new Script(calling(shell()), DONE)).stream("do it")) told.push(event);
  assert.equal(told.length, 7);
  const last = told.at(-1);
  assert.ok(last?.kind === "run_ended" && last.result.ok);
  assert.ok(daemon.isDeleted);
});

test("a run goes on when the next event is asked for, and who stops iterating ends it", async () => {
  const { daemon, make } = await world();
  const told: string[] = [];
  for await (const { kind } of make(new Script(calling(shell()))).stream("do it")) {
    told.push(kind);
    if (kind === "call_began") break;
  }
  assert.deepEqual(told, ["turn_began", "turn_ended", "call_began"]);
  assert.equal(daemon.seen("POST", `${ONE}/exec`).length, 0, "the call was not carried out");
  assert.ok(daemon.isDeleted);
});

test("who iterates gets what a run throws", async () => {
  const { daemon, make } = await world();
  const stop = new AbortController();
  const events = make(never).stream("do it", { signal: stop.signal });
  assert.equal((await events.next()).value?.kind, "turn_began");
  const next = events.next();
  stop.abort(new Error("enough"));
  await assert.rejects(next, /^Error: enough$/);
  assert.ok(daemon.isDeleted);
  await assert.rejects(make(never).stream().next(), /there is no task/);
});

test("the best of three is kept, and the others are not", async () => {
  const { daemon, make } = await world();
  daemon.withForks("fork-tree", 3);
  const judge = (result: AgentResult): number => (result.sandboxId === "sb-11" ? 2 : 1);
  const found = await make(() => DONE).bestOf(3, "do it", { score: judge });
  assert.equal(found.winner?.id, "sb-11");
  assert.deepEqual(found.trials.map(({ score }) => score), [1, 2, 1]);
  assert.equal(found.best?.result?.sandboxId, "sb-11");
  assert.equal(daemon.seen("POST", `${ONE}/fork-tree`)[0]?.json["ttl_seconds"], 3600);
  assert.equal(daemon.seen("POST", `${CREATE}/sb-11/promote`).length, 1);
  assert.ok(daemon.isDeleted, "the source was made for it");
});

test("a search stops when it has enough, and ends the runs that go on", async () => {
  const { daemon, make } = await world();
  daemon.withForks("fork-tree", 3);
  const models: AbortSignal[] = [];
  const say: ModelFunction = (_, __, { signal }) => {
    models.push(signal);
    return models.length === 2 ? DONE : never();
  };
  const found = await make(say).bestOf(3, "do it", { stopAt: 1, maxParallel: 2 });
  assert.equal(found.winner?.id, "sb-11");
  assert.equal(models.length, 2, "the third was not begun");
  assert.ok(models[0]?.aborted);
  assert.deepEqual(found.trials.map(({ isSkipped, score }) => [isSkipped, score]), [[true, undefined], [false, 1], [true, undefined]]);
});

test("a search of runs that all fail keeps none", async () => {
  const { daemon, make } = await world();
  daemon.withForks("fork-tree", 2);
  const score = (): never => {
    throw new RangeError("mine");
  };
  const found = await make(() => DONE).bestOf(2, "do it", { score });
  assert.deepEqual([found.winner, found.best], [undefined, undefined]);
  assert.ok(found.trials.every(({ error }) => error instanceof RangeError));
  for (const id of ["sb-10", "sb-11"]) assert.equal(daemon.seen("DELETE", `${CREATE}/${id}`).length, 1);
});

test("a search that is cancelled leaves nothing behind", async () => {
  const { daemon, make } = await world();
  daemon.withForks("fork-tree", 2);
  const stop = new AbortController();
  daemon.on("POST", `${CREATE}/sb-10/exec`, () => stop.abort(new Error("enough")));
  daemon.on("POST", `${CREATE}/sb-11/exec`, RAN);
  const agent = make(() => calling(shell()), { budget: { steps: null } });
  await assert.rejects(agent.bestOf(2, "do it", { signal: stop.signal }), /^Error: enough$/);
  for (const id of ["sb-10", "sb-11", "sb-1"]) assert.ok(daemon.seen("DELETE", `${CREATE}/${id}`).length > 0, id);
  await assert.rejects(agent.bestOf(0, "do it"), /at least 1 run/);
});
