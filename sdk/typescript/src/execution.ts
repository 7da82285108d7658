/** What code gave. */

import { CodeFailed } from "./failures.js";
import type { Wire } from "./wire.js";

/** The error that ended the code. */
export interface ExecutionError {
  /** Such as `ZeroDivisionError`. */
  name: string;
  value: string;
  traceback: string;
}

/** One thing that the code displayed, in every form that it has. */
export class Result {
  /** By MIME type: text as it is, images in base 64. */
  readonly data: Readonly<Record<string, string>>;

  /** @internal */
  constructor(data: Readonly<Record<string, string>>) {
    this.data = data;
  }

  /** The MIME types that it has. */
  get formats(): string[] {
    return Object.keys(this.data).sort();
  }

  get text(): string | undefined {
    return this.data["text/plain"];
  }

  get html(): string | undefined {
    return this.data["text/html"];
  }

  get markdown(): string | undefined {
    return this.data["text/markdown"];
  }

  get latex(): string | undefined {
    return this.data["text/latex"];
  }

  get svg(): string | undefined {
    return this.data["image/svg+xml"];
  }

  get png(): Uint8Array | undefined {
    return decodeBase64(this.data["image/png"]);
  }

  get jpeg(): Uint8Array | undefined {
    return decodeBase64(this.data["image/jpeg"]);
  }

  /** Parsed. */
  get json(): unknown {
    const text = this.data["application/json"];
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  }
}

/**
 * The outcome of code. Code that raises is an outcome with `error` set.
 *
 * `text`, `png` and the other forms are those of the last result that has them.
 *
 * @example
 * ```ts
 * const execution = await sandbox.runCode("6 * 7");
 * console.log(execution.text); // "42"
 * ```
 */
export class Execution {
  readonly results: readonly Result[];
  readonly stdout: string;
  readonly stderr: string;
  readonly error: ExecutionError | undefined;
  /** 0, or 1 after an error; a command's own status where code runs as a command. */
  readonly exitCode: number;
  /** `ok`, `error`, `interrupted` or `died`. */
  readonly status: string;
  readonly durationMs: number;
  readonly executionCount: number | undefined;
  /** Something was longer than what is given here. */
  readonly truncated: boolean;
  /** What to do about it, in words for a model. */
  readonly hint: string | undefined;
  /** With `reportChanges`: the files that changed meanwhile. */
  readonly changedFiles: readonly string[] | undefined;

  /** @internal */
  constructor(wire: Wire["RunResult"]) {
    this.results = wire.results.map((data) => new Result(data));
    this.stdout = wire.stdout;
    this.stderr = wire.stderr;
    this.error = executionError(wire);
    this.exitCode = wire.exit_code;
    this.status = wire.status;
    this.durationMs = wire.duration_ms;
    this.executionCount = wire.execution_count ?? undefined;
    this.truncated = wire.truncated;
    this.hint = wire.hint ?? undefined;
    this.changedFiles = wire.changed_files ?? undefined;
  }

  get ok(): boolean {
    return this.error === undefined && this.exitCode === 0;
  }

  /** Throws `CodeFailed` if the code raised; otherwise gives this back. */
  raiseForError(): this {
    if (this.error !== undefined) throw new CodeFailed(this.error);
    return this;
  }

  get text(): string | undefined {
    return this.#last("text");
  }

  get html(): string | undefined {
    return this.#last("html");
  }

  get markdown(): string | undefined {
    return this.#last("markdown");
  }

  get latex(): string | undefined {
    return this.#last("latex");
  }

  get svg(): string | undefined {
    return this.#last("svg");
  }

  get png(): Uint8Array | undefined {
    return this.#last("png");
  }

  get jpeg(): Uint8Array | undefined {
    return this.#last("jpeg");
  }

  get json(): unknown {
    return this.#last("json");
  }

  #last<Form extends ResultForm>(form: Form): Result[Form] {
    for (const result of [...this.results].reverse()) {
      const found = result[form];
      if (found !== undefined) return found;
    }
    return undefined as Result[Form];
  }
}

type ResultForm = "text" | "html" | "markdown" | "latex" | "svg" | "png" | "jpeg" | "json";

/** The wire has the error as one line, `Name: text`. */
function executionError(wire: Wire["RunResult"]): ExecutionError | undefined {
  const line = wire.error ?? undefined;
  if (line === undefined) return undefined;
  const colon = line.indexOf(": ");
  const name = colon === -1 ? line : line.slice(0, colon);
  return { name, value: colon === -1 ? "" : line.slice(colon + 2), traceback: (wire.traceback ?? []).join("\n") };
}

function decodeBase64(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined;
  return Uint8Array.from(atob(text.replace(/\s/g, "")), (character) => character.charCodeAt(0));
}
