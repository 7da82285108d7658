// Runs the cases that every client of Dayfly is driven by, against a real daemon.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { CodeContext, type CreateOptions, DayflyError, Sandbox, Snapshot } from "dayfly";
import { toCamel } from "#internal/names";
import { CALLS, CaseTemplate, type Named } from "./case-calls.js";

interface Step {
  on?: string;
  call: string;
  with?: Record<string, unknown>;
  as?: string;
  expect?: Record<string, unknown>;
  error?: string;
}

interface Case {
  name: string;
  template: string;
  create?: Record<string, unknown>;
  via?: string[];
  steps: Step[];
}

const directory = new URL("../../../../tests/cases/", import.meta.url);
const isRequired = process.env["DAYFLY_REQUIRE_VM"] === "1";
const hasDaemon = (process.env["DAYFLY_API_URL"] ?? "") !== "";

for (const file of readdirSync(directory).filter((name) => name.endsWith(".json")).sort()) {
  const one = JSON.parse(readFileSync(new URL(file, directory), "utf8")) as Case;
  const isMine = one.via === undefined || one.via.includes("typescript");
  const skip = !isMine
    ? "this case is for other clients"
    : !hasDaemon && !isRequired && "DAYFLY_API_URL is not set: there is no daemon to run this against";
  test(`${file}: ${one.name}`, { skip, timeout: 300_000 }, async () => {
    assert.ok(hasDaemon, "DAYFLY_REQUIRE_VM=1 and DAYFLY_API_URL is not set");
    await runCase(one);
  });
}

async function runCase(one: Case): Promise<void> {
  const made = new Map<string, Named>();
  try {
    const options = { template: one.template, ...toCamel(one.create ?? {}) } as CreateOptions;
    made.set("main", await Sandbox.create(options));
    for (const [index, step] of one.steps.entries()) await runStep(step, index, made);
  } finally {
    const everything = [...made.values()];
    for (const thing of everything) if (thing instanceof Sandbox) await thing.delete();
    for (const thing of everything) if (thing instanceof Snapshot) await thing.delete();
    for (const thing of everything) if (thing instanceof CaseTemplate) await thing.delete();
  }
}

async function runStep(step: Step, index: number, made: Map<string, Named>): Promise<void> {
  const where = `step ${index + 1}, ${step.call}`;
  const sandbox = made.get(step.on ?? "main");
  assert.ok(sandbox instanceof Sandbox, `${where}: no sandbox of that name`);
  const call = CALLS[step.call];
  assert.ok(call !== undefined, `${where}: this driver does not know the call`);
  let outcome: Awaited<ReturnType<typeof call>>;
  try {
    outcome = await call(sandbox, step.with ?? {}, made);
  } catch (error) {
    if (step.error === undefined || !(error instanceof DayflyError)) throw error;
    assert.equal(error.code, step.error, where);
    return;
  }
  assert.equal(step.error, undefined, `${where}: it succeeded`);
  if (
    outcome instanceof Sandbox ||
    outcome instanceof Snapshot ||
    outcome instanceof CodeContext ||
    outcome instanceof CaseTemplate
  ) {
    // Also what has no name is deleted at the end.
    made.set(step.as ?? `unnamed ${index}`, outcome);
    return;
  }
  for (const [field, expected] of Object.entries(step.expect ?? {})) {
    compare((outcome ?? {})[field], expected, `${where}: ${field}`);
  }
}

function compare(actual: unknown, expected: unknown, where: string): void {
  if (typeof expected === "string" && expected.startsWith("~")) {
    assert.ok(String(actual).includes(expected.slice(1)), `${where}: ${JSON.stringify(actual)}`);
    return;
  }
  assert.deepEqual(actual, expected, where);
}
