// What is sent to providers and made of what they say, with clients that are stand-ins.
// The packages themselves, against a server that speaks their formats, are in agent-wire.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, AnthropicModel, type Message, OpenAIChatModel, OpenAIResponsesModel, Transcript } from "dayfly/agents";
import { DONE, Script, shell, world } from "./agent-world.js";

type Body = Record<string, unknown> & { messages: Record<string, unknown>[]; input: Record<string, unknown>[] };

/** A client of either provider, which gives one reply after the other. */
function clientOf(...replies: unknown[]) {
  const bodies: Body[] = [];
  const options: { signal?: AbortSignal }[] = [];
  const create = (body: Body, given: { signal?: AbortSignal }): Promise<unknown> => {
    bodies.push(structuredClone(body));
    options.push(given);
    const reply = replies.shift();
    return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply);
  };
  return { bodies, options, messages: { create }, chat: { completions: { create } }, responses: { create } };
}

async function* streamOf(...events: object[]): AsyncGenerator<object> {
  yield* events;
}

const TALK: Message[] = [
  { kind: "user", text: "do it" },
  {
    ...{ kind: "turn", text: "look", usage: { inputTokens: 1, outputTokens: 1 }, isCut: false, isRefused: false },
    calls: [{ ...shell("é"), id: "c1" }, { id: "c2", name: "x", arguments: "{" }],
    ...{ provider: "", raw: null },
  },
  {
    kind: "results",
    results: [
      { callId: "c1", name: "run_shell", text: "ok\nstdout:\n1", isError: false, images: [{ mediaType: "image/png", data: "aGk=" }] },
      { callId: "c2", name: "x", text: "error: no", isError: true, images: [] },
    ],
  },
  { kind: "user", text: "[undone]" },
];

/** What a model is sent when a conversation goes on. */
async function sent(model: (client: ReturnType<typeof clientOf>) => ConstructorParameters<typeof Agent>[0]): Promise<Body> {
  const { daemon } = await world();
  const client = clientOf(new Error("enough"));
  const agent = new Agent(model(client), { ...daemon.options, system: "be good", tools: ["run_code"] });
  await agent.run("go on", { transcript: new Transcript(TALK) });
  return client.bodies[0] as Body;
}

test("Anthropic's messages: roles alternate, results come first", async () => {
  const body = await sent((client) => new AnthropicModel(client, "m", { options: { temperature: 0 } }));
  assert.deepEqual([body["model"], body["max_tokens"], body["system"], body["temperature"]], ["m", 8192, "be good", 0]);
  const contents = body.messages.map(({ content }) => content as Record<string, unknown>[]);
  const types = contents.map((content) => content.map(({ type }) => type));
  assert.deepEqual(types, [["text"], ["text", "tool_use", "tool_use"], ["tool_result", "tool_result", "text", "text"]]);
  assert.deepEqual(contents[1]?.[2]?.["input"], {});
  assert.deepEqual(contents[2]?.slice(0, 2).map((block) => block["is_error"]), [false, true]);
  const source = { type: "base64", media_type: "image/png", data: "aGk=" };
  assert.deepEqual(contents[2]?.[0]?.["content"], [{ type: "text", text: "ok\nstdout:\n1" }, { type: "image", source }]);
});

test("messages of Chat Completions: one side speaks once", async () => {
  const body = await sent((client) => new OpenAIChatModel(client, "m", { maxTokens: 9 }));
  assert.equal(body["max_completion_tokens"], 9);
  assert.deepEqual(body.messages.map(({ role }) => role), ["system", "user", "assistant", "tool", "tool", "user"]);
  const calls = body.messages[2]?.["tool_calls"] as { function: { arguments: string } }[];
  assert.deepEqual(calls.map((call) => call.function.arguments), ['{"command":"é"}', "{"]);
  assert.equal(body.messages[3]?.["content"], "ok\ncut: 1 images cannot be shown here\nstdout:\n1");
  assert.equal(body.messages[5]?.["content"], "[undone]\n\ngo on");
});

test("items of the Responses API", async () => {
  const body = await sent((client) => new OpenAIResponsesModel(client, "m"));
  assert.equal(body["instructions"], "be good");
  const kinds = body.input.map(({ type, role }) => type ?? role);
  const calls = ["function_call", "function_call", "function_call_output", "function_call_output"];
  assert.deepEqual(kinds, ["user", "assistant", ...calls, "user"]);
  const [, image] = body.input[4]?.["output"] as { image_url?: string }[];
  assert.equal(image?.image_url, "data:image/png;base64,aGk=");
  assert.equal(body.input[5]?.["output"], "error: no");
});

