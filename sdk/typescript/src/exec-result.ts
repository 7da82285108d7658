/** How a command ended. */

import { CommandFailed } from "./failures.js";
import { worded } from "./hints.js";
import { modelText, type ModelTextOptions } from "./model-text.js";
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
    this.hint = worded(wire) ?? memoryHint(wire.reason);
    this.changedFiles = wire.changed_files ?? undefined;
  }

  /** Whether it ended with 0. */
  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** Everything as one text for a model: the output, how it ended unless with 0, and the hint. */
  forModel(options: ModelTextOptions = {}): string {
    const status = this.ok ? undefined : `[exit ${this.exitCode}]`;
    const changed = this.changedFiles?.map((name) => `[changed: ${name}]`) ?? [];
    const reason = ["exited", "signaled", ""].includes(this.reason) ? undefined : `[${this.reason}]`;
    const hint = this.hint === undefined ? undefined : `[hint: ${this.hint}]`;
    const nothing = "[the command succeeded and printed nothing]";
    return modelText([this.stdout, this.stderr, status, ...changed, reason, hint], nothing, options);
  }

  /** Throws `CommandFailed` unless it ended with 0; otherwise gives this back. */
  check(): this {
    if (!this.ok) throw new CommandFailed(this);
    return this;
  }
}

/** Why a command that says nothing was killed. */
function memoryHint(reason: string): string | undefined {
  if (reason !== "out_of_memory") return undefined;
  const what = "the sandbox's memory was used up, and the command was killed";
  return `${what}; use less of it at once, or a template with more memory`;
}
