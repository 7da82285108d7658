/** Running code. */

import { CodeCollector, type CodeListeners, hasListeners } from "./code-stream.js";
import type { Connection } from "./connection.js";
import { NotFound, SandboxTimeout, Unsupported } from "./errors.js";
import { runCommand } from "./exec.js";
import { Execution } from "./execution.js";
import { AnswerLost, InvalidSettings } from "./failures.js";
import { freshId } from "./ids.js";
import type { KnownContexts } from "./known-contexts.js";
import { CALL_DEADLINE_MS, EXEC_SECONDS_MAX, INTERRUPT_DEADLINE_MS } from "./limits.js";
import { refuseUnknown } from "./names.js";
import type { Wire } from "./wire.js";

/** What a run of code may be given. */
export interface RunOptions extends CodeListeners {
  /** After this the code is interrupted and `SandboxTimeout` is thrown, with its output; a context stays. */
  timeoutSeconds?: number | undefined;
  /** Shapes stdout and stderr for a model, each into so many bytes. */
  maxOutputBytes?: number | undefined;
  /** Lists the files that changed while the code ran. Not together with a listener. */
  reportChanges?: boolean | undefined;
  /** Interrupts the code, so that its context is free again, and throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

const RUN_OPTIONS = [
  ...["timeoutSeconds", "maxOutputBytes", "reportChanges", "signal", "onStdout", "onStderr", "onResult"],
];

/** Refuses what cannot be had. `more` names further options of the method. @internal */
export function checkRunOptions(method: string, options: RunOptions, more: readonly string[] = []): void {
  refuseUnknown(method, options, [...RUN_OPTIONS, ...more]);
  if (options.reportChanges === true && hasListeners(options)) {
    throw new InvalidSettings("reportChanges cannot be had together with onStdout, onStderr or onResult");
  }
}

function deadlineMs(options: RunOptions): number {
  return (options.timeoutSeconds ?? EXEC_SECONDS_MAX) * 1000 + CALL_DEADLINE_MS;
}

/** Runs code as the template declares it. Listeners hear everything at its end. @internal */
export async function runAsDeclared(
  connection: Connection,
  sandboxId: string,
  code: string,
  options: RunOptions & { mode?: string | undefined },
): Promise<Execution> {
  const wire = await connection.json<Wire["RunResult"]>({
    method: "POST",
    path: ["sandboxes", sandboxId, "run"],
    json: {
      code,
      mode: options.mode,
      timeout_seconds: options.timeoutSeconds,
      max_output_bytes: options.maxOutputBytes,
      report_changes: options.reportChanges,
    },
    deadlineMs: deadlineMs(options),
    signal: options.signal,
  });
  const execution = new Execution(wire);
  if (wire.stdout !== "") await options.onStdout?.(wire.stdout);
  if (wire.stderr !== "") await options.onStderr?.(wire.stderr);
  for (const result of execution.results) await options.onResult?.(result);
  return execution;
}

/** A sandbox and what is known of its contexts. @internal */
export interface CodePlace {
  connection: Connection;
  sandboxId: string;
  known: KnownContexts;
}

/** Runs code in a context. One whose interpreter has ended is started again first. @internal */
export async function runInContext(
  { connection, sandboxId, known }: CodePlace,
  contextId: string,
  code: string,
  options: RunOptions,
): Promise<Execution> {
  const { signal } = options;
  signal?.throwIfAborted();
  const path = ["sandboxes", sandboxId, "repl", "sessions", contextId];
  const isLost = known.dead.has(contextId);
  if (isLost) {
    await connection.done({ method: "POST", path: [...path, "restart"], signal });
    known.dead.delete(contextId);
  }
  const run = new ContextRun(connection, path, code, options);
  const execution = await known.during(contextId, run.id, async () => {
    try {
      return hasListeners(options) ? await run.streamed() : await run.plain();
    } catch (error) {
      // A run that waits behind another one cannot be taken back, and the other is not ours to end.
      if (signal?.aborted && known.isFirst(contextId, run.id)) await run.interruptQuietly();
      throw error;
    }
  });
  if (execution.status === "died") known.dead.add(contextId);
  return isLost ? execution.withLostState() : execution;
}

/** One run. It has a name of its own: a repetition gives the same results and runs nothing twice. */
class ContextRun {
  readonly id = freshId("run");
  readonly #connection: Connection;
  readonly #context: readonly string[];
  readonly #options: RunOptions;
  readonly #json: Record<string, unknown>;

  constructor(connection: Connection, context: readonly string[], code: string, options: RunOptions) {
    const { timeoutSeconds } = options;
    this.#connection = connection;
    this.#context = context;
    this.#options = options;
    this.#json = {
      code,
      run_id: this.id,
      timeout_ms: timeoutSeconds === undefined ? undefined : Math.max(1, Math.round(timeoutSeconds * 1000)),
    };
  }

