/** Messages as JSON, in the words that every client stores them in. */

import { isPlain } from "../names.js";
import { isPicture, type ToolImage } from "../tools/result.js";
import { type CallResult, type Message, turnOf, type TurnWish } from "./conversation.js";
import { TranscriptRefused } from "./errors.js";

type Fields = Record<string, unknown>;

export function messageToJson(message: Message): Fields {
  if (message.kind === "user") return { kind: "user", text: message.text };
  if (message.kind === "results") return { kind: "results", results: message.results.map(resultToJson) };
  const { text, calls, usage, isCut, isRefused, provider, raw } = message;
  return {
    ...{ kind: "turn", text },
    calls: calls.map(({ id, name, arguments: given }) => ({ id, name, arguments: given })),
    usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
    ...{ is_cut: isCut, is_refused: isRefused, provider, raw: raw ?? null },
  };
}

function resultToJson({ callId, name, text, isError, images }: CallResult): Fields {
  const pictures = images.map(({ mediaType, data }) => ({ media_type: mediaType, data }));
  return { call_id: callId, name, text, is_error: isError, images: pictures };
}

export function messageFromJson(data: unknown): Message {
  const { kind } = objectOf("a message", data);
  if (kind === "user") {
    const { text } = fieldsOf("a text of the user", data, ["kind", "text"]);
    return { kind, text: stringOf("text", text) };
  }
  if (kind === "results") {
    const { results } = fieldsOf("results", data, ["kind", "results"]);
    return { kind, results: listOf("results", results).map(resultFromJson) };
  }
  if (kind === "turn") return turnFromJson(data);
  throw new TranscriptRefused(`a message of kind ${JSON.stringify(kind ?? null)} is not known`);
}

const TURN_FIELDS = ["kind", "text", "calls", "usage", "is_cut", "is_refused", "provider", "raw"];

function turnFromJson(data: unknown): Message {
  const turn = fieldsOf("a turn", data, TURN_FIELDS);
  const usage = fieldsOf("the usage of a turn", turn["usage"], ["input_tokens", "output_tokens"]);
  const calls = listOf("calls", turn["calls"]).map(callFields);
  const found: Fields = {
    ...{ text: turn["text"], calls, provider: turn["provider"], raw: turn["raw"] },
    usage: { inputTokens: usage["input_tokens"], outputTokens: usage["output_tokens"] },
    ...{ isCut: turn["is_cut"], isRefused: turn["is_refused"] },
  };
  try {
    return turnOf(found as TurnWish);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new TranscriptRefused(error.message);
  }
}

function callFields(data: unknown): Fields {
  const call = fieldsOf("a call", data, ["id", "name", "arguments"]);
  if (call["arguments"] === undefined) throw new TranscriptRefused("a call has no arguments");
  return call;
}

function resultFromJson(data: unknown): CallResult {
  const result = fieldsOf("a result", data, ["call_id", "name", "text", "is_error", "images"]);
  return {
    callId: stringOf("call_id", result["call_id"]),
    name: stringOf("name", result["name"]),
    text: stringOf("text", result["text"]),
    isError: truthOf("is_error", result["is_error"] === undefined ? false : result["is_error"]),
    images: listOf("images", result["images"] === undefined ? [] : result["images"]).map(imageFromJson),
  };
}

function imageFromJson(data: unknown): ToolImage {
  const image = fieldsOf("an image", data, ["media_type", "data"]);
  const found = { mediaType: stringOf("media_type", image["media_type"]), data: stringOf("data", image["data"]) };
  if (isPicture(found)) return found;
  throw new TranscriptRefused("an image is not what it says, or is too large");
}

function objectOf(what: string, data: unknown): Fields {
  if (isPlain(data)) return data;
  throw new TranscriptRefused(`${what} is not an object`);
}

/** An object that has no other fields than these. */
export function fieldsOf(what: string, data: unknown, known: readonly string[]): Fields {
  const found = objectOf(what, data);
  const unknown = Object.keys(found).filter((name) => !known.includes(name));
  if (unknown.length === 0) return found;
  throw new TranscriptRefused(`${what} has fields that are not known: ${unknown.sort().join(", ")}`);
}

export function listOf(what: string, data: unknown): unknown[] {
  if (Array.isArray(data)) return data as unknown[];
  throw new TranscriptRefused(`${what} is not a list`);
}

export function stringOf(what: string, data: unknown): string {
  if (typeof data === "string") return data;
  throw new TranscriptRefused(`${what} is not a text`);
}

function truthOf(what: string, data: unknown): boolean {
  if (typeof data === "boolean") return data;
  throw new TranscriptRefused(`${what} is not true or false`);
}
