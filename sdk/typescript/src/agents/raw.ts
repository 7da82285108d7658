/**
 * What a provider wants to see again of a turn, checked before it is sent from a stored one. It goes to the
 * provider as it is. So only kinds are taken that a model says, and never one that speaks for the user, the
 * system or a tool; and they say the same as the turn, which is what people and programs read.
 */

import { isPlain } from "../names.js";
import type { ToolCall, Turn } from "./conversation.js";

/** The names of providers in a transcript. */
export const ANTHROPIC = "anthropic";
export const OPENAI_CHAT = "openai-chat";
export const OPENAI_RESPONSES = "openai-responses";

type Fields = Readonly<Record<string, unknown>>;

/** What an item says, and what it calls. */
interface Said {
  text?: unknown;
  call?: { id: unknown; name: unknown; arguments: unknown };
}

/** What is said by an item; nothing, if it is not known. */
type Reader = (item: Fields) => Said | undefined;

/** Arguments as an object; what is none stays as it is, and the tool refuses it. */
export function argumentsOf(text: string): ToolCall["arguments"] {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    if (isPlain(value)) return value;
  } catch {
    // The tool says so.
  }
  return text;
}

/** Whether an item that is ours has these texts, and nothing else but the others. */
function hasOnly(item: Fields, texts: readonly string[], others: readonly string[] = []): boolean {
  const names = Object.keys(item);
  const known = [...texts, ...others];
  return names.length === known.length && known.every((name) => names.includes(name)) && hasTexts(item, texts);
}

/** Of an item that is given back as it came: the provider may have more fields by now. */
function hasTexts(item: Fields, texts: readonly string[]): boolean {
  return texts.every((name) => item[name] === undefined || typeof item[name] === "string");
}

const block: Reader = (item) => {
  const { type, text, id, name, input } = item;
  if (type === "text") return hasOnly(item, ["type", "text"]) ? { text } : undefined;
  if (type === "tool_use") {
    const isWhole = hasOnly(item, ["type", "id", "name"], ["input"]) && isPlain(input);
    return isWhole ? { call: { id, name, arguments: input } } : undefined;
  }
  const isKept = type === "thinking" || type === "redacted_thinking";
  return isKept && hasTexts(item, ["thinking", "signature", "data"]) ? {} : undefined;
};

const responseItem: Reader = (item) => {
  const { type, role, content, call_id: id, name, summary = [] } = item;
  if (type === undefined) {
    return hasOnly(item, ["role", "content"]) && role === "assistant" ? { text: content } : undefined;
  }
  if (type === "function_call") {
    if (!hasOnly(item, ["type", "call_id", "name", "arguments"])) return undefined;
    return { call: { id, name, arguments: argumentsOf(String(item["arguments"])) } };
  }
  const isKept = type === "reasoning" && Array.isArray(summary);
  return isKept && hasTexts(item, ["id", "encrypted_content"]) ? {} : undefined;
};

const READERS: ReadonlyMap<string, Reader> = new Map([
  [ANTHROPIC, block],
  [OPENAI_RESPONSES, responseItem],
]);

/** What is wrong with it, if something is. */
export function rawProblem({ provider, raw, text, calls }: Turn): string | undefined {
  if (provider === OPENAI_CHAT && raw !== null) return `there is no raw of ${provider}`;
  const read = READERS.get(provider);
  // Of a model of the caller's own. No model of ours sends it.
  if (read === undefined) return undefined;
  if (!Array.isArray(raw)) return `raw of ${provider} is not a list`;
  const said = raw.map((item: unknown) => (isPlain(item) ? read(item) : undefined));
  const unknown = said.indexOf(undefined);
  if (unknown !== -1) return `raw of ${provider} has an item that is not known, number ${unknown + 1}`;
  const heard = said.map((one) => one?.text ?? "").join("");
  const called = said.flatMap((one) => one?.call ?? []);
  const isSame = heard === text && JSON.stringify(called) === JSON.stringify(calls);
  return isSame ? undefined : `raw of ${provider} says other things than text and calls`;
}
