/** What is kept of output: all of it, or of a long one its head and its tail. */

import { KEPT_OUTPUT_BYTES_MAX } from "./limits.js";

/** A part that is not in the text. */
export interface LeftOut {
  offset: number;
  bytes: number;
}

/** Takes a stream of any length and never holds much more than a limit of it. */
export class KeptText {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  readonly #tail: Uint8Array[] = [];
  #tailBytes = 0;
  #total = 0;

  constructor(maxBytes = KEPT_OUTPUT_BYTES_MAX) {
    const limit = Math.min(maxBytes, KEPT_OUTPUT_BYTES_MAX);
    this.#tailMax = Math.floor(limit / 2);
    this.#headMax = limit - this.#tailMax;
  }

  add(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.#total += bytes.length;
    const head = bytes.subarray(0, this.#headMax - this.#headBytes);
    const tail = bytes.subarray(head.length);
    // Not when it is empty: a view of nothing still keeps all that it is a view of.
    if (head.length > 0) this.#head.push(head);
    this.#headBytes += head.length;
    if (tail.length > 0) this.#tail.push(tail);
    this.#tailBytes += tail.length;
    // Whole pieces only: cutting one is for the end.
    while (this.#tailBytes - (this.#tail[0]?.length ?? 0) > this.#tailMax) {
      this.#tailBytes -= this.#tail.shift()?.length ?? 0;
    }
  }

  /** The text, with a mark where something is left out, and which part that is. */
  give(): { text: string; leftOut: LeftOut | undefined } {
    const head = joined(this.#head, this.#headBytes);
    const tail = joined(this.#tail, this.#tailBytes).subarray(Math.max(0, this.#tailBytes - this.#tailMax));
    if (head.length + tail.length === this.#total) {
      return { text: decode(joined([head, tail], this.#total)), leftOut: undefined };
    }
    // A character that was cut in two belongs to what is left out.
    const headEnd = characterEnd(head);
    const tailStart = characterStart(tail);
    const leftOut = { offset: headEnd, bytes: this.#total - headEnd - (tail.length - tailStart) };
    const before = decode(head.subarray(0, headEnd));
    const gap = before === "" || before.endsWith("\n") ? "" : "\n";
    const mark = `${gap}[... ${leftOut.bytes} bytes left out, from offset ${leftOut.offset} ...]\n`;
    return { text: `${before}${mark}${decode(tail.subarray(tailStart))}`, leftOut };
  }
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

const isContinuation = (byte: number | undefined): boolean => ((byte ?? 0) & 0xc0) === 0x80;

/** Where the last whole character of a head ends. */
function characterEnd(bytes: Uint8Array): number {
  let start = bytes.length - 1;
  while (start > 0 && isContinuation(bytes[start])) start -= 1;
  const first = bytes[start] ?? 0;
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return start + length <= bytes.length ? bytes.length : Math.max(start, 0);
}

/** Where the first whole character of a tail begins. */
function characterStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < bytes.length && isContinuation(bytes[start])) start += 1;
  return start;
}
