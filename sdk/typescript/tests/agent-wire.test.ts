// Agents with the published packages of providers, against a model that follows a script.
//
// tests/model speaks the wire formats and judges every request. The packages are installed elsewhere, and
// the tests are skipped where they are not:
//
//     npm install --prefix models @anthropic-ai/sdk openai ai
//     DAYFLY_MODEL_PACKAGES=models node --test dist/tests/agent-wire.test.js

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NotFound, Sandbox } from "dayfly";
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type AgentResult,
  AnthropicModel,
  type BeforeExecution,
  OpenAIChatModel,
  OpenAIResponsesModel,
  Transcript,
} from "dayfly/agents";
import { type Form, heldRequest, ModelProcess, packageOf, packages, type Scenario, scenarios, StageDaemon } from "./agent-stage.js";
import { CREATE, ONE } from "./fake-daemon.js";

const isRequired = process.env["DAYFLY_REQUIRE_MODEL_PACKAGES"] === "1";
// Calls are carried out where there is a daemon, and somebody wants that: it takes long.
const isReal = process.env["DAYFLY_AGENTS_LIVE"] === "1" && (process.env["DAYFLY_API_URL"] ?? "") !== "";
const [anthropic, openai] = [await packageOf("@anthropic-ai/sdk"), await packageOf("openai")];
const isMissing = anthropic === undefined || openai === undefined;
const skip = isMissing && !isRequired && "needs the real packages: npm install --prefix DIR @anthropic-ai/sdk openai ai";

type AnyClient = new (options: object) => never;

/** One scenario with one format. */
class Show {
  calls = 0;
  readonly ids = new Set<string>();
  readonly #stop = new AbortController();
  readonly #scenario: Scenario;
  readonly #form: Form;
  readonly #isStreamed: boolean;
  readonly #model: ModelProcess;
  readonly #stage: StageDaemon | undefined;
  #requests = 0;
  agent: Agent;

