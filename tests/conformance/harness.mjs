// What the TypeScript cases stand on: their order, their results, and what they must clean up.

import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(process.env.CONFORMANCE_NODE + "/");
export const sdk = require("@pandastack/sdk");
const VERSION = require(process.env.CONFORMANCE_NODE + "/node_modules/@pandastack/sdk/package.json").version;

// Fields, which the case of Sandbox.create looks at, and no method at all.
const NOT_A_METHOD = new Set(["constructor", "id", "template", "status"]);

// The name under which a user reaches each class, and its methods.
function publicPrototypes() {
  const client = new sdk.Client({ apiUrl: "http://localhost", apiKey: "none" });
  const sandbox = sdk.Sandbox.fromInfo({ id: "none" }, client);
  return {
    Client: client,
    sandboxes: client.sandboxes,
    Sandbox: sandbox,
    filesystem: sandbox.filesystem,
    commands: sandbox.commands,
    CodeContext: new sdk.CodeContext(client, "none", "none"),
    snapshots: client.snapshots,
    volumes: client.volumes,
    templates: client.templates,
    tokens: client.tokens,
  };
}

function outOfScopePrototypes() {
  const { apps, databases, functions, schedules } = new sdk.Client({ apiUrl: "http://localhost", apiKey: "none" });
  return { apps, databases, functions, schedules };
}

function methods(object) {
  return Reflect.ownKeys(Object.getPrototypeOf(object))
    .map((key) => (key === Symbol.asyncDispose || String(key) === "Symbol(Symbol.asyncDispose)" ? "asyncDispose" : key))
    .filter((key) => typeof key === "string" && !key.startsWith("_") && !NOT_A_METHOD.has(key));
}

// Every public method, so that one without a case is noticed.
function surface() {
  const names = Object.entries(publicPrototypes()).flatMap(([label, object]) =>
    methods(object).map((name) => `${label}.${name}`));
  const statics = Object.getOwnPropertyNames(sdk.Sandbox).filter((name) => typeof sdk.Sandbox[name] === "function");
  return names.concat(statics.map((name) => `Sandbox.${name}`));
}

function outOfScope() {
  return Object.fromEntries(
    Object.entries(outOfScopePrototypes()).map(([label, object]) => [label, methods(object).sort()]));
}

export class Skip extends Error {}
export class Differs extends Error {}
class Mismatch extends Error {}

const CASES = [];

// One function may stand for several methods that only make sense together.
export function testCase(names, run, options = {}) {
  const [first, ...more] = [names].flat();
  CASES.push({ id: first, run, ...options });
  for (const id of more) CASES.push({ id, with: first, ...options });
}

export function check(condition, text) {
  if (!condition) throw new Mismatch(text);
}

export function equal(got, wanted, what) {
  const [left, right] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (left !== right) throw new Mismatch(`${what}: wanted ${right}, got ${left}`);
}

// Calls `call`, which must throw exactly this type, and gives the error.
export async function throws(type, call, what) {
  let value;
  try {
    value = await call();
  } catch (error) {
    if (error?.constructor === type) return error;
    throw new Mismatch(`${what}: wanted ${type.name}, got ${error?.constructor?.name}: ${error?.message}`);
  }
  throw new Mismatch(`${what}: wanted ${type.name}, got ${JSON.stringify(value)}`);
}

export async function waitUntil(condition, what, seconds = 20) {
  const deadline = Date.now() + seconds * 1000;
  while (Date.now() < deadline) {
    const value = await condition();
    if (value) return value;
    await sleep(300);
  }
  throw new Mismatch(`${what}: not within ${seconds} s`);
}

export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

// Starts the command on a stream of its own; gives a promise of its end once it has begun.
export async function begin(sandbox, command) {
  let ended;
  await new Promise((begun, failed) => {
    ended = sandbox.execStream(`echo begun; ${command}`, { onStdout: begun });
    ended.catch(failed);
  });
  return { ended };
}

// The daemon, and everything that the cases made there.
class World {
  run = randomBytes(4).toString("hex");
  apiUrl = process.env.PANDASTACK_API;
  apiKey = process.env.PANDASTACK_API_KEY;
  client = new sdk.Client();
  shared = {};
  made = new Set();

  keep(sandbox) {
    this.made.add(sandbox.id);
    return sandbox;
  }

