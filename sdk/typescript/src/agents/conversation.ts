/** A conversation in words of no provider: what was asked, what a model said, what tools gave. */

import { isPlain, refuseUnknown } from "../names.js";
import type { ToolImage } from "../tools/result.js";
import { rawProblem } from "./raw.js";

/** A call that a model wants. Arguments that are not JSON stay the text that they are. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>> | string;
}

/** Tokens, as the provider counted them. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What the user, or the program in the user's name, says. */
export interface UserText {
  readonly kind: "user";
  readonly text: string;
}

/** What a model said in one turn. */
export interface Turn {
  readonly kind: "turn";
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly usage: Usage;
  /** It ran into the limit of its output. */
  readonly isCut: boolean;
  /** It, or its provider, will not. */
  readonly isRefused: boolean;
  /** Who wants to see `raw` again. */
  readonly provider: string;
  readonly raw: unknown;
}

/** What came of one call. */
export interface CallResult {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
  readonly isError: boolean;
  readonly images: readonly ToolImage[];
}

/** What came of the calls of a turn, in their order. */
export interface Results {
  readonly kind: "results";
  readonly results: readonly CallResult[];
}

export type Message = UserText | Turn | Results;

/** What a function that stands for a model gives: as much of a turn as there is. */
export interface TurnWish {
  readonly kind?: "turn" | undefined;
  readonly text?: string | undefined;
  readonly calls?: readonly (Omit<ToolCall, "arguments"> & Partial<ToolCall>)[] | undefined;
  readonly usage?: Partial<Usage> | undefined;
  readonly isCut?: boolean | undefined;
  readonly isRefused?: boolean | undefined;
  readonly provider?: string | undefined;
  readonly raw?: unknown;
}

const TURN_FIELDS = ["kind", "text", "calls", "usage", "isCut", "isRefused", "provider", "raw"];

/** A whole turn; what is in it that no turn has, or of another type, is a `TypeError`. @internal */
export function turnOf(wish: TurnWish): Turn {
  if (typeof wish !== "object" || wish === null) throw new TypeError(`the model gave ${typeof wish}, not a turn`);
  refuseUnknown("a turn", wish, TURN_FIELDS);
  const usage = wish.usage === undefined ? {} : wish.usage;
  if (!isPlain(usage)) throw new TypeError("the usage of a turn is an object");
  refuseUnknown("the usage of a turn", usage, ["inputTokens", "outputTokens"]);
  const { text = "", calls = [], isCut = false, isRefused = false, provider = "", raw = null } = wish;
  const { inputTokens = 0, outputTokens = 0 }: Partial<Usage> = usage;
  if (typeof text !== "string" || typeof provider !== "string") {
    throw new TypeError("text and provider of a turn are texts");
  }
  if (!Array.isArray(calls)) throw new TypeError("the calls of a turn are a list");
  if (typeof isCut !== "boolean" || typeof isRefused !== "boolean") {
    throw new TypeError("whether a turn is cut or refused is true or false");
  }
  if (!isCount(inputTokens) || !isCount(outputTokens)) throw new TypeError("tokens are a whole number from 0");
  const said = { kind: "turn", text, calls: calls.map(callOf), usage: { inputTokens, outputTokens } } as const;
  const turn: Turn = { ...said, isCut, isRefused, provider, raw };
  const problem = rawProblem(turn);
  if (problem !== undefined) throw new TypeError(problem);
  return turn;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function callOf(call: Omit<ToolCall, "arguments"> & Partial<ToolCall>): ToolCall {
  refuseUnknown("a call", call, ["id", "name", "arguments"]);
  const { id, name, arguments: given = {} } = call;
  if (typeof id !== "string" || typeof name !== "string") throw new TypeError("a call has an id and a name");
  if (typeof given !== "string" && !isPlain(given)) throw new TypeError("arguments are an object, or a text");
  return { id, name, arguments: given };
}

export function userText(text: string): UserText {
  return { kind: "user", text };
}

/** A result that is only a word of ours: the call failed, or was not carried out. */
export function failedCall({ id, name }: ToolCall, text: string): CallResult {
  return { callId: id, name, text, isError: true, images: [] };
}

export function totalOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}
