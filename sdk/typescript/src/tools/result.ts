/** What a tool gave, and the sandbox that it works on. */

import type { DayflyError } from "../errors.js";
import type { Result } from "../execution.js";
import { IMAGE_KINDS, oneLine } from "../model-text.js";
import type { Sandbox } from "../sandbox.js";
import type { Snapshot } from "../snapshot.js";

/** Providers take pictures up to some megabytes, and a model little more than a few at once. */
const IMAGE_CHARACTERS_MAX = 5_000_000;
const IMAGES_MAX = 8;
/** A model may ask for any number; a day is as good as for ever. */
export const CALL_SECONDS_MAX = 24 * 3600;
/**
 * With what their bytes begin, one character for each. A picture that is none has a provider refuse the
 * whole conversation.
 */
const SIGNATURES: Readonly<Record<(typeof IMAGE_KINDS)[number], RegExp>> = {
  "image/png": /^\x89PNG\r\n\x1a\n/,
  "image/jpeg": /^\xff\xd8\xff/,
  "image/gif": /^GIF8[79]a/,
  "image/webp": /^RIFF[^]{4}WEBP/,
};
/** In base 64: four characters are three bytes. */
const SIGNATURE_CHARACTERS = 16;

/** A picture: its kind, such as `image/png`, and its bytes in base 64. */
export interface ToolImage {
  mediaType: string;
  data: string;
}

/** What a tool gave: a text for the model, and whether it failed. */
export interface ToolResult {
  text: string;
  isError: boolean;
  images: ToolImage[];
  /** The same for programs, in the words of the wire; nothing, if it failed before there was something to tell. */
  structured: Readonly<Record<string, unknown>> | undefined;
}

/** The sandbox that tools work on. */
export interface ToolTarget {
  sandbox: Sandbox;
  /** No call of a tool takes longer, whatever the model asks for. */
  secondsMax?: number | undefined;
  /** How long snapshots stay that a model takes; for ever if nobody says so. */
  snapshotSeconds?: number | undefined;
  /** Hears of those that were taken. */
  onSnapshot?: ((snapshot: Snapshot) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** The timeout of a call. */
export function secondsOf({ secondsMax }: ToolTarget, wanted: number): number {
  const most = Math.min(wanted, CALL_SECONDS_MAX);
  return secondsMax === undefined ? most : Math.max(0.1, Math.min(most, secondsMax));
}

export function given(text: string, structured?: ToolResult["structured"], isError = false): ToolResult {
  return { text, isError, images: [], structured };
}

/** A result that says what went wrong. */
export function failed(why: string, hint?: string): ToolResult {
  const text = `error: ${oneLine(why)}`;
  return given(hint === undefined ? text : `${text}\nhint: ${oneLine(hint)}`, undefined, true);
}

export function failedBy({ message, hint }: DayflyError): ToolResult {
  return failed(message, hint);
}

/** The pictures of what was displayed, and how many are not shown. */
export function imagesOf(results: readonly Result[]): { images: ToolImage[]; hidden: number } {
  const images: ToolImage[] = [];
  let count = 0;
  for (const { data } of results) {
    const mediaType = IMAGE_KINDS.find((kind) => Object.hasOwn(data, kind));
    if (mediaType === undefined) continue;
    const content = data[mediaType] ?? "";
    count += 1;
    const image = { mediaType, data: content };
    if (images.length < IMAGES_MAX && isPicture(image)) images.push(image);
  }
  return { images, hidden: count - images.length };
}

/** Whether it is what it says, and not too large: a guest may display anything. */
export function isPicture({ mediaType, data }: ToolImage): boolean {
  const kind = IMAGE_KINDS.find((known) => known === mediaType);
  if (kind === undefined || data.length > IMAGE_CHARACTERS_MAX || data.length % 4 !== 0) return false;
  const bare = data.replace(/={1,2}$/, "");
  if (/[^A-Za-z0-9+/]/.test(bare)) return false;
  return SIGNATURES[kind].test(atob(data.slice(0, SIGNATURE_CHARACTERS)));
}

/** A text with one more line behind its first, among what Dayfly says. */
export function withWord(text: string, word: string): string {
  const end = text.indexOf("\n");
  return end === -1 ? `${text}\n${word}` : `${text.slice(0, end)}\n${word}${text.slice(end)}`;
}