  async create(options = {}) {
    const metadata = { conformance: this.run, ...options.metadata };
    return this.keep(
      await this.client.sandboxes.create({ template: "base", ttlSeconds: 1800, ...options, metadata }));
  }

  // A sandbox that cases share; made when first asked for.
  async sandbox(template = "base") {
    this.shared[template] ??= await this.create({ template });
    return this.shared[template];
  }

  // Ends a shared sandbox, to leave room for cases that make many.
  async drop(template) {
    const sandbox = this.shared[template];
    delete this.shared[template];
    await sandbox?.kill();
  }

  async ids() {
    return new Set((await this.client.sandboxes.list()).map((sandbox) => sandbox.id));
  }

  // Our sandboxes that still exist, forks of them included.
  async ours() {
    const listed = await this.client.sandboxes.list();
    for (let before = -1; before !== this.made.size;) {
      before = this.made.size;
      for (const { id, info } of listed) {
        const { conformance, fork_parent_id: parent } = info.metadata ?? {};
        if (conformance === this.run || this.made.has(parent)) this.made.add(id);
      }
    }
    return listed.filter((sandbox) => this.made.has(sandbox.id));
  }

  // After a case that failed half way, so that it does not take the room of the next.
  async cleanUnshared() {
    const shared = new Set(Object.values(this.shared).map((value) => value?.id));
    for (const sandbox of await this.ours()) {
      if (!shared.has(sandbox.id)) await sandbox.kill();
    }
  }

  async clean() {
    const prefix = `conformance-${this.run}`;
    for (const sandbox of await this.ours()) await sandbox.kill();
    for (const snapshot of await this.client.snapshots.list()) {
      if (this.made.has(snapshot.sandbox_id)) await this.client.snapshots.delete(snapshot.id);
    }
    for (const volume of await this.client.volumes.list()) {
      if (volume.name.startsWith(prefix)) await this.client.volumes.delete(volume.name);
    }
    for (const token of await this.client.tokens.list()) {
      if (token.label?.startsWith(prefix)) await this.client.tokens.revoke(token.prefix);
    }
  }
}

async function runOne(run, world) {
  try {
    await run(world);
    return ["pass", ""];
  } catch (error) {
    if (error instanceof Skip) return ["skip", error.message];
    if (error instanceof Differs) return ["differs", error.message];
    if (error instanceof Mismatch) return ["fail", error.message];
    return ["fail", `${error?.constructor?.name}: ${error?.message}`];
  }
}

// One line without ids and times, so that a second run writes the same table.
function plain(reason) {
  const line = reason.split(/\s+/).join(" ").replace(/(duration_ms\W{1,3})\d+/g, "$1N");
  return line.replace(/\b(sb|snap|ctx|tree|req|exec)-[a-z0-9-]{8,}/g, "$1-ID").slice(0, 300);
}

async function outcomeOf(item, results, world, slowToo) {
  if (item.with) return results.get(item.with) ?? ["skip", `with ${item.with}`];
  if (item.slow && !slowToo) return ["not run", "slow"];
  const result = await runOne(item.run, world);
  if (result[0] === "fail") await world.cleanUnshared();
  return result;
}

export async function main(slowToo, only) {
  const emit = (record) => console.log(JSON.stringify(record));
  emit({ surface: surface(), out_of_scope: outOfScope(), version: VERSION });
  const [world, results] = [new World(), new Map()];
  try {
    for (const item of CASES) {
      if (only.length && !only.some((word) => item.id.includes(word))) continue;
      const started = Date.now();
      let [outcome, reason] = await outcomeOf(item, results, world, slowToo);
      if (item.notOffered && outcome === "pass") outcome = "not offered";
      results.set(item.id, [outcome, reason]);
      emit({ id: item.id, outcome, reason: plain(reason) });
      const seconds = ((Date.now() - started) / 1000).toFixed(1).padStart(6);
      console.error(`${seconds} s  ${outcome.padEnd(11)} ${item.id}  ${reason}`);
    }
  } finally {
    await world.clean();
  }
  const left = await world.ours();
  emit({ id: "case: nothing is left over", outcome: left.length ? "fail" : "pass",
    reason: left.length ? `${left.length} sandboxes` : "" });
}