  constructor(scenario: Scenario, form: Form, isStreamed: boolean, model: ModelProcess, stage: StageDaemon | undefined) {
    this.#scenario = scenario;
    this.#form = form;
    this.#isStreamed = isStreamed;
    this.#model = model;
    this.#stage = stage;
    this.agent = new Agent(this.#modelOf(), this.#options());
  }

  #modelOf(): AnthropicModel | OpenAIChatModel | OpenAIResponsesModel {
    const how = { apiKey: "key", maxRetries: this.#scenario.run.max_retries ?? 2, timeout: 20_000 };
    const stream = { stream: this.#isStreamed };
    if (this.#form === "anthropic") {
      const client = new (anthropic?.["default"] as AnyClient)({ ...how, baseURL: this.#model.address });
      return new AnthropicModel(client, "script-1", stream);
    }
    const client = new (openai?.["default"] as AnyClient)({ ...how, baseURL: `${this.#model.address}/v1` });
    return this.#form === "chat" ? new OpenAIChatModel(client, "script-1", stream) : new OpenAIResponsesModel(client, "script-1", stream);
  }

  #options(): AgentOptions {
    const { run } = this.#scenario;
    const { cost_of_token = 0, ...budget } = run.budget ?? {};
    return {
      ...this.#stage?.daemon.options,
      budget: { ...budget, costOf: (usage) => (usage.inputTokens + usage.outputTokens) * cost_of_token },
      beforeExecution: this.#look,
      scope: run.tasks.length > 1 ? "session" : "task",
      ...{ checkpoint: run.checkpoint, undoTool: run.undo_tool, keepCheckpoints: run.checkpoint !== undefined },
      ...{ ttlSeconds: 300, stepTimeoutSeconds: run.step_timeout_seconds },
      tools: run.native_tools === true ? ["bash", "text_editor"] : undefined,
    };
  }

  /** The hook: what happens before a call, and whether it is refused. */
  readonly #look: BeforeExecution = async (call) => {
    this.calls += 1;
    const act = this.#act();
    const sandbox = isReal && act !== undefined ? await Sandbox.connect(this.agent.sandboxId ?? "") : undefined;
    if (act === "delete_sandbox") await (sandbox?.delete() ?? this.#stage?.lose());
    if (act === "hibernate") await sandbox?.hibernate();
    const { refuse } = this.#scenario.run;
    const isRefused = refuse !== undefined && JSON.stringify(call.arguments).includes(refuse.arguments_contain);
    return isRefused ? { reason: refuse.why } : undefined;
  };

  #act(): string | undefined {
    return this.#scenario.run.acts?.find((one) => one.before_call === this.calls)?.do;
  }

  /** Cancels where the scenario says so. */
  readonly #tell = async (event: AgentEvent): Promise<void> => {
    if (this.agent.sandboxId !== undefined) this.ids.add(this.agent.sandboxId);
    const isHeld = this.#requests === heldRequest(this.#scenario);
    if (event.kind === "turn_began") {
      this.#requests += 1;
      const isNext = this.#requests === heldRequest(this.#scenario);
      if (isNext && !this.#isStreamed) void this.#cancelWhenAsked(this.#requests);
    } else if ((event.kind === "text_delta" && isHeld) || (event.kind === "call_began" && this.#act() === "cancel")) {
      setTimeout(() => this.#stop.abort(new Error("enough")), 50);
    }
  };

  async #cancelWhenAsked(requests: number): Promise<void> {
    for (const start = Date.now(); Date.now() - start < 20_000; ) {
      if ((await this.#model.log()).requests.length >= requests) break;
    }
    this.#stop.abort(new Error("enough"));
  }

  /** The tasks of the scenario, one after the other, in one conversation; nothing, if it was cancelled. */
  async play(): Promise<AgentResult | undefined> {
    await using agent = this.agent;
    let [transcript, result]: [Transcript | undefined, AgentResult | undefined] = [undefined, undefined];
    for (const [index, task] of this.#scenario.run.tasks.entries()) {
      for (const act of this.#scenario.run.acts?.filter((one) => one.before_task === index + 1) ?? []) {
        if (act.do === "undo") assert.equal(await agent.undo(act.steps), act.steps);
        transcript = act.do === "undo" ? agent.transcript : await stored(agent.transcript);
      }
      try {
        result = await agent.run(task, { transcript, onEvent: this.#tell, signal: this.#stop.signal });
      } catch (error) {
        assert.ok(this.#stop.signal.aborted, String(error));
        return undefined;
      }
      transcript = agent.transcript;
    }
    return result;
  }
}

async function stored(transcript: Transcript): Promise<Transcript> {
  const place = mkdtempSync(join(tmpdir(), "dayfly-stored-"));
  try {
    await transcript.save(join(place, "t.json"));
    return await Transcript.load(join(place, "t.json"));
  } finally {
    rmSync(place, { recursive: true });
  }
}

function checkEnd(show: Show, { outcome }: Scenario, end: AgentResult | undefined): void {
  if (end === undefined) {
    assert.deepEqual([outcome.stop, show.agent.transcript.stop], ["cancelled", "cancelled"]);
    return;
  }
  assert.equal(end.reason, outcome.stop, String(end.error));
  assert.equal(end.text, outcome.text?.equals ?? end.text);
  assert.ok(end.text.includes(outcome.text?.contains ?? ""));
  if (outcome.calls !== undefined) assert.equal(show.calls, outcome.calls);
}

async function checkLog(model: ModelProcess, { outcome }: Scenario): Promise<void> {
  const { violations, requests, finished } = await model.log();
  assert.deepEqual(violations, []);
  assert.ok(requests.length <= (outcome.requests_max ?? Infinity), `${requests.length} requests`);
  assert.ok(finished || outcome.stop === "cancelled", "not every turn was played");
}

async function checkNothingIsLeft(ids: Iterable<string>, stage: StageDaemon | undefined): Promise<void> {
  if (stage === undefined) {
    for (const id of ids) await assert.rejects(Sandbox.connect(id), NotFound);
    return;
  }
  const { daemon } = stage;
  assert.equal(daemon.seen("DELETE", ONE).length, daemon.seen("POST", CREATE).length);
}

async function perform(scenario: Scenario, form: Form, isStreamed: boolean): Promise<void> {
  const model = await ModelProcess.start(scenario.path);
  const stage = isReal ? undefined : await StageDaemon.start(scenario);
  try {
    const show = new Show(scenario, form, isStreamed, model, stage);
    if (scenario.run.candidates === undefined) checkEnd(show, scenario, await show.play());
    else await search(show, scenario);
    await checkLog(model, scenario);
    await checkNothingIsLeft(show.ids, stage);
  } finally {
    model.stop();
  }
}

async function search({ agent, ids }: Show, { run }: Scenario): Promise<void> {
  const score = ({ text, sandboxId }: AgentResult): boolean => {
    ids.add(sandboxId);
    return text === "I wrote 42.";
  };
  const found = await agent.bestOf(run.candidates ?? 1, run.tasks[0] ?? "", { score });
  await found.winner?.delete();
  assert.equal(found.best?.result?.text, "I wrote 42.");
  assert.deepEqual(found.trials.map((trial) => trial.score).sort(), [0, 0, 1]);
}

// A killed client cannot say how it ended: live-agents.test.ts has that.
for (const scenario of scenarios().filter(({ name }) => name !== "client_killed")) {
  for (const form of scenario.formats ?? (["anthropic", "chat", "responses"] as const)) {
    // In real sandboxes once is enough: what differs is between the model and the loop.
    const ways = isReal ? [true] : [false, true];
    for (const isStreamed of scenario.run.stream === undefined ? ways : [scenario.run.stream]) {
      const name = `${scenario.name}, ${form}, ${isStreamed ? "streamed" : "whole"}`;
      test(name, { skip, timeout: isReal ? 300_000 : 60_000 }, () => perform(scenario, form, isStreamed));
    }
  }
}

const PROGRAM = `
import Anthropic from "@anthropic-ai/sdk";
import { generateText } from "ai";
import OpenAI from "openai";
import { Sandbox } from "dayfly";
import { Agent, AnthropicModel, OpenAIChatModel, OpenAIResponsesModel } from "dayfly/agents";

await using sandbox = await Sandbox.create();
const tools = sandbox.tools();
const anthropic = new Anthropic();
const openai = new OpenAI();
const models = [new AnthropicModel(anthropic, "m"), new OpenAIChatModel(openai, "m"), new OpenAIResponsesModel(openai, "m")];
for (const model of models) await new Agent(model, { sandbox }).run("x");
const native = sandbox.tools("bash", "text_editor").anthropic();
await anthropic.messages.create({ model: "m", max_tokens: 1, messages: [], tools: [...tools.anthropic(), ...native] });
await openai.chat.completions.create({ model: "m", messages: [], tools: tools.openai() });
await openai.responses.create({ model: "m", input: "x", tools: tools.openaiResponses() });
await generateText({ model: "m", prompt: "x", tools: tools.aiSdk() });
`;

test("what is handed to the packages has the types that they want", { skip, timeout: 120_000 }, () => {
  const place = join(tmpdir(), `dayfly-types-${process.pid}`);
  mkdirSync(join(place, "node_modules"), { recursive: true });
  try {
    for (const name of ["@anthropic-ai", "openai", "ai"]) {
      symlinkSync(join(packages, "node_modules", name), join(place, "node_modules", name));
    }
    symlinkSync(fileURLToPath(new URL("../../", import.meta.url)), join(place, "node_modules", "dayfly"));
    writeFileSync(join(place, "program.mts"), PROGRAM);
    const compilerOptions = {
      ...{ noEmit: true, strict: true, target: "es2022", module: "nodenext", skipLibCheck: true, types: [] },
      lib: ["es2022", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"],
    };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.mts"] }));
    const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
    execFileSync(process.execPath, [compiler, "-p", place], { stdio: "inherit" });
  } finally {
    rmSync(place, { recursive: true });
  }
});
