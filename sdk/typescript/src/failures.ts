/** Failures that the server did not word: of the connection, of a command, of code. */

import { DayflyError } from "./errors.js";
import type { ExecResult } from "./exec-result.js";
import type { ExecutionError } from "./execution.js";

/** The call cannot be made as it is. Nothing was sent. */
export class InvalidSettings extends DayflyError {
  constructor(message: string) {
    super(message, { code: "invalid_settings" });
  }
}

/** The server cannot be reached. Nothing was sent. */
export class ServerUnreachable extends DayflyError {
  constructor(url: string, cause: unknown) {
    super(`cannot reach ${url}`, { code: "server_unreachable", cause, hint: "is the daemon running?" });
  }
}

/** The request went out and its answer did not come: whether it was carried out is not known. */
export class AnswerLost extends DayflyError {
  constructor(cause?: unknown, message = "the connection to the server was lost", code = "answer_lost") {
    super(message, { code, cause });
  }
}

/** The server did not answer in time. */
export class AnswerTimeout extends AnswerLost {
  constructor(limitMs: number) {
    super(undefined, `no answer from the server within ${limitMs / 1000} s`, "answer_timeout");
  }
}

/** The answer does not fit the documented shape. */
export class ProtocolError extends DayflyError {
  constructor(what: string, cause?: unknown) {
    super(`the server's answer makes no sense: ${what}`, { code: "protocol_error", cause });
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
 * A command was started, and how it ended is not known: the connection was lost and could not be
 * made again in time. The command may still run; `sandbox.process(error.execId)` finds it.
 */
export class ExecInterrupted extends DayflyError {
  readonly execId: string;
  /** What had come until then. */
  readonly stdout: string;
  readonly stderr: string;

  constructor(execId: string, stdout: string, stderr: string, cause: unknown) {
    super("the outcome of the command is unknown", { code: "exec_interrupted", cause });
    this.execId = execId;
    this.stdout = stdout;
    this.stderr = stderr;
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
