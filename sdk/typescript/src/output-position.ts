/**
 * Where a reader is in one output stream.
 *
 * The guest counts bytes, the events carry text in which every sequence that is not UTF-8 became
 * one U+FFFD. As long as there was none, the length of the text gives the offset exactly. Behind
 * the first one the offset is no longer known; the reader then attaches at the last offset that
 * is, and leaves out as many characters as it has seen since. The same bytes always become the
 * same text, so nothing is lost and nothing comes twice.
 */

const REPLACEMENT = "\uFFFD";
const encoder = new TextEncoder();

export class OutputPosition {
  /** The last offset that is known exactly. */
  #offset: number;
  /** Characters that were taken behind it. Not code units: one mark may stand for a pair. */
  #charactersBehind = 0;
  #charactersToSkip = 0;

  constructor(offset = 0) {
    this.#offset = offset;
  }

  /** Where to attach again. */
  attachAgain(): number {
    this.#charactersToSkip = this.#charactersBehind;
    return this.#offset;
  }

  /** Takes a piece of text and gives the part of it that is new. */
  take(chunk: string): string {
    const text = this.#skip(chunk);
    let mark = 0;
    if (this.#charactersBehind === 0) {
      const found = text.indexOf(REPLACEMENT);
      mark = found === -1 ? text.length : found;
      this.#offset += encoder.encode(text.slice(0, mark)).length;
    }
    this.#charactersBehind += countCharacters(text.slice(mark));
    return text;
  }

  /** The guest no longer has these bytes. */
  gap(offset: number, bytes: number): void {
    this.#offset = offset + bytes;
    this.#charactersBehind = 0;
    this.#charactersToSkip = 0;
  }

  #skip(chunk: string): string {
    let index = 0;
    while (this.#charactersToSkip > 0 && index < chunk.length) {
      index += (chunk.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
      this.#charactersToSkip -= 1;
    }
    return chunk.slice(index);
  }
}

function countCharacters(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; count += 1) index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  return count;
}
