// The examples of the README, as they stand.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../", import.meta.url));
const hasDaemon = (process.env["DAYFLY_API_URL"] ?? "") !== "";
const isRequired = process.env["DAYFLY_REQUIRE_VM"] === "1";
const skip = !hasDaemon && !isRequired && "DAYFLY_API_URL is not set: there is no daemon to run this against";

test("every example of the README compiles", { timeout: 120_000 }, () => {
  const place = `${root}dist/tests/readme`;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  const examples = [...readFileSync(`${root}README.md`, "utf8").matchAll(/```ts\n([^]*?)```/g)];
  assert.ok(examples.length >= 3);
  const files = examples.map(([, example = ""], index) => {
    writeFileSync(`${place}/example-${index}.mts`, example);
    return `${place}/example-${index}.mts`;
  });
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const language = ["--target", "es2022", "--lib", "es2022,esnext.disposable", "--types", "node", "--strict"];
  const how = ["--noEmit", "--module", "nodenext", ...language];
  try {
    execFileSync(process.execPath, [compiler, ...how, ...files], { cwd: root, stdio: "inherit" });
  } finally {
    rmSync(place, { recursive: true });
  }
});

test("the example of the README works", { skip, timeout: 120_000 }, async () => {
  assert.ok(hasDaemon, "DAYFLY_REQUIRE_VM=1 and DAYFLY_API_URL is not set");
  const [, example] = /```ts\n([^]*?)```/.exec(readFileSync(`${root}README.md`, "utf8")) ?? [];
  assert.ok(example !== undefined);
  // Beside the tests, where the package finds itself by its name.
  const source = `${root}dist/tests/readme-example.mts`;
  const built = source.replace(/mts$/, "mjs");
  try {
    writeFileSync(source, example);
    const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
    const language = ["--target", "es2022", "--lib", "es2022,esnext.disposable"];
    const how = ["--module", "nodenext", ...language, "--types", "node", "--strict"];
    await promisify(execFile)(process.execPath, [compiler, ...how, source], { cwd: root });
    const { stdout } = await promisify(execFile)(process.execPath, [built], { cwd: root });
    assert.equal(stdout, "hello from Linux\n 0\n2 notes.txt\n\ntrue\n");
  } finally {
    rmSync(source, { force: true });
    rmSync(built, { force: true });
  }
});
