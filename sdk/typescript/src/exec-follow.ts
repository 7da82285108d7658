/**
 * A command that is followed to its end, whatever happens to the connection.
 *
 * The guest keeps output by offset, so a lost connection or a restarted daemon costs nothing but
 * time: the follower attaches again where it was. Only an `exit` event is an end.
 */

import type { Call, Connection } from "./connection.js";
import { pause } from "./deadline.js";
import { apiError, DayflyError, GuestUnavailable, NodeUnavailable, SandboxTimeout, TooMany } from "./errors.js";
import type { OutputListener } from "./exec-options.js";
import { ExecResult } from "./exec-result.js";
import { AnswerLost, ExecInterrupted, ProtocolError, ServerUnreachable } from "./failures.js";
import { KEPT_OUTPUT_LENGTH_MAX, REATTACH_ALIVE_PATIENCE_MS, REATTACH_PATIENCE_MS, REATTACH_PAUSE_MAX_MS } from "./limits.js";
import { OutputPosition } from "./output-position.js";
import type { SseEvent } from "./sse.js";
import type { Wire } from "./wire.js";

/** Who listens. */
export interface Listeners {
  onStdout?: OutputListener | undefined;
  onStderr?: OutputListener | undefined;
  signal?: AbortSignal | undefined;
}

/** One stream: where the reader is in it, what is kept of it, and who hears it. */
class FollowedStream {
  readonly position = new OutputPosition();
  kept = "";
  isTruncated = false;
  readonly #listener: OutputListener | undefined;

  constructor(listener: OutputListener | undefined) {
    this.#listener = listener;
  }

  async take(chunk: string): Promise<void> {
    const text = this.position.take(chunk);
    if (text === "") return;
    const room = KEPT_OUTPUT_LENGTH_MAX - this.kept.length;
    this.kept += text.slice(0, Math.max(room, 0));
    if (text.length > room) this.isTruncated = true;
    await this.#listener?.(text);
  }
}

/** @internal */
export class Follower {
  readonly #connection: Connection;
  readonly #sandboxId: string;
  readonly #execId: string;
  readonly #signal: AbortSignal | undefined;
  readonly #stdout: FollowedStream;
  readonly #stderr: FollowedStream;
  /** Since when nothing has come, while the connection is lost again and again. */
  #lostSince: number | undefined;

