/**
 * A build that is followed to its end, whatever happens to the connection. Its events are numbered, so a lost
 * connection costs nothing but time.
 */

import { BuildEvent, type TemplateBuild, templateBuild, type WireBuild, type WireFailedStep } from "./builds.js";
import type { Connection } from "./connection.js";
import { pause } from "./deadline.js";
import { DayflyError, GuestUnavailable, NodeUnavailable, TooMany } from "./errors.js";
import { AnswerLost, BuildFailed, ProtocolError, ServerUnreachable } from "./failures.js";
import { BUILD_PATIENCE_MS, BUILD_PAUSE_MAX_MS } from "./limits.js";
import { isPlain } from "./names.js";
import type { SseEvent } from "./sse.js";

/** Hears of a build as it goes on. A promise is waited for before the next event. */
export type BuildListener = (event: BuildEvent) => void | Promise<void>;

/** @internal */
export class BuildFollower {
  readonly #connection: Connection;
  readonly #id: string;
  readonly #listener: BuildListener | undefined;
  readonly #signal: AbortSignal | undefined;
  #lastId: string | undefined;
  #end: Record<string, unknown> | undefined;

  constructor(connection: Connection, id: string, listener?: BuildListener, signal?: AbortSignal) {
    this.#connection = connection;
    this.#id = id;
    this.#listener = listener;
    this.#signal = signal;
  }

  async follow(): Promise<TemplateBuild> {
    let lostSince: number | undefined;
    let waitMs = 100;
    for (let isFirst = true; ; isFirst = false) {
      const before = this.#lastId;
      const loss = await this.#round(before, isFirst);
      if (!(loss instanceof Error)) return loss;
      if (lostSince === undefined || this.#lastId !== before) [lostSince, waitMs] = [Date.now(), 100];
      if (Date.now() + waitMs - lostSince > BUILD_PATIENCE_MS) throw this.#lost(loss);
      // Many that wait must not come at once.
      await pause(waitMs * (0.8 + Math.random() / 5), this.#signal);
      waitMs = Math.min(waitMs * 2, BUILD_PAUSE_MAX_MS);
    }
  }

  /** Reads one stream of events. Gives what was built, or why that is not known yet. */
  async #round(before: string | undefined, isFirst: boolean): Promise<TemplateBuild | Error> {
    const events = await this.#tried(() => this.#open());
    if (events instanceof Error) {
      if (isFirst && events instanceof ServerUnreachable) throw events;
      return events;
    }
    await this.#read(events);
    const loss = new AnswerLost(undefined, "the events ended before the build did");
    // A stream that was cut off may have more to say of how it ended.
    if (this.#end === undefined && this.#lastId !== before) return loss;
    const found = await this.#tried(() => getBuild(this.#connection, this.#id, this.#signal));
    if (found instanceof Error || found.status === "done") return found;
    if (found.status === "failed") throw this.#failed(found);
    return loss;
  }

  #open(): Promise<AsyncGenerator<SseEvent, void, undefined>> {
    const path = ["templates", "builds", this.#id, "events"];
    return this.#connection.events({ method: "GET", path, query: { after: this.#lastId }, signal: this.#signal });
  }

  /** Reads events until the body ends, in whatever way. */
  async #read(events: AsyncGenerator<SseEvent, void, undefined>): Promise<void> {
    // Asked for by hand: an error of the listener must not look like one of the connection.
    try {
      while (this.#end === undefined) {
        const next = await this.#tried(() => events.next());
        if (next instanceof Error || next.done === true) return;
        this.#lastId = next.value.id ?? this.#lastId;
        await this.#take(next.value);
      }
    } finally {
      await events.return();
    }
  }

  async #take({ data }: SseEvent): Promise<void> {
    const wire: unknown = parsed(data);
    if (!isPlain(wire)) throw new ProtocolError("an event of a build is not an object");
    const event = new BuildEvent(wire);
    if (event.event === "built" || event.event === "failed") this.#end = wire;
    await this.#listener?.(event);
  }

  async #tried<T>(work: () => Promise<T>): Promise<T | DayflyError> {
    try {
      return await work();
    } catch (error) {
      if (!this.#signal?.aborted && mayPass(error)) return error;
      throw error;
    }
  }

  #failed(build: TemplateBuild): BuildFailed {
    const step = this.#end?.["step"];
    return new BuildFailed(build, isPlain(step) ? (step as unknown as WireFailedStep) : undefined);
  }

  #lost(cause: Error): AnswerLost {
    const hint = `it may go on: Template.waitBuild("${this.#id}") tells how it ends`;
    return new AnswerLost(cause, `the build ${this.#id} was lost sight of: ${cause.message}`, "answer_lost", hint);
  }
}

/** @internal */
export async function getBuild(connection: Connection, id: string, signal?: AbortSignal): Promise<TemplateBuild> {
  return templateBuild(await connection.json<WireBuild>({ method: "GET", path: ["templates", "builds", id], signal }));
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (error) {
    throw new ProtocolError("an event of a build is not JSON", error);
  }
}

function mayPass(error: unknown): error is DayflyError {
  const passing = [AnswerLost, ServerUnreachable, NodeUnavailable, GuestUnavailable, TooMany];
  return passing.some((kind) => error instanceof kind);
}
