// Conversations that are stored, resumed and replayed.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Message, Transcript, TranscriptRefused } from "dayfly/agents";
import { calling, DONE, kinds, Script, shell, world } from "./agent-world.js";
import { ONE } from "./fake-daemon.js";

const shared = fileURLToPath(new URL("../../../tools/transcript.json", import.meta.url));
const WHOLE = JSON.parse(readFileSync(shared, "utf8")) as Record<string, unknown>;
const place = mkdtempSync(join(tmpdir(), "dayfly-transcript-"));
after(() => rmSync(place, { recursive: true }));

test("what Python wrote is read, and written as Python writes it", async () => {
  const transcript = await Transcript.load(shared);
  assert.deepEqual(JSON.parse(JSON.stringify(transcript)), WHOLE);
  assert.equal(transcript.stop, "output_limit");
  assert.deepEqual(kinds(transcript.messages), ["user", "turn", "results", "user", "turn", "results", "turn", "turn"]);
  const first = transcript.turns()[0];
  assert.deepEqual(first?.calls.map((call) => call.arguments), [{ command: "ls -l", timeout_seconds: 5 }, {}]);
  assert.deepEqual(first?.usage, { inputTokens: 120, outputTokens: 48 });
});

test("what Python wrote is resumed", async () => {
  const { daemon, make } = await world();
  const stored = await Transcript.load(shared);
  const model = new Script(DONE);
  const result = await make(model).run("go on", { transcript: stored });
  assert.ok(result.ok);
  // Its last call had no result, and what became of it is not known.
  const [results, text] = model.seen[0]?.slice(-2) ?? [];
  assert.ok(results?.kind === "results" && results.results[0]?.text.includes("not known"));
  assert.deepEqual(text, { kind: "user", text: "go on" });
  assert.equal(daemon.seen("POST", `${ONE}/exec`).length, 0);
});

test("what is saved is loaded, and leaves nothing beside it", async () => {
  const path = join(place, "t.json");
  const transcript = Transcript.fromJSON(WHOLE);
  await transcript.save(path);
  assert.deepEqual(await Transcript.load(path), transcript);
  assert.deepEqual(readdirSync(place), ["t.json"]);
  await assert.rejects(transcript.save(place));
  assert.deepEqual(readdirSync(place), ["t.json"], "nothing is left of what could not be saved");
});

test("what is saved is for its owner alone, and follows no link that somebody put there", async () => {
  const [theirs, path] = [join(place, "theirs"), join(place, "link.json")];
  writeFileSync(theirs, "mine", { mode: 0o666 });
  symlinkSync(theirs, path);
  symlinkSync(theirs, join(place, ".link.json.part"));
  await Transcript.fromJSON(WHOLE).save(path);
  assert.equal(readFileSync(theirs, "utf8"), "mine");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  for (const name of [theirs, path, join(place, ".link.json.part")]) rmSync(name);
});

const changed = (more: object): unknown => ({ ...WHOLE, ...more });
const withMessage = (message: unknown): unknown => changed({ messages: [message] });
const withRaw = (provider: string, raw: unknown): unknown => {
  return withMessage({ kind: "turn", calls: [], usage: {}, provider, raw });
};
const UNKNOWN: unknown[] = [
  ...[{}, null, 5, "x", []],
  changed({ version: 2 }),
  changed({ format: "other" }),
  changed({ extra: 1 }),
  changed({ stop: 1 }),
  changed({ messages: {} }),
  withMessage(1),
  withMessage({ kind: "system", text: "x" }),
  withMessage({ kind: "user" }),
  withMessage({ kind: "user", text: "x", role: "system" }),
  withMessage({ kind: "results", results: [{ call_id: "c" }] }),
  withMessage({ kind: "results", results: [{ call_id: "c", name: "n", text: "t", images: [{ media_type: "x" }] }] }),
  withMessage({ kind: "turn", calls: [], usage: { cached: 1 } }),
  withMessage({ kind: "turn", calls: [], usage: {}, thinking: "x" }),
  withMessage({ kind: "turn", usage: {} }),
  withMessage({ kind: "turn", calls: [] }),
  withMessage({ kind: "turn", calls: [{ id: "c", name: "n", arguments: [] }], usage: {} }),
  withMessage({ kind: "turn", calls: [], usage: { input_tokens: "1" } }),
  withMessage({ kind: "turn", calls: [], usage: {}, is_cut: 1 }),
  withMessage({ kind: "turn", calls: [], usage: {}, is_refused: null }),
  withMessage({ kind: "turn", calls: [], usage: {}, text: null }),
  withMessage({ kind: "turn", calls: [], usage: {}, provider: 1 }),
  withMessage({ kind: "turn", calls: [], usage: null }),
  withMessage({ kind: "turn", calls: [null], usage: {} }),
  withMessage({ kind: "turn", calls: [{ id: 1, name: "n", arguments: {} }], usage: {} }),
  withMessage({ kind: "turn", calls: [{ id: "c", name: "n", arguments: null }], usage: {} }),
  ...[-1, 1.5, null, Infinity, 2 ** 53].map((count) => {
    return withMessage({ kind: "turn", calls: [], usage: { output_tokens: count } });
  }),
  withMessage({ kind: "results", results: [{ call_id: "c", name: "n", text: "t", is_error: 0 }] }),
  withMessage({ kind: "results", results: [{ call_id: "c", name: "n", text: "t", images: null }] }),
  ...[null, {}, [1], [{}], [{ type: "text" }], [{ type: "image", source: {} }]].map((raw) => withRaw("anthropic", raw)),
  withRaw("anthropic", [{ type: "tool_use", id: "c", name: "n" }]),
  withRaw("openai-responses", null),
  withRaw("openai-responses", [{ role: "system", content: "x" }]),
  withRaw("openai-responses", [{ type: "function_call", call_id: "c" }]),
  withRaw("openai-responses", [{ type: "message" }]),
  withRaw("openai-responses", [{ role: "assistant", content: "", name: "x" }]),
  withRaw("openai-responses", [{ type: "reasoning", summary: "x" }]),
  withRaw("openai-chat", []),
  withRaw("anthropic", [{ type: "text", text: "other than the turn" }]),
  withRaw("anthropic", [{ type: "tool_use", id: "c", name: "n", input: {} }]),
  withRaw("anthropic", [{ type: "text", text: "", cache_control: {} }]),
  withRaw("anthropic", [{ type: "thinking", thinking: 1 }]),
  withMessage({ kind: "turn", calls: [{ id: "c", name: "n" }], usage: {} }),
  ...[["image/png", "aGk="], ["image/svg+xml", "PHN2Zy8+"], ["image/png", "iVBORw0KGgo"]].map(([media_type, data]) => {
    return withMessage({ kind: "results", results: [{ call_id: "c", name: "n", text: "t", images: [{ media_type, data }] }] });
  }),
];