  constructor(connection: Connection, sandboxId: string, execId: string, listeners: Listeners) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
    this.#execId = execId;
    this.#signal = listeners.signal;
    this.#stdout = new FollowedStream(listeners.onStdout);
    this.#stderr = new FollowedStream(listeners.onStderr);
  }

  /** Starts the command and follows it to its end. */
  start(body: Record<string, unknown>): Promise<ExecResult> {
    return this.#follow({
      method: "POST",
      path: ["sandboxes", this.#sandboxId, "exec", "stream"],
      json: body,
      // The id in the body keeps a repetition from starting a second process.
      isRepeatable: true,
    });
  }

  /** Follows a command that was started before, from its beginning. */
  attach(): Promise<ExecResult> {
    return this.#follow(this.#attachCall());
  }

  async #follow(first: Call): Promise<ExecResult> {
    let events = await this.#connection.events({ ...first, signal: this.#signal });
    for (;;) {
      const openedAt = Date.now();
      const loss = await this.#readToEnd(events);
      if (loss instanceof ExecResult) return loss;
      if (Date.now() - openedAt > REATTACH_PATIENCE_MS) this.#lostSince = undefined;
      events = await this.#attachAgain(loss);
    }
  }

  /** Reads one connection. Gives the result, or why there is none yet. */
  async #readToEnd(events: AsyncGenerator<SseEvent, void, undefined>): Promise<ExecResult | Error> {
    // Asked for by hand: an error of a listener must not look like one of the connection.
    try {
      for (;;) {
        const next = await this.#next(events);
        if (next instanceof Error) return next;
        const outcome = await this.#take(next);
        if (outcome !== undefined) return outcome;
      }
    } finally {
      await events.return();
    }
  }

  async #next(events: AsyncGenerator<SseEvent, void, undefined>): Promise<SseEvent | Error> {
    try {
      const { done, value } = await events.next();
      return done ? new AnswerLost() : value;
    } catch (error) {
      if (error instanceof AnswerLost) return error;
      throw error;
    }
  }

  async #take(event: SseEvent): Promise<ExecResult | Error | undefined> {
    const data = parseData(event);
    switch (event.name) {
      case "stdout":
      case "stderr": {
        this.#lostSince = undefined;
        const stream = event.name === "stdout" ? this.#stdout : this.#stderr;
        await stream.take(String(data["chunk"] ?? ""));
        return undefined;
      }
      case "gap": {
        const stream = data["stream"] === "stderr" ? this.#stderr : this.#stdout;
        stream.position.gap(Number(data["offset"]), Number(data["bytes"]));
        stream.isTruncated = true;
        return undefined;
      }
      case "exit":
        return this.#result(data as unknown as ExitData);
      case "error":
        return this.#refusal(String(data["error"]), String(data["code"]));
      default:
        return undefined;
    }
  }

  #result(exit: ExitData): ExecResult {
    if (typeof exit.exit_code !== "number") throw new ProtocolError("an exit without a status");
    return new ExecResult({
      ...exit,
      stdout: this.#stdout.kept,
      stderr: this.#stderr.kept,
      exec_id: this.#execId,
      truncated: this.#stdout.isTruncated || this.#stderr.isTruncated,
    });
  }

  /** What an `error` event means: a loss that may pass, or the end of it. */
  #refusal(text: string, code: string): Error {
    const error = apiError(text, { code });
    if (error instanceof SandboxTimeout) {
      error.stdout = this.#stdout.kept;
      error.stderr = this.#stderr.kept;
      error.execId = this.#execId;
      throw error;
    }
    if (mayPass(error)) return error;
    throw this.#interrupted(error);
  }

  /** Attaches where it was, once the server is back. */
  async #attachAgain(loss: Error): Promise<AsyncGenerator<SseEvent, void, undefined>> {
    this.#lostSince ??= Date.now();
    let waitMs = 100;
    let reason: unknown = loss;
    for (;;) {
      this.#signal?.throwIfAborted();
      const patienceMs = isAlive(reason) ? REATTACH_ALIVE_PATIENCE_MS : REATTACH_PATIENCE_MS;
      if (Date.now() + waitMs - this.#lostSince > patienceMs) throw this.#interrupted(reason);
      // Many that wait must not come at once.
      await pause(waitMs * (0.8 + Math.random() / 5), this.#signal);
      waitMs = Math.min(waitMs * 2, REATTACH_PAUSE_MAX_MS);
      try {
        return await this.#attachOnce();
      } catch (error) {
        if (this.#signal?.aborted) throw error;
        if (!mayPass(error)) throw this.#interrupted(error);
        reason = error;
      }
    }
  }

  /** A sandbox that was put to sleep is left asleep: somebody wanted it so. */
  async #attachOnce(): Promise<AsyncGenerator<SseEvent, void, undefined>> {
    const sandbox = await this.#connection.json<Wire["Sandbox"]>({
      method: "GET",
      path: ["sandboxes", this.#sandboxId],
      isSentOnce: true,
      signal: this.#signal,
    });
    if (sandbox.status === "hibernated" || sandbox.status === "hibernating") {
      throw apiError("the sandbox sleeps", { code: "wrong_state" });
    }
    return await this.#connection.events({ ...this.#attachCall(), isSentOnce: true });
  }

  #attachCall(): Call {
    return {
      method: "GET",
      path: ["sandboxes", this.#sandboxId, "processes", this.#execId, "attach"],
      query: {
        stdout_offset: this.#stdout.position.attachAgain(),
        stderr_offset: this.#stderr.position.attachAgain(),
      },
      signal: this.#signal,
    };
  }

  #interrupted(cause: unknown): ExecInterrupted {
    return new ExecInterrupted(this.#execId, this.#stdout.kept, this.#stderr.kept, cause);
  }
}

type ExitData = Pick<Wire["ExecResult"], "exit_code" | "reason" | "signal" | "duration_ms" | "limits_hit">;

function parseData(event: SseEvent): Record<string, unknown> {
  try {
    return JSON.parse(event.data) as Record<string, unknown>;
  } catch (error) {
    throw new ProtocolError(`the data of a ${event.name} event is no JSON`, error);
  }
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof DayflyError)) return false;
  return isAlive(error) || error instanceof AnswerLost || error instanceof ServerUnreachable;
}

/** Whether a server answered that cannot do it yet. */
function isAlive(error: unknown): boolean {
  return error instanceof NodeUnavailable || error instanceof GuestUnavailable || error instanceof TooMany;
}
