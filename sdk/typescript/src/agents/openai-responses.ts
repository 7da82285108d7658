/** OpenAI's Responses API, by the package `openai`. */

import { openaiResponsesTool } from "../tools/definition.js";
import type { CallResult, Message, ToolCall, Turn } from "./conversation.js";
import { ModelFailed } from "./errors.js";
import {
  ClientModel,
  type ModelOptions,
  type ModelRequest,
  plainTools,
  readPieces,
  understood,
  withoutNulls,
} from "./model.js";
import { addUser, argumentsText } from "./openai-chat.js";
import { argumentsOf, OPENAI_RESPONSES } from "./raw.js";

/** A client of the package `openai`, as far as it is used here. */
export interface OpenAIResponsesClient {
  responses: { create: (body: never, options: never) => unknown };
}

/** A model by the Responses API: `new OpenAIResponsesModel(new OpenAI(), "gpt-...")`. */
export class OpenAIResponsesModel extends ClientModel {
  readonly #client: OpenAIResponsesClient;

  constructor(client: OpenAIResponsesClient, name: string, options: ModelOptions = {}) {
    super(name, options);
    this.#client = client;
  }

  /** @internal */
  async turn(request: ModelRequest): Promise<Turn> {
    const tools = plainTools(request).map(openaiResponsesTool);
    const { system } = request;
    const body = this.bodyOf({
      model: this.name,
      input: responseItems(request.messages),
      tools: tools.length === 0 ? undefined : tools,
      instructions: system === "" ? undefined : system,
      max_output_tokens: this.maxTokens,
      stream: this.isStreamed ? true : undefined,
    });
    const reply: unknown = await this.#client.responses.create(body as never, { signal: request.signal } as never);
    if (!this.isStreamed) return understood(() => turnOfReply(reply as Reply));
    const collected = new Collected();
    await readPieces<StreamEvent>(reply, request, (event) => collected.take(event));
    return understood(() => collected.finish());
  }
}

type Item = Record<string, unknown>;

/** @internal */
export function responseItems(messages: readonly Message[]): Item[] {
  const found: Item[] = [];
  for (const message of messages) {
    if (message.kind === "results") found.push(...message.results.map(outputItem));
    else if (message.kind === "user") addUser(found, message.text);
    else found.push(...(message.provider === OPENAI_RESPONSES ? (message.raw as Item[]) : itemsOf(message)));
  }
  return found;
}

function outputItem({ callId, text, images }: CallResult): Item {
  const pictures = images.map(({ mediaType, data }) => {
    return { type: "input_image", image_url: `data:${mediaType};base64,${data}`, detail: "auto" };
  });
  const output = pictures.length === 0 ? text : [{ type: "input_text", text }, ...pictures];
  return { type: "function_call_output", call_id: callId, output };
}

function itemsOf({ text, calls }: Turn): Item[] {
  const said = text === "" ? [] : [{ role: "assistant", content: text }];
  return [...said, ...calls.map((call) => functionCall(call.id, call.name, argumentsText(call)))];
}

function functionCall(callId: string, name: string, given: string): Item {
  return { type: "function_call", call_id: callId, name, arguments: given };
}

interface OutputItem {
  type: string;
  content: { text?: string | null; refusal?: string | null }[];
  call_id: string;
  name: string;
  arguments: string;
}

interface Reply {
  status?: string;
  error?: { message?: string } | null;
  output: OutputItem[];
  usage?: { input_tokens: number; output_tokens: number } | null;
}

function turnOfReply({ status, error, output, usage }: Reply): Turn {
  if (status === "failed") throw failure(error);
  let [text, isRefused] = ["", false];
  const calls: ToolCall[] = [];
  const raw: Item[] = [];
  for (const item of output) {
    if (item.type === "message") {
      const said = item.content.map((part) => (part.text ?? "") || (part.refusal ?? "")).join("");
      isRefused ||= item.content.some(({ refusal }) => (refusal ?? "") !== "");
      text += said;
      if (said !== "") raw.push({ role: "assistant", content: said });
    } else if (item.type === "function_call") {
      calls.push({ id: item.call_id, name: item.name, arguments: argumentsOf(item.arguments) });
      raw.push(functionCall(item.call_id, item.name, item.arguments));
    } else if (item.type === "reasoning") {
      // To be given back as it came, before what it led to.
      raw.push(withoutNulls(item) as unknown as Item);
    } else throw new TypeError(`an item of type ${JSON.stringify(item.type)}`);
  }
  return {
    ...{ kind: "turn", text, calls },
    usage: { inputTokens: usage?.input_tokens ?? 0, outputTokens: usage?.output_tokens ?? 0 },
    ...{ isCut: status === "incomplete", isRefused, provider: OPENAI_RESPONSES, raw },
  };
}

function failure(error: { message?: string } | null | undefined): ModelFailed {
  return new ModelFailed(`the model failed: ${error?.message ?? "without a reason"}`);
}

interface StreamEvent {
  type: string;
  delta?: string;
  message?: string;
  response: Reply;
}

/** Waits for the last event of a stream, which has the whole turn. */
class Collected {
  #reply: Reply | undefined;

  /** Takes an event of the stream, and gives the text in it. */
  take(event: StreamEvent): string {
    if (event.type === "response.output_text.delta") return event.delta ?? "";
    if (event.type === "response.completed" || event.type === "response.incomplete") this.#reply = event.response;
    else if (event.type === "response.failed") throw failure(event.response.error);
    else if (event.type === "error") throw new ModelFailed(`the model failed: ${event.message ?? "without a reason"}`);
    return "";
  }

  finish(): Turn {
    if (this.#reply === undefined) throw new ModelFailed("the stream of the model broke off");
    return turnOfReply(this.#reply);
  }
}
