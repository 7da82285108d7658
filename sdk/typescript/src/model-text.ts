/**
 * A result as one text for a model: what Dayfly says first, then the output, marked as such.
 *
 * Whatever a command prints stands behind the mark `stdout:`, `stderr:` or `result`, so that nothing of
 * it can be taken for words of Dayfly's. A name that a guest chose and that has to stand before the mark
 * is quoted, unless it is one plain word. `sdk/tools/texts.json` has the rule as cases, and every client
 * is held to them.
 */

import { KeptText } from "./kept-text.js";
import { refuseUnknown } from "./names.js";

/** What a model gets when nobody says otherwise: some four thousand tokens. The same as in Python. */
export const MODEL_BYTES_DEFAULT = 16_000;
const MODEL_BYTES_MIN = 160;
const NAMES_MAX = 20;
const NAME_CHARACTERS_MAX = 200;
/** Of a hint, in which a guest may have chosen some words. */
const SAID_CHARACTERS_MAX = 1000;
/** What providers take. Other kinds are a guest's own words. */
export const IMAGE_KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;
export const NOTHING = "nothing was printed";
/** What the server says of silence; it would be there twice. */
const SILENT = "printed nothing";
/** C0, DEL, C1, and the two that Unicode has for ends of lines. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;
const PLAIN_NAME = /^[A-Za-z0-9._\-+/@~]+$/;
/**
 * Control and format characters, halves of surrogate pairs, separators of lines and paragraphs: what is
 * not seen, or moves what is. For those below DEL JSON has escapes.
 */
const UNSEEN = /(?![\u0000-\u007e])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** How a text for a model is made. */
export interface ModelTextOptions {
  /** The most of the output, in bytes of UTF-8. Of more, the head and the tail are given. Default 16,000. */
  maxBytes?: number | undefined;
}

/** A part of the output: the line that marks it, its name in what is said of it, its text. */
export interface Section {
  mark: string;
  name: string;
  text: string;
}

/** A name that a guest chose, for what Dayfly says: quoted unless it is one plain word. */
export function named(text: string, characters = NAME_CHARACTERS_MAX): string {
  return text.length <= characters && PLAIN_NAME.test(text) ? text : quoted(text, characters);
}

/**
 * A text of a guest's as a JSON string, which cannot end by itself. The `…` of a long one is outside the
 * quotes, because it is ours.
 */
function quoted(text: string, characters = NAME_CHARACTERS_MAX): string {
  const head = headOf(text, characters);
  return JSON.stringify(head.replace(UNSEEN, "\ufffd")) + (head.length < text.length ? "…" : "");
}

/** A sentence for what Dayfly says, some words of which others chose: it stays one line. */
export function oneLine(text: string): string {
  const isLong = headOf(text, SAID_CHARACTERS_MAX).length < text.length;
  return (isLong ? `${headOf(text, SAID_CHARACTERS_MAX - 3)}...` : text).replace(CONTROL, "?");
}

/** The first characters of a text, none of them cut in two. */
export function headOf(text: string, characters: number): string {
  if (text.length <= characters) return text;
  let [count, end] = [0, 0];
  for (const character of text) {
    if (count === characters) break;
    count += 1;
    end += character.length;
  }
  return text.slice(0, end);
}

/** Cut, not rounded: a timeout of 30 s never reads as less than it was. */
export function seconds(durationMs: number): string {
  return `${Math.floor(durationMs / 1000)}.${Math.floor((durationMs % 1000) / 100)} s`;
}

export function withoutLineEnds(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "\n") end -= 1;
  return text.slice(0, end);
}

export function stream(name: string, text: string): Section {
  return { mark: `${name}:`, name, text: withoutLineEnds(text) };
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** What a result of any kind has that Dayfly says something of. */
interface Told {
  readonly changedFiles: readonly string[] | undefined;
  readonly hint: string | undefined;
  readonly truncated: boolean;
  readonly omitted: readonly { stream: string; bytes: number }[];
}

/** All that Dayfly says behind the first line: changed files, the hint, what the server left out. */
export function remarks(told: Told, isSilent: boolean): string[] {
  return [...changed(told.changedFiles), ...hinted(told.hint, isSilent), ...leftOut(told)];
}

function changed(files: readonly string[] | undefined): string[] {
  if (files === undefined || files.length === 0) return [];
  return [`changed files: ${listed(files, (name) => named(name))}`];
}

/** The kinds of pictures that there are of a result. Those that nobody knows are quoted. */
export function pictures(kinds: readonly string[]): string {
  return listed(kinds, (kind) => (IMAGE_KINDS.some((known) => known === kind) ? kind : quoted(kind)));
}

function listed(names: readonly string[], shown: (name: string) => string): string {
  const more = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).map(shown).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The server's advice, unless it says no more than that nothing was printed. */
function hinted(hint: string | undefined, isSilent: boolean): string[] {
  if (hint === undefined || hint === "" || (isSilent && hint.includes(SILENT))) return [];
  return [`hint: ${oneLine(hint)}`];
}

/** What the server left out of each stream already. */
function leftOut({ omitted, truncated }: Told): string[] {
  const lost = new Map<string, number>();
  for (const part of omitted) {
    const name = named(part.stream);
    lost.set(name, (lost.get(name) ?? 0) + part.bytes);
  }
  if (lost.size === 0 && truncated) return ["cut: more was printed than is shown"];
  return [...lost].map(([name, bytes]) => cut(name, bytes));
}

/** The limit that somebody asked for. */
export function maxBytesOf(options: ModelTextOptions): number {
  refuseUnknown("forModel", options, ["maxBytes"]);
  const { maxBytes = MODEL_BYTES_DEFAULT } = options;
  if (!(maxBytes >= MODEL_BYTES_MIN)) throw new RangeError(`maxBytes must be ${MODEL_BYTES_MIN} or more`);
  return Math.floor(maxBytes);
}

/** What Dayfly says, then the sections, of which long ones keep their two ends. */
export function shaped(
  said: readonly string[],
  sections: readonly Section[],
  nothing: string,
  maxBytes = MODEL_BYTES_DEFAULT,
): string {
  const shown = sections.filter(({ text, mark }) => text !== "" || mark.startsWith("result ("));
  const sizes = shown.map(({ text }) => byteLength(text));
  const isLong = sizes.reduce((sum, size) => sum + size, 0) > maxBytes;
  const share = Math.floor(maxBytes / Math.max(1, shown.length));
  const words = [...said];
  const output: string[] = [];
  shown.forEach(({ mark, name, text }, index) => {
    const given = isLong && (sizes[index] ?? 0) > share ? ends(text, share) : { text, lost: 0 };
    if (given.lost > 0) words.push(cut(name, given.lost));
    output.push(mark, ...(given.text === "" ? [] : [given.text]));
  });
  return [...words, ...(output.length === 0 ? [nothing] : output)].join("\n");
}

function ends(text: string, maxBytes: number): { text: string; lost: number } {
  const kept = new KeptText(maxBytes);
  kept.add(text);
  const given = kept.give();
  return { text: given.text, lost: given.leftOut?.bytes ?? 0 };
}

function cut(name: string, bytes: number): string {
  return `cut: ${bytes} bytes of ${name} are left out`;
}
