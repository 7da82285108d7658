/**
 * Server-sent events, without input or output: bytes go in, events come out.
 *
 * Follows the WHATWG grammar: lines end with LF, CR or CRLF; fields come in any order; several
 * `data` lines are joined with LF; a comment starts with a colon; an event that has no blank line
 * after it when the body ends is not an event.
 */

import { ProtocolError } from "./failures.js";
import { EVENT_BYTES_MAX } from "./limits.js";

/** One event. */
export interface SseEvent {
  /** `message` when the server gave none. */
  name: string;
  data: string;
  /** Of this event, or of the last one before it that had one. */
  id?: string;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Cuts a body into events, however its bytes arrive. */
export class SseParser {
  #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Parts of the line that is not yet whole. Bytes, because a cut may be inside a character. */
  #parts: Uint8Array[] = [];
  #heldBytes = 0;
  /** The last byte ended a line as CR; an LF that follows belongs to it. */
  #isAfterCarriageReturn = false;
  #isPastFirstLine = false;
  #name = "";
  #id: string | undefined;
  #data: string[] = [];

  /** Takes the next bytes of the body and gives the events that they complete. */
  push(bytes: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    let start = 0;
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index];
      const belongsToReturn = this.#isAfterCarriageReturn && byte === LINE_FEED;
      this.#isAfterCarriageReturn = byte === CARRIAGE_RETURN;
      if (belongsToReturn) {
        start = index + 1;
      } else if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
        this.#hold(bytes.subarray(start, index));
        start = index + 1;
        const event = this.#endLine();
        if (event !== undefined) events.push(event);
      }
    }
    this.#hold(bytes.subarray(start));
    return events;
  }

  #hold(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#heldBytes += part.length;
    if (this.#heldBytes > EVENT_BYTES_MAX) {
      throw new ProtocolError(`an event is longer than ${EVENT_BYTES_MAX} bytes`);
    }
    // A copy: the caller may use its buffer again.
    this.#parts.push(part.slice());
  }

  #endLine(): SseEvent | undefined {
    const line = this.#takeLine();
    if (line === "") return this.#endEvent();
    const colon = line.indexOf(":");
    if (colon === 0) {
      // A comment counts for nothing, but must not add up over a long silence.
      this.#forgetUnlessBegun();
      return undefined;
    }
    const field = colon === -1 ? line : line.slice(0, colon);
    const rest = colon === -1 ? "" : line.slice(colon + 1);
    const value = rest.startsWith(" ") ? rest.slice(1) : rest;
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else {
      if (field === "id") this.#id = value;
      this.#forgetUnlessBegun();
    }
    return undefined;
  }

  #takeLine(): string {
    let text = "";
    for (const part of this.#parts) text += this.#decoder.decode(part, { stream: true });
    text += this.#decoder.decode();
    this.#parts = [];
    if (!this.#isPastFirstLine && text.startsWith("\uFEFF")) text = text.slice(1);
    this.#isPastFirstLine = true;
    return text;
  }

  #forgetUnlessBegun(): void {
    if (this.#name === "" && this.#data.length === 0) this.#heldBytes = 0;
  }

  #endEvent(): SseEvent | undefined {
    const event: SseEvent = { name: this.#name === "" ? "message" : this.#name, data: this.#data.join("\n") };
    if (this.#id !== undefined) event.id = this.#id;
    const hasData = this.#data.length > 0;
    this.#name = "";
    this.#data = [];
    this.#heldBytes = 0;
    return hasData ? event : undefined;
  }
}
