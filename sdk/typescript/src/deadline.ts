/** Waits that end: by themselves, by their time, or because the caller has had enough. */

import { AnswerTimeout } from "./failures.js";

/** A limit in time for one exchange, joined with the caller's own wish to stop. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #limitMs: number;
  readonly #onEnd: (deadline: Deadline) => void;
  readonly #onCallerAbort = (): void => this.stop(this.#caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #hasPassed = false;
  #stopped: { reason: unknown } | undefined;

  constructor(limitMs: number, caller?: AbortSignal, onEnd: (deadline: Deadline) => void = () => undefined) {
    this.#limitMs = limitMs;
    this.#caller = caller;
    this.#onEnd = onEnd;
    if (caller?.aborted) this.#onCallerAbort();
    else caller?.addEventListener("abort", this.#onCallerAbort, { once: true });
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What an aborted exchange means, or `undefined` when this deadline was not the reason. */
  get failure(): unknown {
    if (this.#stopped !== undefined) return this.#stopped.reason;
    return this.#hasPassed ? new AnswerTimeout(this.#limitMs) : undefined;
  }

  /** Whether somebody on this side wanted it to end. */
  get isCallers(): boolean {
    return this.#stopped !== undefined;
  }

  /** Ends the exchange before its time. */
  stop(reason: unknown): void {
    if (this.#hasPassed) return;
    this.#stopped ??= { reason };
    this.#controller.abort(reason);
  }

  /** Begins to count anew: the other side has shown that it lives. */
  restart(): void {
    clearTimeout(this.#timer);
    // `setTimeout` cannot count further than this.
    const limit = Math.min(this.#limitMs, 2 ** 31 - 1);
    this.#timer = setTimeout(() => {
      this.#hasPassed = true;
      this.#controller.abort();
    }, limit);
  }

  /** Stops counting. The exchange is over, or is given up. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#onCallerAbort);
    this.#onEnd(this);
  }
}

/** Waits, unless the caller has had enough. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
