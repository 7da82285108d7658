// The Dockerfile that a builder makes, by the cases that both SDKs and the parser share.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { InvalidSettings, Template } from "dayfly";
import { IgnoreRules } from "#internal/ignore-rules";
import { type BuilderCall, built } from "./template-calls.js";

interface Case {
  name: string;
  calls: BuilderCall[];
  dockerfile?: string[];
  refused?: string;
}

function shared(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../../templates/${name}.json`, import.meta.url), "utf8"));
}

const cases = shared("dockerfiles") as Case[];

for (const { name, calls, dockerfile, refused } of cases) {
  test(`a builder's text: ${name}`, async () => {
    if (refused === undefined) return assert.equal((await built(calls)).dockerfile, [...(dockerfile ?? []), ""].join("\n"));
    await assert.rejects(built(calls), (error: unknown) => {
      return error instanceof InvalidSettings && error.message.includes(refused);
    });
  });
}

test("each call gives a new builder", () => {
  const first = Template.fromTemplate("base");
  const [one, other] = [first.run("a"), first.run("b")];
  const texts = [first, one, other].map(({ dockerfile }) => dockerfile);
  assert.deepEqual(texts, ["FROM base\n", "FROM base\nRUN a\n", "FROM base\nRUN b\n"]);
});

test("a Dockerfile may be a path or an address", async () => {
  const place = mkdtempSync(join(tmpdir(), "dayfly-"));
  try {
    const path = join(place, "Dockerfile");
    writeFileSync(path, "FROM base\nRUN a");
    for (const given of [path, pathToFileURL(path)]) {
      assert.equal((await Template.fromDockerfile(given)).run("b").dockerfile, "FROM base\nRUN a\nRUN b\n");
    }
  } finally {
    rmSync(place, { recursive: true });
  }
  assert.equal((await Template.fromDockerfile("from base")).dockerfile, "from base");
  await assert.rejects(Template.fromDockerfile("nowhere/Dockerfile"), { code: "ENOENT" });
});

test("a value is not told in an error, and an option that nobody knows is refused", () => {
  const base = Template.fromTemplate("base");
  assert.throws(() => base.env({ KEY: "secret\n" }), (error: Error) => !error.message.includes("secret"));
  assert.throws(() => base.copy("a", "/b", { chown: "x" } as object), /Template\.copy has no option chown/);
  assert.throws(() => base.start("a", { redy: "x" } as object), /did you mean ready/);
  assert.throws(() => Template.fromImage("x", { contxt: "." } as object), /did you mean context/);
});

test("nothing is left out that the server would take", () => {
  let understood = 0;
  for (const [patterns, path, isHidden] of shared("ignored") as [string, string, boolean][]) {
    const hides = new IgnoreRules(patterns).hides(path);
    assert.ok(!hides || isHidden, `${patterns}: ${path}`);
    if (/\[|\\|\.\./.test(patterns)) continue;
    assert.equal(hides, isHidden, `${patterns}: ${path}`);
    understood += 1;
  }
  assert.ok(understood > 40);
});
