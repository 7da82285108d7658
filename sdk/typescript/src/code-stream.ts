/** Code whose output comes while it runs. */

import type { Call, Connection } from "./connection.js";
import { apiError, SandboxTimeout } from "./errors.js";
import type { OutputListener } from "./exec-options.js";
import { Execution, Result } from "./execution.js";
import { AnswerLost, ProtocolError } from "./failures.js";
import { worded } from "./hints.js";
import { KeptText } from "./kept-text.js";
import type { SseEvent } from "./sse.js";
import type { Wire } from "./wire.js";

/** Who listens to code. */
export interface CodeListeners {
  /** With one of these three the output comes while the code runs. */
  onStdout?: OutputListener | undefined;
  onStderr?: OutputListener | undefined;
  /** Hears of what the code displays. */
  onResult?: ((result: Result) => void | Promise<void>) | undefined;
}

/** @internal */
export function hasListeners({ onStdout, onStderr, onResult }: CodeListeners): boolean {
  return onStdout !== undefined || onStderr !== undefined || onResult !== undefined;
}

/** Puts a streamed run together. @internal */
export class CodeCollector {
  readonly #kept = { stdout: new KeptText(), stderr: new KeptText() };
  readonly #listeners: CodeListeners;
  readonly #results: Record<string, string>[] = [];
  readonly #failure: Pick<Wire["RunResult"], "error" | "traceback"> = {};
  #isCut = false;
  #isStateLost = false;
  #end: Partial<Wire["RunResult"]> | undefined;

  constructor(listeners: CodeListeners) {
    this.#listeners = listeners;
  }

  /** Follows a run to its end. A body that ends before that was cut off. */
  async follow(connection: Connection, call: Call): Promise<void> {
    const events = await connection.events(call);
    try {
      for await (const event of events) {
        await this.#take(event);
        if (this.#end !== undefined) return;
      }
    } finally {
      await events.return();
    }
    throw new AnswerLost();
  }

  /** What came of it. */
  execution(): Execution {
    const { status = "ok" } = this.#end ?? {};
    if (status === "timed_out") throw this.addTo(timedOut());
    const exit = status === "ok" ? 0 : 1;
    const [stdout, stderr] = [this.#kept.stdout.give(), this.#kept.stderr.give()];
    return new Execution({
      duration_ms: 0,
      ...this.#end,
      ...this.#failure,
      error: this.#failure.error ?? (status === "ok" ? null : status),
      results: this.#results,
      stdout: stdout.text,
      stderr: stderr.text,
      status,
      exit,
      exit_code: exit,
      truncated: this.#isCut || stdout.leftOut !== undefined || stderr.leftOut !== undefined,
      state_lost: this.#isStateLost,
    });
  }

  /** What the code had said until then is what one wants to see. */
  addTo(error: SandboxTimeout): SandboxTimeout {
    error.stdout = this.#kept.stdout.give().text;
    error.stderr = this.#kept.stderr.give().text;
    return error;
  }

  async #take(event: SseEvent): Promise<void> {
    const data = dataOf(event);
    switch (event.name) {
      case "stdout":
      case "stderr":
        return await this.#hear(event.name, String(data["chunk"] ?? ""));
      case "result": {
        const shown = (data["data"] ?? {}) as Record<string, string>;
        this.#results.push(shown);
        return await this.#listeners.onResult?.(new Result(shown));
      }
      case "failure":
        return void Object.assign(this.#failure, { error: data["error"], traceback: data["traceback"] });
      case "dropped":
        this.#isCut = true;
        return;
      case "restarted":
        this.#isStateLost = true;
        return;
      case "end":
        this.#end = data;
        return;
      case "error":
        throw apiError(String(data["error"] ?? ""), { code: String(data["code"] ?? "internal"), hint: worded(data) });
    }
  }

  async #hear(stream: "stdout" | "stderr", chunk: string): Promise<void> {
    this.#kept[stream].add(chunk);
    await (stream === "stdout" ? this.#listeners.onStdout : this.#listeners.onStderr)?.(chunk);
  }
}

function timedOut(): SandboxTimeout {
  return new SandboxTimeout("the code ran longer than its limit and was interrupted", { code: "timeout", status: 504 });
}

function dataOf(event: SseEvent): Record<string, unknown> {
  try {
    return JSON.parse(event.data) as Record<string, unknown>;
  } catch (error) {
    throw new ProtocolError(`the data of a ${event.name} event is not JSON`, error);
  }
}
