/** What code gave. */

import type { Omission } from "./exec-result.js";
import { CodeFailed } from "./failures.js";
import { worded } from "./hints.js";
import {
  maxBytesOf,
  type ModelTextOptions,
  named,
  NOTHING,
  pictures,
  remarks,
  seconds,
  type Section,
  shaped,
  stream,
  withoutLineEnds,
} from "./model-text.js";
import { requireBuiltIn } from "./runtime.js";
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
  /** What the code wrote there; after an error it ends with the traceback, as on a terminal. */
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
  /** With `maxOutputBytes`: the parts of the output that are left out. */
  readonly omitted: readonly Omission[];
  /** The interpreter had ended before, and the code ran in a new one. */
  readonly stateLost: boolean;
  readonly #wire: Wire["RunResult"];

  /** @internal */
  constructor(wire: Wire["RunResult"], isRestarted = false) {
    this.#wire = wire;
    const isServersWord = wire.state_lost === true;
    this.stateLost = isRestarted || isServersWord;
    this.results = wire.results.map((data) => new Result(data));
    this.stdout = wire.stdout;
    this.error = executionError(wire);
    this.stderr = withTraceback(wire.stderr, this.error);
    this.exitCode = wire.exit_code;
    this.status = wire.status;
    this.durationMs = wire.duration_ms;
    this.executionCount = wire.execution_count ?? undefined;
    this.truncated = wire.truncated;
    this.omitted = wire.omitted ?? [];
    const told = worded(wire);
    // The server's hint says it where it knows of it; the events of a stream have no hint.
    const isSaid = isServersWord && told !== undefined;
    const hints = [this.stateLost && !isSaid ? STATE_LOST : undefined, told].filter((hint) => hint !== undefined);
    this.hint = hints.length === 0 ? undefined : hints.join("; ");
    this.changedFiles = wire.changed_files ?? undefined;
  }

  /** The same, of code that ran in a new interpreter. @internal */
  withLostState(): Execution {
    return new Execution(this.#wire, true);
  }

  get ok(): boolean {
    return this.error === undefined && this.exitCode === 0;
  }

  /** Throws `CodeFailed` if the code raised; otherwise gives this back. */
  raiseForError(): this {
    if (this.error !== undefined) throw new CodeFailed(this.error);
    return this;
  }

  /** Writes the last PNG to a local file and gives its path. Needs Node, Bun or Deno. */
  async savePng(path: string): Promise<string> {
    const { png } = this;
    if (png === undefined) throw new TypeError("the code displayed no PNG");
    const { writeFile } = await requireBuiltIn("node:fs/promises", "savePng");
    await writeFile(path, png);
    return path;
  }

  /**
   * Everything as one text for a model: what Dayfly says of it first, then output and results, behind the
   * marks `stdout:`, `stderr:` and `result`. Of longer output than `maxBytes` the head and the tail are
   * given. Images are not part of it, only that there are some.
   */
  forModel(options: ModelTextOptions = {}): string {
    const maxBytes = maxBytesOf(options);
    const sections = [stream("stdout", this.stdout), stream("stderr", this.stderr), ...this.results.map(section)];
    const isSilent = this.results.length === 0 && sections.every(({ text }) => text === "");
    const nothing = this.status === "ok" ? SILENT : NOTHING;
    return shaped([this.#end(), ...remarks(this, isSilent)], sections, nothing, maxBytes);
  }

  /** How it ended, in one line. */
  #end(): string {
    const duration = seconds(this.durationMs);
    if (this.status === "timed_out") return `timeout after ${duration}, the code was interrupted`;
    if (this.status === "interrupted") return `interrupted after ${duration}`;
    if (this.status === "died") return `the interpreter ended after ${duration}, its state is lost`;
    if (this.error !== undefined) return `error ${named(this.error.name)}, ${duration}`;
    return `${named(this.status)}, ${duration}`;
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

const STATE_LOST = "the interpreter was started again, its state is lost";
const SILENT = `${NOTHING}; print what you want to see, or end with an expression`;
/** What a value is shown as that has no plain text. */
const TEXTS = ["text/plain", "text/markdown", "application/json", "text/latex", "text/html"];

/** A result as a part of a text for a model, which says what pictures there are of it. */
function section({ data, formats }: Result): Section {
  const kinds = formats.filter((kind) => kind.startsWith("image/"));
  const kind = TEXTS.find((one) => one in data);
  const text = kind === undefined ? "" : withoutLineEnds(data[kind] ?? "");
  const mark = kinds.length === 0 ? "result" : `result (with ${pictures(kinds)})`;
  return { mark: text === "" ? mark : `${mark}:`, name: "a result", text };
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

/** The wire has them apart; who reads `stderr` after a failure wants to see why. */
function withTraceback(stderr: string, error: ExecutionError | undefined): string {
  if (error === undefined || error.traceback === "") return stderr;
  const gap = stderr === "" || stderr.endsWith("\n") ? "" : "\n";
  return `${stderr}${gap}${error.traceback}\n`;
}

function decodeBase64(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined;
  return Uint8Array.from(atob(text.replace(/\s/g, "")), (character) => character.charCodeAt(0));
}
