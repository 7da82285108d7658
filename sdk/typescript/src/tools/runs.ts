/** Tools that run something: code, commands, and commands in copies. */

import { defaultContextId } from "../code.js";
import { DayflyError, NotFound, SandboxTimeout, Unsupported } from "../errors.js";
import { ExecResult } from "../exec-result.js";
import { Execution } from "../execution.js";
import { MODEL_BYTES_DEFAULT, NOTHING, type Section, shaped, withoutLineEnds } from "../model-text.js";
import type { Sandbox } from "../sandbox.js";
import { deleteQuietly, severalAtOnce } from "./copies.js";
import { failedBy, given, imagesOf, secondsOf, type ToolResult, type ToolTarget, withWord } from "./result.js";

/** Of each stream, so that the server chooses what to leave out: it keeps the lines around errors. */
const OUTPUT_BYTES = MODEL_BYTES_DEFAULT - 1000;
const COPIES_AT_ONCE = 4;
/** What copies live longer than their commands, if nobody is left to delete them. */
const COPIES_GRACE_SECONDS = 300;
const BASH_SECONDS = 120;
const TIMEOUT_STATUS = 124;

export function runCode(
  target: ToolTarget,
  { code, language, timeout_seconds }: { code: string; language: string; timeout_seconds: number },
): Promise<ToolResult> {
  return runIn(target, code, language, secondsOf(target, timeout_seconds));
}

/** Anthropic's `bash`: a shell that keeps its state, and can be started again. */
export async function runBash(
  target: ToolTarget,
  { command = "", restart }: { command?: string | undefined; restart: boolean },
): Promise<ToolResult> {
  if (!restart) return await runIn(target, command, "bash", secondsOf(target, BASH_SECONDS));
  try {
    await target.sandbox.context(defaultContextId("bash")).restart();
  } catch (error) {
    // There is none yet, or in this template each call has a new one: both are as good as new.
    if (!(error instanceof NotFound || error instanceof Unsupported)) throw error;
    await target.sandbox.info();
  }
  return given("the shell was started again");
}

async function runIn(target: ToolTarget, code: string, language: string, seconds: number): Promise<ToolResult> {
  const { sandbox, signal } = target;
  const how = { language, timeoutSeconds: seconds, maxOutputBytes: OUTPUT_BYTES, reportChanges: true, signal };
  let execution: Execution;
  try {
    execution = await sandbox.runCode(code, how);
  } catch (error) {
    if (!(error instanceof SandboxTimeout)) throw error;
    execution = timedOutCode(error, seconds);
  }
  const { images, hidden } = imagesOf(execution.results);
  const text = execution.forModel();
  const structured = {
    status: execution.status,
    stdout: execution.stdout,
    stderr: execution.stderr,
    value: execution.text ?? null,
    duration_ms: execution.durationMs,
    changed_files: execution.changedFiles ?? null,
  };
  return {
    text: hidden === 0 ? text : withWord(text, `cut: ${hidden} images are too large, too many or damaged`),
    isError: !execution.ok || execution.status !== "ok",
    images,
    structured,
  };
}

function timedOutCode({ stdout, stderr, hint }: SandboxTimeout, seconds: number): Execution {
  return new Execution({
    ...{ results: [], stdout, stderr, exit: TIMEOUT_STATUS, exit_code: TIMEOUT_STATUS, status: "timed_out" },
    ...{ duration_ms: Math.round(seconds * 1000), truncated: false, hint: hint ?? null },
  });
}

export async function runShell(
  target: ToolTarget,
  wish: { command: string; working_directory: string | undefined; timeout_seconds: number },
): Promise<ToolResult> {
  const seconds = secondsOf(target, wish.timeout_seconds);
  const result = await run(target.sandbox, wish.command, seconds, target.signal, wish.working_directory);
  return given(result.forModel(), structuredOf(result), !result.ok);
}

/** Runs a command; past its timeout it is a result as any other. */
async function run(
  sandbox: Sandbox,
  command: string,
  timeoutSeconds: number,
  signal: AbortSignal | undefined,
  cwd?: string,
): Promise<ExecResult> {
  const how = { timeoutSeconds, maxOutputBytes: OUTPUT_BYTES, reportChanges: true, signal, cwd };
  try {
    return await sandbox.exec(command, how);
  } catch (error) {
    if (!(error instanceof SandboxTimeout)) throw error;
    const { stdout, stderr, hint } = error;
    return new ExecResult({
      ...{ stdout, stderr, exit_code: TIMEOUT_STATUS, exec_id: error.execId ?? "", reason: "timeout" },
      ...{ duration_ms: Math.round(timeoutSeconds * 1000), truncated: false, hint: hint ?? null },
      ...{ stdout_bytes: 0, stderr_bytes: 0 },
    });
  }
}

function structuredOf(result: ExecResult): Record<string, unknown> {
  return {
    exit_code: result.exitCode,
    reason: result.reason,
    stdout: result.stdout,
    stderr: result.stderr,
    duration_ms: result.durationMs,
    changed_files: result.changedFiles ?? null,
  };
}

/** Each command in a copy of its own; the copies are deleted, whatever happens. */
export async function forkCommands(
  target: ToolTarget,
  { commands, timeout_seconds }: { commands: string[]; timeout_seconds: number },
): Promise<ToolResult> {
  const { sandbox, signal } = target;
  const seconds = secondsOf(target, timeout_seconds);
  const rounds = Math.ceil(commands.length / COPIES_AT_ONCE);
  const ttlSeconds = Math.ceil(seconds * rounds) + COPIES_GRACE_SECONDS;
  const children = await sandbox.forkMany(commands.length, { ttlSeconds, signal });
  try {
    const tries = children.map((child, index) => () => run(child, commands[index] ?? "", seconds, signal));
    return told(await severalAtOnce(tries, COPIES_AT_ONCE));
  } finally {
    await deleteQuietly(children);
  }
}

/** All that Dayfly says of the copies, then what they printed. */
function told(outcomes: readonly PromiseSettledResult<ExecResult>[]): ToolResult {
  const said = [`${outcomes.length} copies, all of them deleted again`];
  const sections: Section[] = [];
  const copies: Record<string, unknown>[] = [];
  outcomes.forEach((outcome, index) => {
    const copy = `copy ${index + 1}`;
    if (outcome.status === "rejected") {
      const error: unknown = outcome.reason;
      if (!(error instanceof DayflyError)) throw error;
      said.push(`${copy}: ${failedBy(error).text.replaceAll("\n", "; ")}`);
      copies.push({ error: error.message });
      return;
    }
    const { value } = outcome;
    const streams = { stdout: value.stdout, stderr: value.stderr };
    const isSilent = value.stdout === "" && value.stderr === "";
    said.push(`${copy}: ${[...value.said(true), ...(isSilent ? [NOTHING] : [])].join("; ")}`);
    copies.push(structuredOf(value));
    for (const [name, text] of Object.entries(streams)) {
      sections.push({ mark: `${copy} ${name}:`, name: `${name} of ${copy}`, text: withoutLineEnds(text) });
    }
  });
  return given(withoutLineEnds(shaped(said, sections, "")), { copies });
}
