/** OpenAI's Chat Completions API, and servers that speak it, by the package `openai`. */

import { openaiTool } from "../tools/definition.js";
import { withWord } from "../tools/result.js";
import type { CallResult, Message, ToolCall, Turn, Usage } from "./conversation.js";
import { ModelFailed } from "./errors.js";
import { ClientModel, type ModelOptions, type ModelRequest, plainTools, readPieces, understood } from "./model.js";
import { argumentsOf, OPENAI_CHAT } from "./raw.js";

/** A client of the package `openai`, as far as it is used here. */
export interface OpenAIChatClient {
  chat: { completions: { create: (body: never, options: never) => unknown } };
}

/** A model by Chat Completions: `new OpenAIChatModel(new OpenAI(), "gpt-...")`. */
export class OpenAIChatModel extends ClientModel {
  readonly #client: OpenAIChatClient;

  constructor(client: OpenAIChatClient, name: string, options: ModelOptions = {}) {
    super(name, options);
    this.#client = client;
  }

  /** @internal */
  async turn(request: ModelRequest): Promise<Turn> {
    const tools = plainTools(request).map(openaiTool);
    const body = this.bodyOf({
      model: this.name,
      messages: chatMessages(request.system, request.messages),
      tools: tools.length === 0 ? undefined : tools,
      max_completion_tokens: this.maxTokens,
      ...(this.isStreamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    });
    const { completions } = this.#client.chat;
    const reply: unknown = await completions.create(body as never, { signal: request.signal } as never);
    if (!this.isStreamed) return understood(() => turnOfReply(reply as Reply));
    const collected = new Collected();
    await readPieces<Chunk>(reply, request, (chunk) => collected.take(chunk));
    return understood(() => collected.finish());
  }
}

type Item = Record<string, unknown>;

/** @internal */
export function chatMessages(system: string | undefined, messages: readonly Message[]): Item[] {
  const found: Item[] = system === undefined || system === "" ? [] : [{ role: "system", content: system }];
  for (const message of messages) {
    if (message.kind === "results") found.push(...message.results.map(toolMessage));
    else if (message.kind === "turn") found.push(...assistantMessage(message));
    else addUser(found, message.text);
  }
  return found;
}

/** What a user says twice in a row is one message. @internal */
export function addUser(found: Item[], text: string): void {
  const last = found.at(-1);
  if (text === "") return;
  if (last?.["role"] === "user") last["content"] = `${String(last["content"])}\n\n${text}`;
  else found.push({ role: "user", content: text });
}

function toolMessage({ callId, text, images }: CallResult): Item {
  // Messages of tools have no pictures in this API.
  const content = images.length === 0 ? text : withWord(text, `cut: ${images.length} images cannot be shown here`);
  return { role: "tool", tool_call_id: callId, content };
}

function assistantMessage({ text, calls }: Turn): Item[] {
  if (text === "" && calls.length === 0) return [];
  const message: Item = { role: "assistant", content: text === "" ? null : text };
  if (calls.length > 0) {
    message["tool_calls"] = calls.map((call) => {
      return { id: call.id, type: "function", function: { name: call.name, arguments: argumentsText(call) } };
    });
  }
  return [message];
}

/** @internal */
export function argumentsText({ arguments: given }: ToolCall): string {
  return typeof given === "string" ? given : JSON.stringify(given);
}

interface WireUsage {
  prompt_tokens: number;
  completion_tokens: number;
}

interface Reply {
  choices: {
    finish_reason: string | null;
    message: {
      content: string | null;
      refusal?: string | null;
      tool_calls?: { id: string; function: { name: string; arguments: string } }[] | null;
    };
  }[];
  usage?: WireUsage | null;
}

function turnOfReply({ choices, usage }: Reply): Turn {
  const [choice] = choices;
  if (choice === undefined) throw new TypeError("there is no choice in it");
  const { message, finish_reason } = choice;
  const refusal = message.refusal ?? "";
  return turnOf({
    text: (message.content ?? "") || refusal,
    calls: (message.tool_calls ?? []).map((one) => {
      return { id: one.id, name: one.function.name, arguments: argumentsOf(one.function.arguments) };
    }),
    usage: usageOf(usage),
    finish: finish_reason,
    isRefused: refusal !== "",
  });
}

interface Said {
  text: string;
  calls: ToolCall[];
  usage: Usage;
  finish: string | null;
  isRefused: boolean;
}

function turnOf({ text, calls, usage, finish, isRefused }: Said): Turn {
  const how = { isCut: finish === "length", isRefused: isRefused || finish === "content_filter" };
  return { kind: "turn", text, calls, usage, ...how, provider: OPENAI_CHAT, raw: null };
}

function usageOf(usage: WireUsage | null | undefined): Usage {
  return { inputTokens: usage?.prompt_tokens ?? 0, outputTokens: usage?.completion_tokens ?? 0 };
}

interface CallPart {
  index: number;
  id?: string | null;
  function?: { name?: string | null; arguments?: string | null } | null;
}

interface Chunk {
  choices: {
    delta: { content?: string | null; refusal?: string | null; tool_calls?: CallPart[] | null };
    finish_reason?: string | null;
  }[];
  usage?: WireUsage | null;
}

/** Puts a streamed turn together. */
class Collected {
  readonly #calls: { id: string; name: string; text: string }[] = [];
  #text = "";
  #usage = usageOf(undefined);
  #finish: string | null = null;
  #isRefused = false;

  /** Takes a piece of the stream, and gives the text in it. */
  take({ choices, usage }: Chunk): string {
    if ((usage ?? undefined) !== undefined) this.#usage = usageOf(usage);
    let text = "";
    for (const { delta, finish_reason } of choices) {
      const refusal = delta.refusal ?? "";
      this.#isRefused ||= refusal !== "";
      text += (delta.content ?? "") || refusal;
      for (const part of delta.tool_calls ?? []) this.#grow(part);
      this.#finish = finish_reason ?? this.#finish;
    }
    this.#text += text;
    return text;
  }

  #grow({ index, id, function: said }: CallPart): void {
    const call = (this.#calls[index] ??= { id: "", name: "", text: "" });
    call.id = (id ?? "") || call.id;
    call.name += said?.name ?? "";
    call.text += said?.arguments ?? "";
  }

  finish(): Turn {
    if (this.#finish === null) throw new ModelFailed("the stream of the model broke off");
    const begun = this.#calls.filter((call) => call !== undefined);
    const calls = begun.map(({ id, name, text }) => ({ id, name, arguments: argumentsOf(text) }));
    const said = { text: this.#text, calls, usage: this.#usage };
    return turnOf({ ...said, finish: this.#finish, isRefused: this.#isRefused });
  }
}
