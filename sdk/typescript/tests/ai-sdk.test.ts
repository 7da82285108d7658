// The tools in the AI SDK itself: with the model that it has for tests, and its agent and its provider with
// a model that follows a script, in a real sandbox. Skipped where it is not installed: see agent-wire.test.ts.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { NotFound, Sandbox } from "dayfly";
import { ModelProcess, packageOf } from "./agent-stage.js";
import { CODE, FakeDaemon, ONE } from "./fake-daemon.js";

type Wish = Record<string, unknown>;

interface Prompt {
  prompt: { role: string; content: { toolCallId: string; output: unknown }[] }[];
  tools: { name: string }[];
}

const [ai, mocks, openai] = [await packageOf("ai"), await packageOf("ai/test"), await packageOf("@ai-sdk/openai")];
const isRequired = process.env["DAYFLY_REQUIRE_MODEL_PACKAGES"] === "1";
const isMissing = [ai, mocks, openai].includes(undefined);
const skip = isMissing && !isRequired && "needs the real packages: npm install --prefix DIR ai @ai-sdk/openai";

const usage = { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };
const call = (toolCallId: string, input: string, toolName = "run_shell"): object => {
  return { type: "tool-call", toolCallId, toolName, input };
};
const said = (reason: string, ...content: object[]): object => {
  return { content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
};

test("generateText calls the tools, and the model reads what came of it", { skip }, async () => {
  const daemon = await FakeDaemon.start();
  const picture = Buffer.from("GIF89a").toString("base64");
  daemon.on("POST", `${ONE}/repl/sessions/default/run`, { ...CODE, results: [{ "image/gif": picture }] });
  const seen: Prompt[] = [];
  const replies = [
    said("tool-calls", call("c1", '{"command": "ls"}'), call("c2", '{"cmd": "ls"}'), call("c3", '{"code": "plot()"}', "run_code")),
    said("stop", { type: "text", text: "done" }),
  ];
  const doGenerate = (prompt: Prompt): Promise<unknown> => {
    seen.push(prompt);
    return Promise.resolve(replies.shift());
  };
  const newest = Object.keys(mocks ?? {}).filter((name) => name.startsWith("MockLanguageModel")).sort().at(-1) ?? "";
  const model = new (mocks?.[newest] as new (wish: Wish) => unknown)({ doGenerate });
  const generateText = ai?.["generateText"] as (wish: Wish) => Promise<{ text: string }>;
  const stopWhen = (ai?.["stepCountIs"] as (count: number) => unknown)(3);
  const tools = (await Sandbox.create(daemon.options)).tools().aiSdk();
  const { text } = await generateText({ model, prompt: "x", tools, stopWhen });
  assert.equal(text, "done");
  assert.deepEqual(seen[0]?.tools.map(({ name }) => name), Object.keys(tools));
  const outputs = seen[1]?.prompt.at(-1)?.content.map(({ output }) => output) as { type: string; value: string }[];
  assert.deepEqual(outputs[0], { type: "text", value: "exit code 0, 0.1 s\nstdout:\nhi" });
  assert.equal(outputs[1]?.type, "error-text");
  assert.match(outputs[1]?.value ?? "", /^error: there is no argument cmd;/);
  assert.equal(outputs[2]?.type, "content");
  assert.ok(JSON.stringify(outputs[2]).includes(picture));
});

const isWithoutDaemon = (process.env["DAYFLY_API_URL"] ?? "") === "" && process.env["DAYFLY_REQUIRE_VM"] !== "1";
const skipLive = skip || (isWithoutDaemon && "DAYFLY_API_URL is not set: there is no daemon to run this against");

const SCRIPT = {
  about: "the smallest agent of the AI SDK",
  formats: ["chat"],
  history: "free",
  turns: [
    { content: [{ tool: "write_file", arguments: { path: "numbers", content: "40\n2\n" } }] },
    { content: [{ tool: "run_code", arguments: { code: "total = sum(map(int, open('numbers')))\ntotal" } }] },
    { expect: { result: { contains: "42" } }, content: [{ tool: "run_shell", arguments: { command: "cat numbers; exit 3" } }] },
    { expect: { result: { exit_code: 3, contains: "40\n2" } }, content: ["It is 42."] },
  ],
};

// Chat Completions alone: to Responses its provider sends no `strict`, which the package of OpenAI has as
// required and the judge of tests/model wants.
test("an agent of the AI SDK works in a real sandbox", { skip: skipLive, timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "dayfly-ai-sdk-"));
  const path = join(folder, "script.json");
  writeFileSync(path, JSON.stringify(SCRIPT));
  const script = await ModelProcess.start(path);
  try {
    assert.equal(await answerOfAgent(script.address), "It is 42.");
    const { violations, finished } = await script.log();
    assert.deepEqual(violations, []);
    assert.ok(finished);
  } finally {
    script.stop();
    rmSync(folder, { recursive: true });
  }
});

/** What an agent says at its end that has a sandbox of its own, of which nothing is left then. */
async function answerOfAgent(address: string): Promise<string> {
  type Provider = Record<string, (model: string) => unknown>;
  type ToolLoopAgent = new (wish: Wish) => { generate(wish: Wish): Promise<{ text: string }> };
  const createOpenAI = openai?.["createOpenAI"] as (wish: Wish) => Provider;
  const model = createOpenAI({ apiKey: "key", baseURL: `${address}/v1` })["chat"]?.("script-1");
  const sandbox = await Sandbox.create({ template: "code-interpreter", ttlSeconds: 600 });
  try {
    const agent = new (ai?.["ToolLoopAgent"] as ToolLoopAgent)({ model, tools: sandbox.tools().aiSdk() });
    return (await agent.generate({ prompt: "Add the numbers." })).text;
  } finally {
    await sandbox.delete();
    await assert.rejects(Sandbox.connect(sandbox.id), NotFound);
  }
}
