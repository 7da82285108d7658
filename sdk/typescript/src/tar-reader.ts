/** Reads a tar archive as it comes. */

import { AnswerLost, ProtocolError } from "./failures.js";
import { BLOCK_BYTES, kindOf, type RawHeader, readHeader, readRecords, type TarEntry } from "./tar-header.js";

/** The content of an extension, which is a name or two. */
const EXTENSION_BYTES_MAX = 1 << 20;

/** The entries of an archive. The content of each must be read, or is skipped, before the next. */
export class TarReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Uint8Array = new Uint8Array();
  /** What is left of the content of the entry, and of its last block. */
  #contentLeft = 0;
  #paddingLeft = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next entry, or `undefined` at the end. */
  async next(): Promise<TarEntry | undefined> {
    const told: { path?: string; target?: string; size?: number } = {};
    for (;;) {
      for await (const _ of this.content());
      const header = readHeader(await this.#take(BLOCK_BYTES));
      if (header === undefined) return undefined;
      this.#contentLeft = header.size;
      this.#paddingLeft = (BLOCK_BYTES - (header.size % BLOCK_BYTES)) % BLOCK_BYTES;
      if (!"xgLK".includes(header.flag)) return this.#entry(header, told);
      const content = await this.#extension(header);
      if (header.flag === "x") {
        const records = readRecords(content);
        const [path, target, size] = ["path", "linkpath", "size"].map((name) => records.get(name));
        if (path !== undefined) told.path = path;
        if (target !== undefined) told.target = target;
        if (size !== undefined) told.size = Number(size);
      } else if (header.flag !== "g") {
        const text = new TextDecoder().decode(content).replace(/\0[^]*$/, "");
        if (header.flag === "L") told.path = text;
        else told.target = text;
      }
    }
  }

  /** The content of the entry, piece by piece. */
  async *content(): AsyncGenerator<Uint8Array, void, undefined> {
    while (this.#contentLeft > 0) {
      const piece = await this.#upTo(this.#contentLeft);
      this.#contentLeft -= piece.length;
      yield piece;
    }
    await this.#take(this.#paddingLeft);
    this.#paddingLeft = 0;
  }

  /** Stops reading. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  #entry(header: RawHeader, told: { path?: string; target?: string; size?: number }): TarEntry {
    const kind = kindOf(header.flag);
    const size = told.size ?? header.size;
    this.#contentLeft = size;
    this.#paddingLeft = (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
    return { path: told.path ?? header.path, kind, mode: header.mode, size, target: told.target ?? header.target };
  }

  async #extension({ size }: RawHeader): Promise<Uint8Array> {
    if (size > EXTENSION_BYTES_MAX) throw new ProtocolError("an archive has a name without an end");
    this.#contentLeft = 0;
    return await this.#take(size);
  }

  /** Exactly so many bytes. */
  async #take(length: number): Promise<Uint8Array> {
    const whole = new Uint8Array(length);
    for (let offset = 0; offset < length; ) {
      const piece = await this.#upTo(length - offset);
      whole.set(piece, offset);
      offset += piece.length;
    }
    return whole;
  }

  /** At least one byte, and at most so many. */
  async #upTo(length: number): Promise<Uint8Array> {
    while (this.#held.length === 0) {
      const { done, value } = await this.#source.next();
      if (done === true) throw new AnswerLost(undefined, "the archive broke off");
      this.#held = value;
    }
    const piece = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(piece.length);
    return piece;
  }
}
