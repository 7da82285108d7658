/** The events of a body, as they come. */

import type { Deadline } from "./deadline.js";
import { DayflyError } from "./errors.js";
import { AnswerLost } from "./failures.js";
import { type SseEvent, SseParser } from "./sse.js";

/** Makes the limit for the silence before the next bytes. */
type SilenceLimit = () => Deadline;

/** The events of a body. Ends with the body; only the caller knows whether that was an end. @internal */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  limit: SilenceLimit,
): AsyncGenerator<SseEvent, void, undefined> {
  const parser = new SseParser();
  const reader = body.getReader();
  try {
    for (;;) {
      const piece = await readPiece(reader, limit());
      if (piece === undefined) return;
      yield* parser.push(piece);
    }
  } finally {
    // Hanging up is all that is left to do, and nobody waits for its outcome.
    reader.cancel().catch(() => undefined);
  }
}

/** The next bytes, however quiet or broken the connection is. */
async function readPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silence: Deadline,
): Promise<Uint8Array | undefined> {
  const hush = new Promise<never>((_, reject) => {
    const stop = (): void => reject(silence.isCallers ? silence.failure : new AnswerLost(silence.failure));
    if (silence.signal.aborted) stop();
    else silence.signal.addEventListener("abort", stop, { once: true });
  });
  try {
    const { done, value } = await Promise.race([reader.read(), hush]);
    return done ? undefined : value;
  } catch (error) {
    if (error instanceof DayflyError || silence.isCallers) throw error;
    throw new AnswerLost(error);
  } finally {
    silence.end();
  }
}
