/** The output of a command, as it comes. */

import type { Listeners } from "./exec-follow.js";
import type { ExecResult } from "./exec-result.js";
import { Lazy } from "./lazy.js";
import type { OutputName } from "./process-output.js";

/** A piece of output. */
export interface OutputChunk {
  stream: OutputName;
  text: string;
}

type Follow = (listeners: Listeners) => Promise<ExecResult>;

/**
 * A command that is followed to its end, across lost connections. Awaited it gives the result; iterated
 * it gives the output piece by piece, and the result afterwards. Who leaves the loop stops following;
 * the command goes on.
 *
 * @example
 * ```ts
 * const attachment = process.attach();
 * for await (const { stream, text } of attachment) console.log(stream, text);
 * console.log((await attachment).exitCode);
 * ```
 */
export class Attachment extends Lazy<ExecResult> implements AsyncIterable<OutputChunk> {
  readonly #follow: Follow;
  readonly #listeners: Listeners;
  readonly #handoff = new Handoff();
  #isIterated = false;

  /** @internal */
  constructor(follow: Follow, listeners: Listeners) {
    super();
    this.#follow = follow;
    this.#listeners = listeners;
    // Whoever listens need not wait as well.
    if (listeners.onStdout !== undefined || listeners.onStderr !== undefined) this.whole().catch(() => undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void, undefined> {
    const { onStdout, onStderr, signal } = this.#listeners;
    if (onStdout !== undefined || onStderr !== undefined) {
      throw new TypeError("give listeners, or iterate; both would have to share the output");
    }
    if (this.#isIterated) throw new TypeError("the output of one attachment can be iterated once");
    this.#isIterated = true;
    const stopped = new AbortController();
    const stop = (): void => stopped.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    this.#listeners.signal = stopped.signal;
    this.whole().then(
      () => this.#handoff.end(),
      (error: unknown) => this.#handoff.end({ error }),
    );
    try {
      yield* this.#handoff.items();
    } finally {
      signal?.removeEventListener("abort", stop);
      stopped.abort();
    }
  }

  protected override begin(): Promise<ExecResult> {
    if (!this.#isIterated) return this.#follow(this.#listeners);
    const take = (stream: OutputName) => (text: string): Promise<void> => this.#handoff.put({ stream, text });
    return this.#follow({ ...this.#listeners, onStdout: take("stdout"), onStderr: take("stderr") });
  }
}

/** Hands pieces over one by one: whoever puts waits until the piece is taken. */
class Handoff {
  readonly #waiting: { chunk: OutputChunk; taken: () => void }[] = [];
  #outcome: { error?: unknown } | undefined;
  #wake: () => void = () => undefined;

  put(chunk: OutputChunk): Promise<void> {
    return new Promise((taken) => {
      this.#waiting.push({ chunk, taken });
      this.#wake();
    });
  }

  end(outcome: { error?: unknown } = {}): void {
    this.#outcome = outcome;
    this.#wake();
  }

  async *items(): AsyncGenerator<OutputChunk, void, undefined> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next !== undefined) {
          next.taken();
          yield next.chunk;
        } else if (this.#outcome !== undefined) {
          if ("error" in this.#outcome) throw this.#outcome.error;
          return;
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve));
        }
      }
    } finally {
      // Nobody takes any more; nobody may wait for that.
      for (const { taken } of this.#waiting.splice(0)) taken();
    }
  }
}
