// How results read to a model: the cases that all clients share, and what they do not have.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ExecResult, Execution, Sandbox } from "dayfly";
import { named } from "#internal/model-text";
import { FakeServer, SANDBOX, sendJson } from "./fake-server.js";

interface Case {
  name: string;
  max_bytes?: number;
  exec?: Record<string, unknown>;
  code?: Record<string, unknown> & { error?: { name: string; value: string } };
  text: string;
}

const shared = new URL("../../../tools/texts.json", import.meta.url);
const { cases, names, default_max_bytes } = JSON.parse(readFileSync(shared, "utf8")) as {
  cases: Case[];
  names: { name: string; shown: string }[];
  default_max_bytes: number;
};

function execOf(wire: Record<string, unknown>): ExecResult {
  return Reflect.construct(ExecResult, [{ truncated: false, exec_id: "e", ...wire }]) as ExecResult;
}

function codeOf({ error, ...wire }: NonNullable<Case["code"]>): Execution {
  const line = error === undefined ? null : error.value === "" ? error.name : `${error.name}: ${error.value}`;
  return Reflect.construct(Execution, [{ truncated: false, exit_code: 0, error: line, ...wire }]) as Execution;
}

for (const one of cases) {
  test(`text for a model: ${one.name}`, () => {
    const result = one.exec === undefined ? codeOf(one.code ?? {}) : execOf(one.exec);
    assert.equal(result.forModel(one.max_bytes === undefined ? {} : { maxBytes: one.max_bytes }), one.text);
  });
}

test("a name that a guest chose is one plain word, or quoted", () => {
  for (const { name, shown } of names) assert.equal(named(name), shown);
  // Not in the list: not every language has such texts.
  assert.equal(named("a\udc80"), '"a\ufffd"');
});

const PLAIN = { exit_code: 0, reason: "exited", duration_ms: 0, stderr: "" };

test("a model gets as much as every client gives", () => {
  const whole = execOf({ ...PLAIN, stdout: "x".repeat(default_max_bytes) }).forModel();
  assert.ok(whole.endsWith(`stdout:\n${"x".repeat(default_max_bytes)}`));
  const cut = execOf({ ...PLAIN, stdout: "é".repeat(default_max_bytes) }).forModel();
  assert.match(cut, /^exit code 0, 0\.0 s\ncut: 16000 bytes of stdout are left out\nstdout:\né+\n\[\.\.\. 16000 bytes/);
  assert.throws(() => execOf({ ...PLAIN, stdout: "" }).forModel({ maxBytes: 159 }), RangeError);
});

test("files that changed are named up to twenty", () => {
  const changed_files = Array.from({ length: 23 }, (_, index) => `f${index}`);
  assert.match(execOf({ ...PLAIN, stdout: "", changed_files }).forModel(), /, f19 and 3 more\n/);
});

test("a command that used up the memory says so, whatever the server says", async () => {
  const ended = { ...PLAIN, stdout: "", exit_code: 137, reason: "out_of_memory", exec_id: "e", truncated: false };
  const server = await FakeServer.start((request, response) => {
    return sendJson(response, 200, request.path.endsWith("/exec") ? ended : SANDBOX);
  });
  const sandbox = await Sandbox.create(server.options);
  assert.match((await sandbox.exec("x")).forModel(), /out of memory\nhint: the sandbox's memory was used up/);
});
