/** Running code. */

import type { Connection } from "./connection.js";
import { NotFound, Unsupported } from "./errors.js";
import { Execution } from "./execution.js";
import { freshId } from "./ids.js";
import { CALL_DEADLINE_MS, EXEC_SECONDS_MAX } from "./limits.js";
import type { Wire } from "./wire.js";

/** What a run of code may be given. */
export interface RunOptions {
  /** After this the code is interrupted and `SandboxTimeout` is thrown; a context stays. */
  timeoutSeconds?: number | undefined;
  /** Shapes stdout and stderr for a model, each into so many bytes. */
  maxOutputBytes?: number | undefined;
  /** Lists the files that changed while the code ran. */
  reportChanges?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

function deadlineMs(options: RunOptions): number {
  return (options.timeoutSeconds ?? EXEC_SECONDS_MAX) * 1000 + CALL_DEADLINE_MS;
}

/** Runs code as the template declares it. @internal */
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
  return new Execution(wire);
}

/** Runs code in a context. @internal */
export async function runInContext(
  connection: Connection,
  sandboxId: string,
  contextId: string,
  code: string,
  options: RunOptions,
): Promise<Execution> {
  const { timeoutSeconds } = options;
  const wire = await connection.json<Wire["RunResult"]>({
    method: "POST",
    path: ["sandboxes", sandboxId, "repl", "sessions", contextId, "run"],
    json: {
      code,
      // With a name of our own a repetition gives the same results and runs nothing twice.
      run_id: freshId("run"),
      timeout_ms: timeoutSeconds === undefined ? undefined : Math.max(1, Math.round(timeoutSeconds * 1000)),
      max_output_bytes: options.maxOutputBytes,
      report_changes: options.reportChanges,
    },
    isRepeatable: true,
    waitsLong: true,
    deadlineMs: deadlineMs(options),
    signal: options.signal,
  });
  return new Execution(wire);
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

/** How a template without contexts runs a language: afresh each time. */
const MODE_BY_LANGUAGE: ReadonlyMap<string, string> = new Map([
  ["python", "python"],
  ["bash", "shell"],
]);

/**
 * Runs code in the context that a sandbox has for a language, which is made when it is first
 * needed. Python's is the one that `run` uses in templates that keep state. @internal
 */
export async function runInDefaultContext(
  connection: Connection,
  sandboxId: string,
  nickname: string,
  code: string,
  options: RunOptions,
): Promise<Execution> {
  const language = LANGUAGE_BY_NICKNAME.get(nickname.toLowerCase()) ?? nickname.toLowerCase();
  const id = language === "python" ? "default" : `default-${language}`;
  try {
    return await runInContext(connection, sandboxId, id, code, options);
  } catch (error) {
    const mode = MODE_BY_LANGUAGE.get(language);
    if (error instanceof Unsupported && mode !== undefined) {
      return await runAsDeclared(connection, sandboxId, code, { ...options, mode });
    }
    if (!(error instanceof NotFound)) throw error;
  }
  await makeContext(connection, sandboxId, { id, language });
  return await runInContext(connection, sandboxId, id, code, options);
}
