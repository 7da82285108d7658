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
import { ExecResult, execResult, type Omission } from "./exec-result.js";
import { AnswerLost, ExecInterrupted, ProtocolError, ServerUnreachable } from "./failures.js";
import { worded } from "./hints.js";
import { KeptText } from "./kept-text.js";
import { REATTACH_ALIVE_PATIENCE_MS, REATTACH_PATIENCE_MS, REATTACH_PAUSE_MAX_MS } from "./limits.js";
import { OutputPosition } from "./output-position.js";
import type { OutputName } from "./process-output.js";
import type { SseEvent } from "./sse.js";
import type { Wire } from "./wire.js";

/** Who listens. */
export interface Listeners {
  onStdout?: OutputListener | undefined;
  onStderr?: OutputListener | undefined;
  signal?: AbortSignal | undefined;
  /** Where to begin, in bytes. Default: at the start of what is kept. */
  stdoutOffset?: number | undefined;
  stderrOffset?: number | undefined;
}

/** What is kept of each stream for the result. @internal */
export interface Keeping {
  maxOutputBytes?: number | undefined;
}

/** One stream: where the reader is in it, what is kept of it, and who hears it. */
class FollowedStream {
  readonly position: OutputPosition;
  readonly #kept: KeptText;
  hasGap = false;
  readonly #listener: OutputListener | undefined;
  readonly #offset: number;

  constructor(listener: OutputListener | undefined, keptBytesMax: number | undefined, offset = 0) {
    this.position = new OutputPosition(offset);
    this.#kept = new KeptText(keptBytesMax);
    this.#offset = offset;
    this.#listener = listener;
  }

  async take(chunk: string): Promise<void> {
    const text = this.position.take(chunk);
    if (text === "") return;
    this.#kept.add(text);
    await this.#listener?.(text);
  }

  get kept(): string {
    return this.#kept.give().text;
  }

  /** What is kept, and the part that is not; the guest still has it. */
  give(stream: OutputName): { text: string; omitted: Omission[] } {
    const { text, leftOut } = this.#kept.give();
    // Behind a gap, or bytes that were replaced, the place of a part is not known.
    const offset = this.#offset + (leftOut?.offset ?? 0);
    const omitted = leftOut === undefined ? [] : [{ stream, offset, bytes: leftOut.bytes, readable: !this.hasGap }];
    return { text, omitted };
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

  constructor(connection: Connection, sandboxId: string, execId: string, listeners: Listeners & Keeping) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
    this.#execId = execId;
    this.#signal = listeners.signal;
    this.#stdout = new FollowedStream(listeners.onStdout, listeners.maxOutputBytes, listeners.stdoutOffset);
    this.#stderr = new FollowedStream(listeners.onStderr, listeners.maxOutputBytes, listeners.stderrOffset);
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

  /** Follows a command that was started before, from where the listeners want to begin. */
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
        stream.hasGap = true;
        return undefined;
      }
      case "exit":
        return this.#result(data as unknown as ExitData);
      case "error":
        return this.#refusal(data);
      default:
        return undefined;
    }
  }

  #result(exit: ExitData): ExecResult {
    if (typeof exit.exit_code !== "number") throw new ProtocolError("an exit without a status");
    const [stdout, stderr] = [this.#stdout.give("stdout"), this.#stderr.give("stderr")];
    const omitted = [...stdout.omitted, ...stderr.omitted];
    return execResult({
      ...exit,
      stdout: stdout.text,
      stderr: stderr.text,
      exec_id: this.#execId,
      omitted,
      truncated: this.#stdout.hasGap || this.#stderr.hasGap || omitted.length > 0,
    });
  }

  /** What an `error` event means: a loss that may pass, or the end of it. */
  #refusal(told: Readonly<Record<string, unknown>>): Error {
    const error = apiError(String(told["error"]), { code: String(told["code"]), hint: worded(told) });
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
    throw new ProtocolError(`the data of a ${event.name} event is not JSON`, error);
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