const text = (said: string): object => ({ type: "text", text: said });
const reply = (...content: object[]): object => {
  return { content, stop_reason: "end_turn", usage: { input_tokens: 3, output_tokens: 4, cache_read_input_tokens: null } };
};
const USE = { type: "tool_use", id: "c1", name: "run_shell", input: { command: "ls" } };

test("thinking is given back as it came, and of other blocks what is needed", async () => {
  const { daemon } = await world();
  const thought = { type: "thinking", thinking: "hm", signature: "s" };
  const client = clientOf(reply({ ...thought, extra: null }, text(""), { ...USE, caller: "x" }), reply(text("done")));
  const result = await new Agent(new AnthropicModel(client, "m"), daemon.options).run("do it");
  assert.deepEqual([result.text, result.spent.inputTokens], ["done", 6]);
  assert.deepEqual(client.bodies[1]?.messages[1]?.["content"], [thought, USE]);
  assert.ok(client.options[0]?.signal instanceof AbortSignal);
});

test("a reply that is not understood is a failure of the model", async () => {
  const { daemon } = await world();
  const models = (client: ReturnType<typeof clientOf>) => {
    return [new AnthropicModel(client, "m"), new OpenAIChatModel(client, "m"), new OpenAIResponsesModel(client, "m")];
  };
  for (const model of [...models(clientOf({})), ...models(clientOf(reply({ type: "new_kind" }), { choices: [] }, { output: [{ type: "x" }] }))]) {
    const result = await new Agent(model, daemon.options).run("do it");
    assert.equal(result.reason, "model_error");
    assert.match(result.error?.message ?? "", /^the response is not understood: /);
  }
});

test("Anthropic's own tools need its model", async () => {
  const client = clientOf();
  const tools = ["bash"] as const;
  assert.throws(() => new Agent(new OpenAIChatModel(client, "m"), { tools }), /only Anthropic's/);
  assert.throws(() => new Agent(new OpenAIResponsesModel(client, "m"), { tools }), /only Anthropic's/);
  assert.ok(new Agent(new AnthropicModel(client, "m"), { tools }));
  assert.throws(() => new AnthropicModel(client, "m", { maxTokens: 1, temperature: 0 } as object), /no option temperature/);
});

const USAGE = { input_tokens: 3, output_tokens: 4 };
const STREAM = [
  { type: "message_start", message: { usage: { ...USAGE, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "don" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "e" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: USAGE },
];

test("a stream tells its text as it comes, and one that breaks off is a failure", async () => {
  const { daemon } = await world();
  const told: string[] = [];
  const client = clientOf(streamOf(...STREAM, { type: "message_stop" }), streamOf(...STREAM));
  const agent = new Agent(new AnthropicModel(client, "m", { stream: true }), daemon.options);
  const result = await agent.run("do it", { onEvent: (event) => void (event.kind === "text_delta" && told.push(event.text)) });
  assert.deepEqual([told, result.text, result.spent.outputTokens], [["don", "e"], "done", 4]);
  const broken = await agent.run("do it");
  assert.deepEqual([broken.reason, broken.error?.message], ["model_error", "the stream of the model broke off"]);
});

test("what a listener throws within a stream is the caller's, and ends the stream", async () => {
  const { daemon } = await world();
  let isEnded = false;
  async function* stream(): AsyncGenerator<object> {
    try {
      yield* STREAM;
    } finally {
      isEnded = true;
    }
  }
  const agent = new Agent(new AnthropicModel(clientOf(stream()), "m", { stream: true }), daemon.options);
  const onEvent = ({ kind }: { kind: string }): void => {
    if (kind === "text_delta") throw new RangeError("mine");
  };
  await assert.rejects(agent.run("do it", { onEvent }), /^RangeError: mine$/);
  assert.ok(isEnded);
  assert.ok(daemon.isDeleted);
});

test("listeners and hooks may be async", async () => {
  const { make } = await world();
  const told: string[] = [];
  const beforeExecution = async (): Promise<undefined> => undefined;
  const onEvent = async ({ kind }: { kind: string }): Promise<void> => {
    await Promise.resolve();
    told.push(kind);
  };
  await make(new Script({ calls: [shell()], usage: { inputTokens: 1 } }, DONE), { beforeExecution }).run("do it", { onEvent });
  assert.equal(told.length, 7);
});
