/** Running a command to its end. */

import type { Connection } from "./connection.js";
import { GuestUnavailable, NotFound, SandboxTimeout } from "./errors.js";
import { Follower } from "./exec-follow.js";
import { type Command, commandBody, type ExecOptions } from "./exec-options.js";
import { type ExecResult, execResult } from "./exec-result.js";
import { AnswerLost, ExecInterrupted, InvalidSettings } from "./failures.js";
import { GONE } from "./hints.js";
import { CALL_DEADLINE_MS, EXEC_SECONDS_MAX } from "./limits.js";
import { readOutputText } from "./process-output.js";
import type { Wire } from "./wire.js";

/** @internal */
export async function runCommand(
  connection: Connection,
  sandboxId: string,
  command: Command,
  options: ExecOptions,
): Promise<ExecResult> {
  const { check, onStdout, onStderr, signal, ...wish } = options;
  const isFollowed = onStdout !== undefined || onStderr !== undefined;
  if (isFollowed && wish.reportChanges === true) {
    throw new InvalidSettings("reportChanges cannot be had together with onStdout or onStderr");
  }
  const body = commandBody(command, wish);
  const { maxOutputBytes } = wish;
  signal?.throwIfAborted();
  let result: ExecResult;
  try {
    result = isFollowed
      ? await new Follower(connection, sandboxId, body.exec_id, { onStdout, onStderr, signal, maxOutputBytes }).start(body)
      : await runPlain(connection, sandboxId, body, options);
  } catch (error) {
    if (signal?.aborted) await endQuietly(connection, sandboxId, body.exec_id);
    throw error;
  }
  return check === true ? result.check() : result;
}

async function runPlain(
  connection: Connection,
  sandboxId: string,
  body: Record<string, unknown> & { exec_id: string },
  options: ExecOptions,
): Promise<ExecResult> {
  try {
    const wire = await connection.json<Wire["ExecResult"]>({
      method: "POST",
      path: ["sandboxes", sandboxId, "exec"],
      json: body,
      // The id in the body keeps a repetition from starting a second process.
      isRepeatable: true,
      waitsLong: true,
      deadlineMs: (options.timeoutSeconds ?? EXEC_SECONDS_MAX) * 1000 + CALL_DEADLINE_MS,
      signal: options.signal,
    });
    return execResult(wire);
  } catch (error) {
    if (error instanceof AnswerLost) throw new ExecInterrupted(body.exec_id, "", "", error);
    if (error instanceof SandboxTimeout) await addOutput(connection, sandboxId, body.exec_id, error);
    if (error instanceof GuestUnavailable) await sayIfGone(connection, sandboxId, error);
    throw error;
  }
}

/** A guest that is gone because its sandbox is has left no output to look for. */
async function sayIfGone(connection: Connection, sandboxId: string, error: GuestUnavailable): Promise<void> {
  try {
    await connection.done({ method: "GET", path: ["sandboxes", sandboxId] });
  } catch (other) {
    if (other instanceof NotFound) error.hint = GONE;
  }
}

/** What the command had written is the best clue to why it took so long. */
async function addOutput(
  connection: Connection,
  sandboxId: string,
  execId: string,
  error: SandboxTimeout,
): Promise<void> {
  error.execId = execId;
  try {
    error.stdout = await readOutputText(connection, sandboxId, execId, "stdout");
    error.stderr = await readOutputText(connection, sandboxId, execId, "stderr");
  } catch {
    // The timeout is what matters, with or without it.
  }
}

/** The caller has had enough; the command should not go on for nobody. */
async function endQuietly(connection: Connection, sandboxId: string, execId: string): Promise<void> {
  const call = { method: "DELETE", path: ["sandboxes", sandboxId, "processes", execId] } as const;
  await connection.done(call).catch(() => undefined);
}
