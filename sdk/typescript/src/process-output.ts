/** What the guest kept of a command's output. */

import type { Connection } from "./connection.js";
import { KEPT_OUTPUT_BYTES_MAX, OUTPUT_PART_BYTES } from "./limits.js";

export type OutputName = "stdout" | "stderr";

/** A part of a stream as bytes. */
export interface OutputPart {
  bytes: Uint8Array;
  /** Where it really begins: behind the asked offset when the guest has dropped bytes. */
  offset: number;
  /** Where the stream ends by now. */
  end: number;
}

/** @internal */
export async function readOutputPart(
  connection: Connection,
  sandboxId: string,
  execId: string,
  stream: OutputName,
  offset: number,
  limit: number = OUTPUT_PART_BYTES,
): Promise<OutputPart> {
  const { bytes, headers } = await connection.content({
    method: "GET",
    path: ["sandboxes", sandboxId, "processes", execId, "output"],
    query: { stream, offset, limit },
  });
  const number = (name: string, otherwise: number): number => {
    const text = headers.get(name);
    return text === null ? otherwise : Number(text);
  };
  const begin = number("dayfly-offset", offset);
  return { bytes, offset: begin, end: number("dayfly-end", begin + bytes.length) };
}

/** All that is kept of a stream by now, at most as much as a plain exec gives. @internal */
export async function readOutputText(
  connection: Connection,
  sandboxId: string,
  execId: string,
  stream: OutputName,
): Promise<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  let offset = 0;
  while (text.length < KEPT_OUTPUT_BYTES_MAX) {
    const part = await readOutputPart(connection, sandboxId, execId, stream, offset);
    if (part.bytes.length === 0) break;
    text += decoder.decode(part.bytes, { stream: true });
    offset = part.offset + part.bytes.length;
    if (offset >= part.end) break;
  }
  return text + decoder.decode();
}
