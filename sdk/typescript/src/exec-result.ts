/** How a command ended. */

import { CommandFailed } from "./failures.js";
import { worded } from "./hints.js";
import { maxBytesOf, type ModelTextOptions, named, NOTHING, remarks, seconds, shaped, stream } from "./model-text.js";
import type { Wire } from "./wire.js";

/** A part of the output that is not in the result. */
export interface Omission {
  stream: string;
  offset: number;
  bytes: number;
  /** Whether `process.outputBytes` still gives it. */
  readable: boolean;
}

/**
 * The outcome of a command. A status other than 0 is an outcome like any other.
 *
 * @example
 * ```ts
 * const result = await sandbox.exec("make test");
 * if (!result.ok) console.log(result.exitCode, result.stderr);
 * ```
 */
export class ExecResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Always a number: 128 + n for signal n. */
  readonly exitCode: number;
  /** `exited`, `signaled`, `out_of_memory`, `limit_exceeded` or `killed`. */
  readonly reason: string;
  readonly signal: number | undefined;
  readonly durationMs: number;
  /** A stream was longer than what is given here; `sandbox.process(execId).outputBytes` has the rest. */
  readonly truncated: boolean;
  /** How long the streams really were, where that is known. */
  readonly stdoutBytes: number | undefined;
  readonly stderrBytes: number | undefined;
  readonly execId: string;
  /** Limits of its own that the command ran into: memory, cpu, processes. */
  readonly limitsHit: readonly string[];
  readonly omitted: readonly Omission[];
  /** What to do about it, in words for a model. */
  readonly hint: string | undefined;
  /** With `reportChanges`: the files that changed meanwhile. */
  readonly changedFiles: readonly string[] | undefined;

  /** @internal */
  constructor(wire: Wire["ExecResult"]) {
    this.stdout = wire.stdout;
    this.stderr = wire.stderr;
    this.exitCode = wire.exit_code;
    this.reason = wire.reason;
    this.signal = wire.signal ?? undefined;
    this.durationMs = wire.duration_ms;
    this.truncated = wire.truncated;
    this.stdoutBytes = wire.stdout_bytes;
    this.stderrBytes = wire.stderr_bytes;
    this.execId = wire.exec_id;
    this.limitsHit = wire.limits_hit ?? [];
    this.omitted = wire.omitted ?? [];
    this.hint = worded(wire);
    this.changedFiles = wire.changed_files ?? undefined;
  }

  /** Whether it ended with 0. */
  get ok(): boolean {
    return this.exitCode === 0;
  }

  /**
   * Everything as one text for a model: what Dayfly says of it first, then what was printed, behind the
   * marks `stdout:` and `stderr:`. Of longer output than `maxBytes` the head and the tail are given.
   */
  forModel(options: ModelTextOptions = {}): string {
    const maxBytes = maxBytesOf(options);
    const sections = [stream("stdout", this.stdout), stream("stderr", this.stderr)];
    const isSilent = sections.every(({ text }) => text === "");
    return shaped(this.said(isSilent), sections, NOTHING, maxBytes);
  }

  /** What Dayfly says of it, line by line. @internal */
  said(isSilent: boolean): string[] {
    return [this.#end(), ...remarks(this, isSilent)];
  }

  /** How it ended, in one line. */
  #end(): string {
    const duration = seconds(this.durationMs);
    if (this.reason === "timeout" || this.reason === "timed_out") {
      return `timeout after ${duration}, the command was ended (exit code ${this.exitCode})`;
    }
    const text = `exit code ${this.exitCode}, ${duration}`;
    if (this.reason === "signaled" && this.signal !== undefined) return `${text}, ended by signal ${this.signal}`;
    if (this.reason === "limit_exceeded") {
      return `${text}, limit exceeded: ${this.limitsHit.map((name) => named(name)).join(", ")}`;
    }
    return ["exited", ""].includes(this.reason) ? text : `${text}, ${named(this.reason).replaceAll("_", " ")}`;
  }

  /** Throws `CommandFailed` unless it ended with 0; otherwise gives this back. */
  check(): this {
    if (!this.ok) throw new CommandFailed(this);
    return this;
  }
}

const MEMORY_HINT =
  "the sandbox's memory was used up, and the command was killed; use less of it at once, or a template with more memory";

/** How a command ended, with the hint that a server of before does not give. @internal */
export function execResult(wire: Wire["ExecResult"]): ExecResult {
  const isSaid = wire.reason !== "out_of_memory" || (wire.hint ?? undefined) !== undefined;
  return new ExecResult(isSaid ? wire : { ...wire, hint: MEMORY_HINT });
}
