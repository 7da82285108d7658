/** Output as a model is to read it: one text, of a bounded length. */

import { KeptText } from "./kept-text.js";
import { refuseUnknown } from "./names.js";

/** What a model gets when nobody says otherwise: some four thousand tokens. The same as in Python. */
export const MODEL_BYTES_DEFAULT = 16_000;
/** For the mark that says how much is left out. */
const MARK_BYTES = 80;

/** How a text for a model is made. */
export interface ModelTextOptions {
  /** The most that it may be, in bytes of UTF-8. Of more, the head and the tail are given. Default 16,000. */
  maxBytes?: number | undefined;
}

/** Joins what there is, without what is empty, and cuts the middle out of what is too long. */
export function modelText(parts: readonly (string | undefined)[], nothing: string, options: ModelTextOptions): string {
  refuseUnknown("forModel", options, ["maxBytes"]);
  const { maxBytes = MODEL_BYTES_DEFAULT } = options;
  if (!(maxBytes >= 2 * MARK_BYTES)) throw new RangeError(`maxBytes must be ${2 * MARK_BYTES} or more`);
  const said = parts.map((part) => part?.replace(/^\n+|\n+$/g, "") ?? "").filter((part) => part !== "");
  // Hints and tracebacks are at the end, and the end is kept.
  return cutMiddle(said.length === 0 ? nothing : said.join("\n"), maxBytes);
}

function cutMiddle(text: string, maxBytes: number): string {
  if (new TextEncoder().encode(text).length <= maxBytes) return text;
  const kept = new KeptText(maxBytes - MARK_BYTES);
  kept.add(text);
  return kept.give().text;
}
