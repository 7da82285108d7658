// The tools in the AI SDK itself, with the model that it has for tests. Skipped where it is not installed:
// see agent-wire.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox } from "dayfly";
import { packageOf } from "./agent-stage.js";
import { CODE, FakeDaemon, ONE } from "./fake-daemon.js";

type Wish = Record<string, unknown>;

interface Prompt {
  prompt: { role: string; content: { toolCallId: string; output: unknown }[] }[];
  tools: { name: string }[];
}

const [ai, mocks] = [await packageOf("ai"), await packageOf("ai/test")];
const isRequired = process.env["DAYFLY_REQUIRE_MODEL_PACKAGES"] === "1";
const skip = (ai === undefined || mocks === undefined) && !isRequired && "needs the real package: npm install --prefix DIR ai";

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