  async plain(): Promise<Execution> {
    const { maxOutputBytes, reportChanges, signal } = this.#options;
    try {
      const wire = await this.#connection.json<Wire["RunResult"]>({
        method: "POST",
        path: [...this.#context, "run"],
        json: { ...this.#json, max_output_bytes: maxOutputBytes, report_changes: reportChanges },
        isRepeatable: true,
        waitsLong: true,
        deadlineMs: deadlineMs(this.#options),
        signal,
      });
      return new Execution(wire);
    } catch (error) {
      if (error instanceof SandboxTimeout && error.stdout === "") await this.#addOutput(error);
      throw error;
    }
  }

  async streamed(): Promise<Execution> {
    const collector = new CodeCollector(this.#options);
    try {
      await collector.follow(this.#connection, this.#streamCall());
    } catch (error) {
      // The events have no offsets to go on from, but the run has a name: its whole result can be had.
      if (error instanceof AnswerLost) return await this.plain();
      throw error;
    }
    const execution = collector.execution();
    return this.#options.maxOutputBytes === undefined ? execution : await this.plain();
  }

  /** The caller has had enough; the code must not go on for nobody, nor keep its context busy. */
  async interruptQuietly(): Promise<void> {
    const path = [...this.#context, "interrupt"];
    const call = { method: "POST", path, deadlineMs: INTERRUPT_DEADLINE_MS } as const;
    await this.#connection.done(call).catch(() => undefined);
  }

  /** What a run that was ended had said: asked for by its name, it is told again. */
  async #addOutput(error: SandboxTimeout): Promise<void> {
    const collector = new CodeCollector({});
    try {
      await collector.follow(this.#connection, { ...this.#streamCall(), deadlineMs: INTERRUPT_DEADLINE_MS });
    } catch {
      // The timeout is what matters, with or without it.
    }
    collector.addTo(error);
  }

  #streamCall() {
    const path = [...this.#context, "run", "stream"];
    return { method: "POST", path, json: this.#json, isRepeatable: true, signal: this.#options.signal } as const;
  }
}

/** Makes a context. With an `id` of the caller's a repetition gives the same one. @internal */
export function makeContext(
  connection: Connection,
  sandboxId: string,
  wish: { id: string; language: string; cwd?: string | undefined },
): Promise<Wire["Context"]> {
  return connection.json<Wire["Context"]>({
    method: "POST",
    path: ["sandboxes", sandboxId, "repl", "sessions"],
    json: wish,
    isRepeatable: true,
  });
}

/** Languages as people write them. */
const LANGUAGE_BY_NICKNAME: ReadonlyMap<string, string> = new Map([
  ["py", "python"],
  ["python3", "python"],
  ["js", "javascript"],
  ["node", "javascript"],
  ["sh", "bash"],
  ["shell", "bash"],
]);

export function languageName(nickname: string): string {
  return LANGUAGE_BY_NICKNAME.get(nickname.toLowerCase()) ?? nickname.toLowerCase();
}

/** The context that a sandbox has for a language. Python's is the one that `run` uses where it keeps state. */
export function defaultContextId(language: string): string {
  return language === "python" ? "default" : `default-${language}`;
}

/** The language of such a context, or `undefined` for one that somebody made. */
export function defaultContextLanguage(id: string): string | undefined {
  if (id === "default") return "python";
  return id.startsWith("default-") ? id.slice("default-".length) : undefined;
}

/** How a template without contexts runs a language: afresh each time, with the code as input or as command. */
const COMMAND_BY_LANGUAGE: ReadonlyMap<string, readonly string[] | undefined> = new Map([
  ["python", ["python3", "-"]],
  ["bash", undefined],
]);

/** Runs code in the context that a sandbox has for a language, which is made when it is first needed. @internal */
export async function runInDefaultContext(
  place: CodePlace,
  language: string,
  code: string,
  options: RunOptions,
): Promise<Execution> {
  const id = defaultContextId(language);
  try {
    return await runInContext(place, id, code, options);
  } catch (error) {
    if (error instanceof Unsupported && COMMAND_BY_LANGUAGE.has(language)) {
      return await runAsCommand(place, language, code, options);
    }
    if (!(error instanceof NotFound)) throw error;
  }
  await makeContext(place.connection, place.sandboxId, { id, language });
  return await runInContext(place, id, code, options);
}

/** A fresh interpreter, which is ended when nobody waits for it any more. */
async function runAsCommand(
  { connection, sandboxId }: CodePlace,
  language: string,
  code: string,
  options: RunOptions,
): Promise<Execution> {
  const { onResult: _, ...rest } = options;
  const program = COMMAND_BY_LANGUAGE.get(language);
  const wish = program === undefined ? rest : { ...rest, stdin: code };
  const result = await runCommand(connection, sandboxId, program ?? code, wish);
  const { stdout, stderr, exitCode: exit, durationMs, truncated, hint, changedFiles, ok } = result;
  return new Execution({
    ...{ results: [], stdout, stderr, exit, exit_code: exit, duration_ms: durationMs, truncated },
    ...{ status: ok ? "ok" : "error", error: ok ? null : `exit status ${exit}`, hint: hint ?? null },
    changed_files: changedFiles === undefined ? null : [...changedFiles],
  });
}
