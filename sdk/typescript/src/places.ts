/** How many requests may be under way at once. What is over waits its turn. */

import { ServerUnreachable } from "./failures.js";

/** What a request has while it holds a connection. */
export interface Place {
  /** Its body is still to be read; whoever reads it gives the place back. */
  isKept: boolean;
  /** Gives it to whoever has waited longest. Only the first call counts. */
  release(): void;
}

/** As many requests as may be are under way, and none of them has ended for long. Nothing was sent. */
export class ConnectionsInUse extends ServerUnreachable {
  constructor(count: number, waitedMs: number) {
    super("", undefined, "maxConnections of a Client raises the limit; each command that is followed holds one");
    // For callers it is one of those; only repeating has to know more.
    this.name = "ServerUnreachable";
    this.message = `all ${count} connections of this client have been in use for ${waitedMs / 1000} s`;
  }
}

/** @internal */
export class Places {
  readonly #count: number;
  #free: number;
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();
  #releasedAt = 0;

  constructor(count: number) {
    this.#count = count;
    this.#free = count;
  }

  /** Waits for a place: for long while others get on, and for `patienceMs` when none does. */
  async take(patienceMs: number, signal?: AbortSignal): Promise<Place> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(patienceMs, signal);
    let isReleased = false;
    const release = (): void => {
      if (!isReleased) this.#release();
      isReleased = true;
    };
    return { isKept: false, release };
  }

  #turn(patienceMs: number, signal: AbortSignal | undefined): Promise<void> {
    const start = Date.now();
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const leave = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        this.#waiting.delete(take);
      };
      const take = (): void => {
        leave();
        resolve();
      };
      const stop = (): void => {
        leave();
        reject(signal?.reason);
      };
      const look = (): void => {
        const leftMs = patienceMs - (Date.now() - Math.max(start, this.#releasedAt));
        if (leftMs > 0) {
          // `setTimeout` cannot count further than this.
          timer = setTimeout(look, Math.min(leftMs, 2 ** 31 - 1));
          return;
        }
        leave();
        reject(new ConnectionsInUse(this.#count, patienceMs));
      };
      this.#waiting.add(take);
      signal?.addEventListener("abort", stop, { once: true });
      look();
    });
  }

  #release(): void {
    this.#releasedAt = Date.now();
    // Node's `fetch` takes a connection for busy a moment longer than its response, and opens another.
    if (this.#waiting.size > 0) setTimeout(() => this.#handOn(), 0);
    else this.#free += 1;
  }

  #handOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next();
  }
}

/** A body that gives its place back at its end, however that comes. */
export function withPlace(body: ReadableStream<Uint8Array>, place: Place): ReadableStream<Uint8Array> {
  place.isKept = true;
  const reader = body.getReader();
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      controller.close();
    } catch (error) {
      controller.error(error);
    }
    place.release();
  };
  const cancel = async (reason: unknown): Promise<void> => {
    place.release();
    await reader.cancel(reason);
  };
  // Nothing is read ahead of whoever reads this one.
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}