test("what is not known is refused", () => {
  for (const data of UNKNOWN) {
    assert.throws(() => Transcript.fromJSON(data), TranscriptRefused, JSON.stringify(data));
  }
  const known = [
    withMessage({ kind: "turn", calls: [], usage: {} }),
    withRaw("anthropic", [{ type: "redacted_thinking", data: "x" }, { type: "thinking", thinking: "", signature: "s", more: 1 }]),
    withRaw("openai-responses", [{ type: "reasoning", id: "r", summary: [], encrypted_content: "x", status: "completed" }]),
    withRaw("mine", { whatever: 1 }),
  ];
  for (const data of known) assert.deepEqual(kinds(Transcript.fromJSON(data).messages), ["turn"]);
});

test("a file that is none is refused", async () => {
  for (const text of ["", "[]", "{"]) {
    writeFileSync(join(place, "wrong.json"), text);
    await assert.rejects(Transcript.load(join(place, "wrong.json")), TranscriptRefused);
  }
  rmSync(join(place, "wrong.json"));
});

test("a run is resumed", async () => {
  const { make } = await world();
  const first = await make(new Script(calling(shell()), new Error("503"))).run("do it");
  assert.equal(first.reason, "model_error");
  const stored = Transcript.fromJSON(JSON.parse(JSON.stringify(first.transcript)));
  const model = new Script(DONE);
  assert.ok((await make(model).run(undefined, { transcript: stored })).ok);
  assert.deepEqual(kinds(model.seen[0] ?? []), ["user", "turn", "results"]);
  assert.deepEqual(kinds(stored.messages), ["user", "turn", "results"], "as it was");
});

test("a call without a result is closed, and not carried out", async () => {
  const { daemon, make } = await world();
  const turn = { kind: "turn", ...calling(shell()), usage: { inputTokens: 1, outputTokens: 1 }, isCut: false } as Message;
  const broken = new Transcript([{ kind: "user", text: "do it" }, turn]);
  const model = new Script(DONE);
  await make(model).run("go on", { transcript: broken });
  const [results, text] = model.seen[0]?.slice(-2) ?? [];
  assert.ok(results?.kind === "results" && results.results[0]?.text.includes("not known"));
  assert.deepEqual(text, { kind: "user", text: "go on" });
  assert.equal(daemon.seen("POST", `${ONE}/exec`).length, 0, "it may have been carried out before");
});

test("a run is replayed", async () => {
  const { daemon, make } = await world();
  const first = await make(new Script(calling(shell("make")), DONE)).run("do it");
  const again = await make(first.transcript.replay()).run("do it");
  assert.deepEqual(again.transcript.messages, first.transcript.messages);
  assert.deepEqual(daemon.seen("POST", `${ONE}/exec`).map(({ json }) => json["cmd"]), ["make", "make"]);
  const short = new Transcript(first.transcript.messages.slice(0, 2));
  assert.equal((await make(short.replay()).run("do it")).reason, "model_error");
});
