/** Changes of a directory, as they happen. */

import type { Call, Connection } from "./connection.js";
import { apiError } from "./errors.js";
import { AnswerLost } from "./failures.js";
import { worded } from "./hints.js";
import { about, withPath } from "./path-error.js";
import type { SseEvent } from "./sse.js";
import type { Wire } from "./wire.js";

/** One change. `overflow` means that some were lost: look for yourself, the watch goes on. */
export type FileChange =
  | {
      kind: "created" | "modified" | "removed" | "moved";
      path: string;
      isDir: boolean;
      /** Where a moved entry was before, if that is watched too. */
      movedFrom: string | undefined;
    }
  | { kind: "overflow" };

/**
 * A watch. It is opened at once; everything after `ready` is reported.
 *
 * @example
 * ```ts
 * await using watch = sandbox.files.watch("/workspace");
 * await watch.ready;
 * for await (const change of watch) console.log(change.kind);
 * ```
 */
export class FileWatch implements AsyncIterable<FileChange>, AsyncDisposable {
  /** Settles when the watch is in place, or could not be. */
  readonly ready: Promise<void>;
  readonly #events: Promise<AsyncGenerator<SseEvent, void, undefined>>;
  readonly #controller = new AbortController();

  readonly #path: string;

  /** @internal */
  constructor(connection: Connection, call: Call, path: string) {
    this.#path = path;
    this.#events = connection.events({ ...call, signal: this.#controller.signal });
    const opened = this.#events.then(async (events) => {
      const { done, value } = await events.next();
      if (done) throw new AnswerLost();
      if (value.name !== "ready") throw refusal(value);
    });
    this.ready = about(path, opened);
    // Whoever iterates hears of it; nobody has to.
    this.ready.catch(() => undefined);
  }

  /** Ends when the directory is gone or the watch is closed. Can be iterated once. */
  async *[Symbol.asyncIterator](): AsyncGenerator<FileChange, void, undefined> {
    try {
      await this.ready;
      for await (const event of await this.#events) {
        if (event.name === "change") yield fileChange(event);
        else if (event.name === "overflow") yield { kind: "overflow" };
        else if (event.name === "end") return;
        else if (event.name === "error") throw refusal(event);
      }
    } catch (error) {
      if (this.#controller.signal.aborted) return;
      throw withPath(this.#path, error);
    } finally {
      await this.close();
    }
    // A body that stops without a last word was cut off; changes may have been missed.
    throw new AnswerLost();
  }

  /** Ends the watch. May be repeated. */
  async close(): Promise<void> {
    this.#controller.abort();
    await this.ready.catch(() => undefined);
    const events = await this.#events.catch(() => undefined);
    // A generator that somebody waits on ends through the signal alone.
    events?.return().catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function refusal(event: SseEvent): Error {
  const data = JSON.parse(event.data) as { error?: string; code?: string };
  return apiError(data.error ?? `an unexpected ${event.name} event`, { code: data.code, hint: worded(data) });
}

function fileChange(event: SseEvent): FileChange {
  const wire = JSON.parse(event.data) as Wire["FileChange"];
  const kind = wire.kind as "created" | "modified" | "removed" | "moved";
  return { kind, path: wire.path, isDir: wire.is_dir, movedFrom: wire.from ?? undefined };
}
