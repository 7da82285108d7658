/** Failures that the server did not word: of the connection, of a command, of code. */

import type { TemplateBuild, WireFailedStep } from "./builds.js";
import { DayflyError, NotFound } from "./errors.js";
import type { ExecResult } from "./exec-result.js";
import type { ExecutionError } from "./execution.js";
import { GONE } from "./hints.js";

/** The call cannot be made as it is. Nothing was sent. */
export class InvalidSettings extends DayflyError {
  constructor(message: string, hint?: string) {
    super(message, { code: "invalid_settings", hint });
  }
}

/** The server cannot be reached. Nothing was sent. */
export class ServerUnreachable extends DayflyError {
  constructor(url: string, cause: unknown, hint = UNREACHABLE_HINT) {
    super(`cannot reach ${url}`, { code: "server_unreachable", cause, hint });
  }
}

const UNREACHABLE_HINT = "is dayflyd running there? The address comes from apiUrl, DAYFLY_API_URL or `dayfly login`";

/** The certificate of the server is not one to trust. Nothing was sent, and asking again does not help. */
export class CertificateRefused extends DayflyError {
  constructor(url: string, cause: unknown) {
    const reason = innermostText(cause);
    super(`the certificate of ${url} is refused${reason === "" ? "" : `: ${reason}`}`, {
      code: "certificate_refused",
      cause,
      hint: "name the file of its authority in NODE_EXTRA_CA_CERTS (Deno: DENO_CERT), or give a `fetch` that knows it",
    });
  }
}

/** What the library at the bottom said. */
function innermostText(error: unknown): string {
  let text = "";
  let next = error;
  for (let step = 0; step < 16 && next instanceof Error; step += 1) {
    text = next.message;
    next = next.cause;
  }
  return text;
}

/** The request was sent and no response came: whether it was carried out is not known. */
export class AnswerLost extends DayflyError {
  constructor(cause?: unknown, message = "the connection to the server was lost", code = "answer_lost", hint?: string) {
    super(message, { code, cause, hint });
  }
}

/** The server did not respond in time, or what was waited for did not happen. */
export class AnswerTimeout extends AnswerLost {
  constructor(limitMs: number, message = `no response from the server within ${limitMs / 1000} s`, hint?: string) {
    super(undefined, message, "answer_timeout", hint);
  }
}

/** The response does not come from a Dayfly server. */
export class ProtocolError extends DayflyError {
  constructor(what: string, cause?: unknown, hint?: string) {
    super(`the response does not come from a Dayfly server: ${what}`, { code: "protocol_error", cause, hint });
  }
}

/** A command ended with something other than 0, and the caller asked for `check`. */
export class CommandFailed extends DayflyError {
  readonly result: ExecResult;

  constructor(result: ExecResult) {
    const lastLine = result.stderr.trimEnd().split("\n").at(-1) ?? "";
    const how = `the command ended with ${result.exitCode} (${result.reason})`;
    super(lastLine === "" ? how : `${how}: ${lastLine}`, { code: "command_failed", hint: result.hint });
    this.result = result;
  }

  get exitCode(): number {
    return this.result.exitCode;
  }

  get stdout(): string {
    return this.result.stdout;
  }

  get stderr(): string {
    return this.result.stderr;
  }
}

/**
 * A template could not be built. Steps that were done are kept for the next build.
 *
 * When a step failed, `step` is its text, `exitCode` how it ended, `lines` the last that it said, and `sandboxId`
 * where that was: `dayfly template debug` opens a shell there for some minutes.
 */
export class BuildFailed extends DayflyError {
  /** What the server says of it. */
  readonly build: TemplateBuild;
  readonly step: string | undefined;
  readonly exitCode: number | undefined;
  readonly lines: readonly string[];
  readonly sandboxId: string | undefined;

  /** @internal */
  constructor(build: TemplateBuild, step: WireFailedStep | undefined) {
    const lines = step?.tail ?? [];
    const text = [build.error ?? "the template could not be built", ...lines.map((line) => `  | ${line}`)].join("\n");
    super(text, {
      code: "build_failed",
      hint: step === undefined ? undefined : `to look: dayfly template debug ${step.sandbox}`,
    });
    this.build = build;
    this.step = step?.text;
    this.exitCode = step?.exit_code;
    this.lines = lines;
    this.sandboxId = step?.sandbox;
  }
}

/**
 * A command was started, and how it ended is not known: the connection was lost and could not be
 * made again in time. The command may still run; `sandbox.process(error.execId)` finds it.
 */
export class ExecInterrupted extends DayflyError {
  readonly execId: string;
  /** What had come until then. */
  readonly stdout: string;
  readonly stderr: string;

  constructor(execId: string, stdout: string, stderr: string, cause: unknown) {
    // A sandbox that is gone has taken its commands along.
    const hint = cause instanceof NotFound ? GONE : `the command may still run: sandbox.process("${execId}") finds it`;
    super("the outcome of the command is unknown", { code: "exec_interrupted", cause, hint });
    this.execId = execId;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

/** Not all children of a fork could be made. Those that were have been deleted; none stays. */
export class ForkFailed extends DayflyError {
  /** The ids of the children that were made, and are deleted. */
  readonly children: readonly string[];
  /** Why a child was not made, by the id that it would have had. */
  readonly failures: Readonly<Record<string, string>>;

  constructor(children: readonly string[], failures: Readonly<Record<string, string>>) {
    const reasons = Object.values(failures);
    const count = children.length + reasons.length;
    super(`${reasons.length} of ${count} children could not be made: ${reasons[0] ?? "no reason was given"}`, {
      code: "fork_failed",
      hint: "partial: true keeps those that can be made",
    });
    this.children = children;
    this.failures = failures;
  }
}

/** Code raised; see `execution.raiseForError`. */
export class CodeFailed extends DayflyError {
  readonly error: ExecutionError;

  constructor(error: ExecutionError) {
    super(error.value === "" ? error.name : `${error.name}: ${error.value}`, { code: "code_failed" });
    this.error = error;
  }
}
