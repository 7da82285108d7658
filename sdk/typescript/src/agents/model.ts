/** Models, by what can be asked of them: a client of a provider, or a function. */

import { InvalidSettings } from "../failures.js";
import { refuseUnknown } from "../names.js";
import type { Selection } from "../tools/calls.js";
import { type AnthropicTool, anthropicTool, type ToolDefinition } from "../tools/definition.js";
import { type Message, type Turn, turnOf, type TurnWish } from "./conversation.js";
import { ModelFailed } from "./errors.js";

/** What a model is asked: the conversation so far, and what it can call. @internal */
export interface ModelRequest {
  system: string | undefined;
  messages: readonly Message[];
  selection: Selection;
  extra: readonly ToolDefinition[];
  /** Aborted when nobody waits any more. */
  signal: AbortSignal;
  onText: (text: string) => Promise<void>;
}

/** The tools, for whoever knows nothing of Anthropic's own types. @internal */
export function plainTools({ selection, extra }: ModelRequest): ToolDefinition[] {
  return [...selection.plain(), ...extra];
}

/** @internal */
export function anthropicTools({ selection, extra }: ModelRequest): AnthropicTool[] {
  return [...selection.anthropic(), ...extra.map(anthropicTool)];
}

/** Something that takes a conversation on by one turn. @internal */
export interface Model {
  /** Refuses what it cannot do, before anything is made. */
  check(selection: Selection): void;
  turn(request: ModelRequest): Promise<Turn>;
}

/**
 * A model of your own: gets the conversation, and the tools as Anthropic's API has them. What it throws
 * ends the run with `model_error`.
 */
export type ModelFunction = (
  messages: readonly Message[],
  tools: AnthropicTool[],
  options: { signal: AbortSignal; system: string | undefined },
) => TurnWish | Promise<TurnWish>;

/** Options of a model behind a client of a provider. */
export interface ModelOptions {
  /** The most that a turn may write. */
  maxTokens?: number | undefined;
  /** Whether text comes as it is written, as events `text_delta`. */
  stream?: boolean | undefined;
  /** Further fields of the request, such as `temperature`. */
  options?: Readonly<Record<string, unknown>> | undefined;
}

/** What models behind a client of a provider have in common. The client's timeouts and retries count. */
export abstract class ClientModel {
  /** The name of the model. */
  readonly name: string;
  protected readonly maxTokens: number | undefined;
  protected readonly isStreamed: boolean;
  readonly #more: Readonly<Record<string, unknown>>;

  /** @internal */
  constructor(name: string, given: ModelOptions) {
    refuseUnknown("a model", given, ["maxTokens", "stream", "options"]);
    if (typeof name !== "string") throw new InvalidSettings("a model has a client and a name");
    this.name = name;
    this.maxTokens = given.maxTokens;
    this.isStreamed = given.stream ?? false;
    this.#more = given.options ?? {};
  }

  /** @internal */
  check(selection: Selection): void {
    selection.plain();
  }

  /** @internal */
  abstract turn(request: ModelRequest): Promise<Turn>;

  /** The body of a request with what the caller adds, and without what there is not. @internal */
  protected bodyOf(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const given = Object.entries({ ...body, ...this.#more }).filter(([, value]) => value !== undefined);
    return Object.fromEntries(given);
  }
}

class FunctionModel implements Model {
  readonly #function: ModelFunction;

  constructor(given: ModelFunction) {
    this.#function = given;
  }

  check(): void {
    // It sees whatever tools there are.
  }

  async turn(request: ModelRequest): Promise<Turn> {
    const { messages, signal, system } = request;
    return turnOf(await this.#function([...messages], anthropicTools(request), { signal, system }));
  }
}

/** What an agent was given, as a model. @internal */
export function modelOf(given: ClientModel | ModelFunction): Model {
  if (given instanceof ClientModel) return given;
  if (typeof given === "function") return new FunctionModel(given);
  const kinds = "AnthropicModel, OpenAIChatModel or OpenAIResponsesModel of a client";
  throw new InvalidSettings(`model is ${kinds}, or a function that gives a turn`);
}

/** Asks a model; whatever goes wrong with it is a `ModelFailed`. @internal */
export async function askModel(model: Model, request: ModelRequest): Promise<Turn> {
  try {
    return await untilAborted(request.signal, model.turn(request));
  } catch (error) {
    if (error instanceof ModelFailed) throw error;
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    throw new ModelFailed(said, error);
  }
}

/** Waits for work, but no longer than anybody wants to: it may not know the signal. */
function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    work.finally(() => signal.removeEventListener("abort", stop)).then(resolve, reject);
  });
}

/** A turn out of what a client gave, which is only guessed at here. @internal */
export function understood(read: () => Turn): Turn {
  try {
    return read();
  } catch (error) {
    if (error instanceof ModelFailed) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new ModelFailed(`the response is not understood: ${why}`, error);
  }
}

/** Reads a stream of a provider to its end, and tells the text in it. @internal */
export async function readPieces<Piece>(
  stream: unknown,
  { onText, signal }: ModelRequest,
  take: (piece: Piece) => string,
): Promise<void> {
  // Whoever leaves the loop ends the stream, and its connection.
  for await (const piece of stream as AsyncIterable<Piece>) {
    const text = take(piece);
    signal.throwIfAborted();
    if (text !== "") await onText(text);
  }
}

/** Plain data without what is null: fields that a provider gives and does not take back. @internal */
export function withoutNulls<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (_, one: unknown) => one ?? undefined) as T;
}
