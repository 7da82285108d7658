// What the tools are: one file for all clients, and what this package makes of it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type AnthropicTool, InvalidSettings, Sandbox, type Tools } from "dayfly";
import { FakeDaemon } from "./fake-daemon.js";

interface Definition {
  name: string;
  description: string;
  input: { properties: Record<string, Record<string, unknown>> };
}

const shared = new URL("../../../tools/tools.json", import.meta.url);
const { tools: definitions } = JSON.parse(readFileSync(shared, "utf8")) as { tools: Definition[] };
const WORDS = [
  ...["type", "properties", "required", "additionalProperties", "description", "default", "enum", "minimum"],
  ...["maximum", "exclusiveMinimum", "minLength", "items", "minItems", "maxItems"],
];

async function tools(...names: Parameters<Sandbox["tools"]>): Promise<Tools> {
  return (await Sandbox.create((await FakeDaemon.start()).options)).tools(...names);
}

test("the tools are those of the shared file, in every shape", async () => {
  const all = await tools();
  assert.deepEqual(all.names, definitions.map(({ name }) => name));
  const shapes = [all.anthropic(), all.openai().map((one) => one.function), all.openaiResponses(), all.mcp()];
  for (const shape of shapes) {
    assert.deepEqual(shape.map((one) => (one as { description: string }).description), definitions.map((one) => one.description));
  }
  const schemas = definitions.map(({ input }) => input);
  assert.deepEqual(all.anthropic().map((one) => "input_schema" in one && one.input_schema), schemas);
  assert.deepEqual(all.openai().map((one) => one.function.parameters), schemas);
  assert.deepEqual(all.openaiResponses().map(({ type, parameters, strict }) => [type, parameters, strict]), schemas.map((one) => ["function", one, false]));
  assert.deepEqual(all.mcp().map(({ inputSchema }) => inputSchema), schemas);
});

test("hints of MCP say what a tool does", async () => {
  const [read] = (await tools("read_file")).mcp();
  assert.deepEqual(read?.annotations, {
    title: "Read a text file",
    ...{ readOnlyHint: true, destructiveHint: false, idempotentHint: true },
  });
});

test("a shape is the caller's own", async () => {
  const all = await tools("run_code");
  const [first] = all.anthropic() as Extract<AnthropicTool, { input_schema: unknown }>[];
  assert.ok(first !== undefined);
  first.input_schema.required.push("more");
  assert.deepEqual((all.anthropic()[0] as typeof first).input_schema.required, ["code"]);
});

test("the schemas use only words that arguments are held to", () => {
  const look = (schema: Record<string, unknown>): void => {
    for (const [word, value] of Object.entries(schema)) {
      assert.ok(WORDS.includes(word), word);
      if (word === "properties") Object.values(value as Record<string, Record<string, unknown>>).forEach(look);
      if (word === "items") look(value as Record<string, unknown>);
    }
  };
  for (const { input } of definitions) look(input);
});

test("every tool is a function of its name", async () => {
  const all = (await tools()) as unknown as Record<string, unknown>;
  for (const { name } of definitions) {
    const method = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    assert.equal(typeof all[method], "function", method);
  }
});

test("Anthropic's own types are for Anthropic alone", async () => {
  const native = await tools("bash", "text_editor");
  assert.deepEqual(native.names, ["bash", "str_replace_based_edit_tool"]);
  assert.deepEqual(native.anthropic(), [
    { type: "bash_20250124", name: "bash" },
    { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
  ]);
  const shapes = [() => native.openai(), () => native.openaiResponses(), () => native.mcp(), () => native.aiSdk()];
  for (const shape of shapes) {
    assert.throws(shape, /only Anthropic's models have these tools: bash, text_editor/);
  }
});

test("a name that is none is refused, and one that is there twice is there once", async () => {
  await assert.rejects(tools("run" as "run_code"), (error: unknown) => {
    return error instanceof InvalidSettings && error.message.startsWith('there is no tool "run"; there are: run_code');
  });
  await assert.rejects(tools("constructor" as "run_code"), InvalidSettings);
  assert.deepEqual((await tools("fork", "fork")).names, ["fork"]);
});

test("tools for the AI SDK have a schema, do what they say, and fail in words", async () => {
  const daemon = await FakeDaemon.start();
  const { run_shell } = (await Sandbox.create(daemon.options)).tools("run_shell").aiSdk();
  assert.ok(run_shell !== undefined);
  const standard = run_shell.inputSchema["~standard"];
  assert.deepEqual(standard.jsonSchema.input(), definitions.find(({ name }) => name === "run_shell")?.input);
  assert.deepEqual(standard.validate({ a: 1 }), { value: { a: 1 } });
  const output = await run_shell.execute({ command: "ls" }, {});
  assert.deepEqual(run_shell.toModelOutput({ output }), { type: "text", value: "exit code 0, 0.1 s\nstdout:\nhi" });
  const wrong = run_shell.toModelOutput({ output: await run_shell.execute({ cmd: "ls" }) });
  assert.equal(wrong.type, "error-text");
  const image = { text: "ok", isError: false, images: [{ mediaType: "image/png", data: "aGk=" }], structured: undefined };
  assert.deepEqual(run_shell.toModelOutput({ output: image }), {
    type: "content",
    value: [{ type: "text", text: "ok" }, { type: "image-data", mediaType: "image/png", data: "aGk=" }],
  });
});
