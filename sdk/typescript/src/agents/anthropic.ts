/** Anthropic's Messages API, by the client of the package `@anthropic-ai/sdk`. */

import { isPlain } from "../names.js";
import type { CallResult, Message, ToolCall, Turn, Usage } from "./conversation.js";
import { ModelFailed } from "./errors.js";
import {
  anthropicTools,
  ClientModel,
  type ModelOptions,
  type ModelRequest,
  readPieces,
  understood,
  withoutNulls,
} from "./model.js";
import { ANTHROPIC } from "./raw.js";

const MAX_TOKENS = 8192;
/** Blocks that must be given back as they came; of others only what is needed is kept. */
const KEPT_WHOLE = ["thinking", "redacted_thinking"];

/** A client of the package `@anthropic-ai/sdk`, as far as it is used here. */
export interface AnthropicClient {
  messages: { create: (body: never, options: never) => unknown };
}

/** A model of Anthropic's: `new AnthropicModel(new Anthropic(), "claude-...")`. */
export class AnthropicModel extends ClientModel {
  readonly #client: AnthropicClient;

  constructor(client: AnthropicClient, name: string, options: ModelOptions = {}) {
    super(name, options);
    this.#client = client;
  }

  /** It has all tools. @internal */
  override check(): void {}

  /** @internal */
  async turn(request: ModelRequest): Promise<Turn> {
    const tools = anthropicTools(request);
    const body = this.bodyOf({
      model: this.name,
      max_tokens: this.maxTokens ?? MAX_TOKENS,
      messages: anthropicMessages(request.messages),
      tools: tools.length === 0 ? undefined : tools,
      system: request.system,
      stream: this.isStreamed ? true : undefined,
    });
    const reply: unknown = await this.#client.messages.create(body as never, { signal: request.signal } as never);
    if (!this.isStreamed) return understood(() => turnOfReply(reply as Reply));
    const collected = new Collected();
    await readPieces<StreamEvent>(reply, request, (event) => collected.take(event));
    return understood(() => collected.finish());
  }
}

interface Block {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  input?: unknown;
  thinking?: string;
  signature?: string;
}

type Content = Record<string, unknown>;

/** The conversation as the API wants it: roles alternate, results come first. @internal */
export function anthropicMessages(messages: readonly Message[]): { role: string; content: Content[] }[] {
  const found: { role: string; content: Content[] }[] = [];
  for (const message of messages) {
    const role = message.kind === "turn" ? "assistant" : "user";
    const content = contentOf(message);
    const last = found.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role) last.content.push(...content);
    else found.push({ role, content });
  }
  return found;
}

function contentOf(message: Message): Content[] {
  if (message.kind === "results") return message.results.map(toolResult);
  if (message.kind === "turn" && message.provider === ANTHROPIC) return [...(message.raw as Content[])];
  const said = message.text === "" ? [] : [{ type: "text", text: message.text }];
  return message.kind === "user" ? said : [...said, ...message.calls.map(toolUse)];
}

function toolUse({ id, name, arguments: given }: ToolCall): Content {
  // Arguments that are no object cannot be given back; their result says what was wrong.
  return { type: "tool_use", id, name, input: typeof given === "string" ? {} : given };
}

function toolResult({ callId, text, isError, images }: CallResult): Content {
  const pictures = images.map(({ mediaType, data }) => {
    return { type: "image", source: { type: "base64", media_type: mediaType, data } };
  });
  return { type: "tool_result", tool_use_id: callId, content: [{ type: "text", text }, ...pictures], is_error: isError };
}

interface WireUsage {
  input_tokens: number;
  output_tokens: number;
  cache_read_input_tokens?: number | null;
  cache_creation_input_tokens?: number | null;
}

interface Reply {
  content: Block[];
  usage: WireUsage;
  stop_reason: string | null;
}

function turnOfReply({ content, usage, stop_reason }: Reply): Turn {
  return turnOfBlocks(content, { inputTokens: inputTokens(usage), outputTokens: usage.output_tokens }, stop_reason);
}

/** What was read from a cache, or written to it, was read all the same. */
function inputTokens(usage: WireUsage): number {
  return usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
}

function turnOfBlocks(blocks: readonly Block[], usage: Usage, stop: string | null): Turn {
  const raw = blocks.map(keptBlock).filter((block) => block !== undefined);
  return {
    kind: "turn",
    text: raw.map(({ type, text = "" }) => (type === "text" ? text : "")).join(""),
    calls: raw.filter(({ type }) => type === "tool_use").map(callOf),
    usage,
    isCut: stop === "max_tokens" || stop === "model_context_window_exceeded",
    isRefused: stop === "refusal",
    provider: ANTHROPIC,
    raw,
  };
}

function callOf({ id = "", name = "", input }: Block): ToolCall {
  return { id, name, arguments: input as ToolCall["arguments"] };
}

/** A block as it is given back; one without text would be refused. */
function keptBlock(block: Block): Block | undefined {
  const { type, text = "", id = "", name = "", input } = block;
  if (KEPT_WHOLE.includes(type)) return withoutNulls(block);
  if (type === "text") return text === "" ? undefined : { type, text };
  // What is no object could not be given back; the tool says what is missing.
  if (type === "tool_use") return { type, id, name, input: isPlain(input) ? input : {} };
  throw new TypeError(`a block of type ${JSON.stringify(type)}`);
}

interface StreamEvent {
  type: string;
  index: number;
  message: { usage: WireUsage };
  content_block: Block;
  delta: {
    type: string;
    text?: string;
    partial_json?: string;
    thinking?: string;
    signature?: string;
    stop_reason?: string | null;
  };
  usage: WireUsage;
}

/** Puts a streamed turn together. */
class Collected {
  readonly #blocks: Block[] = [];
  readonly #arguments = new Map<Block, string>();
  #inputTokens = 0;
  #outputTokens = 0;
  #stop: string | null = null;
  #isWhole = false;

  /** Takes an event of the stream, and gives the text in it. */
  take(event: StreamEvent): string {
    if (event.type === "message_start") this.#inputTokens = inputTokens(event.message.usage);
    else if (event.type === "content_block_start") this.#blocks[event.index] = withoutNulls(event.content_block);
    else if (event.type === "content_block_delta") return this.#grow(event.index, event.delta);
    else if (event.type === "message_delta") {
      this.#stop = event.delta.stop_reason ?? null;
      this.#outputTokens = event.usage.output_tokens;
    } else if (event.type === "message_stop") this.#isWhole = true;
    return "";
  }

  #grow(index: number, { type, text = "", partial_json = "", thinking = "", signature }: StreamEvent["delta"]): string {
    const block = this.#blocks[index];
    if (block === undefined) throw new ModelFailed("the stream has a piece of a block that was not begun");
    if (type === "text_delta") {
      block.text = (block.text ?? "") + text;
      return text;
    }
    if (type === "input_json_delta") this.#arguments.set(block, (this.#arguments.get(block) ?? "") + partial_json);
    else if (type === "thinking_delta") block.thinking = (block.thinking ?? "") + thinking;
    else if (type === "signature_delta" && signature !== undefined) block.signature = signature;
    return "";
  }

  finish(): Turn {
    if (!this.#isWhole) throw new ModelFailed("the stream of the model broke off");
    for (const [block, text] of this.#arguments) block.input = parsedInput(text);
    // Without what was never begun.
    const blocks = this.#blocks.filter((block) => block !== undefined);
    return turnOfBlocks(blocks, { inputTokens: this.#inputTokens, outputTokens: this.#outputTokens }, this.#stop);
  }
}

function parsedInput(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    // Of a turn that was cut within its arguments.
    return {};
  }
}
