/** A command that runs by itself. */

import { Attachment } from "./attachment.js";
import type { Connection } from "./connection.js";
import { pause } from "./deadline.js";
import { NotFound, SandboxTimeout } from "./errors.js";
import { Follower, type Listeners } from "./exec-follow.js";
import { type ExecResult, execResult } from "./exec-result.js";
import { AnswerTimeout } from "./failures.js";
import { checkedName } from "./ids.js";
import { CALL_DEADLINE_MS, PROCESS_WAIT_SECONDS } from "./limits.js";
import { refuseUnknown, toCamel } from "./names.js";
import { type OutputName, type OutputPart, readOutputPart, readOutputText } from "./process-output.js";
import type { ProcessInfo, Wire } from "./wire.js";

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGUSR2: 12,
  SIGTERM: 15,
  SIGCONT: 18,
  SIGSTOP: 19,
};

const ATTACH_OPTIONS = ["onStdout", "onStderr", "signal", "stdoutOffset", "stderrOffset"];

/**
 * A command in the background. It belongs to its sandbox: losing this object, or the connection,
 * does not end it.
 *
 * @example
 * ```ts
 * const server = await sandbox.execBackground("python3 -m http.server 8000");
 * // ...
 * await server.kill();
 * ```
 */
export class Process {
  /** Names it: `sandbox.process(execId)` finds it again. */
  readonly execId: string;
  readonly #connection: Connection;
  readonly #sandboxId: string;
  /** How much input was sent, so that a repetition is not taken twice. */
  #stdinOffset: number | undefined;
  #lastSent: Promise<void> = Promise.resolve();
  #known: ProcessInfo | undefined;

  /** @internal */
  constructor(connection: Connection, sandboxId: string, execId: string, known?: Wire["Process"]) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
    this.execId = checkedName("exec id", execId);
    this.#known = known && toCamel(known);
  }

  /** The beginning of the command, as far as this object knows; `info` asks. */
  get title(): string | undefined {
    return this.#known?.title;
  }

  get pid(): number | undefined {
    return this.#known?.pid;
  }

  /** `running` or `exited`, as far as this object knows; `info` asks. */
  get status(): string | undefined {
    return this.#known?.state;
  }

  /** What the server says about it now. */
  async info(): Promise<ProcessInfo> {
    return (this.#known = toCamel(await this.#get(undefined, undefined)));
  }

  /** Whether it runs now. Asks the server. */
  async isRunning(): Promise<boolean> {
    return (await this.info()).state === "running";
  }

  /**
   * Waits for its end.
   *
   * @param options.timeoutSeconds - How long to wait; the process goes on when that is over.
   * @throws AnswerTimeout when it still runs then.
   * @throws SandboxTimeout when it ran past a `timeoutSeconds` of its own.
   */
  async wait(options: { timeoutSeconds?: number; signal?: AbortSignal } = {}): Promise<ExecResult> {
    refuseUnknown("Process.wait", options, ["timeoutSeconds", "signal"]);
    const limitMs = (options.timeoutSeconds ?? Infinity) * 1000;
    const start = Date.now();
    for (;;) {
      options.signal?.throwIfAborted();
      const leftSeconds = Math.ceil((limitMs - (Date.now() - start)) / 1000);
      const waitSeconds = Math.min(PROCESS_WAIT_SECONDS, Math.max(leftSeconds, 0));
      const process = await this.#get(waitSeconds, options.signal);
      if (process.state !== "running") return await this.#result(process);
      if (Date.now() - start >= limitMs) throw new AnswerTimeout(limitMs);
      // A server that answers at once must not be asked in a circle.
      await pause(50, options.signal);
    }
  }

  /**
   * Follows its output to its end, across lost connections: from the beginning, or from the offsets.
   * Listeners hear it, or a loop does; the result has what came since the offsets.
   *
   * @example
   * ```ts
   * for await (const { text } of process.attach()) console.log(text);
   * const { exitCode } = await process.attach({ onStderr: console.error });
   * ```
   */
  attach(listeners: Listeners = {}): Attachment {
    refuseUnknown("Process.attach", listeners, ATTACH_OPTIONS);
    const follow = (to: Listeners): Promise<ExecResult> =>
      new Follower(this.#connection, this.#sandboxId, this.execId, to).attach();
    return new Attachment(follow, { ...listeners });
  }

  /** What is kept of its output by now, as text. */
  async output(): Promise<{ stdout: string; stderr: string }> {
    const read = (stream: OutputName): Promise<string> =>
      readOutputText(this.#connection, this.#sandboxId, this.execId, stream);
    const [stdout, stderr] = await Promise.all([read("stdout"), read("stderr")]);
    return { stdout, stderr };
  }

  /** A part of its output as bytes. */
  async outputBytes(stream: OutputName = "stdout", options: { offset?: number; limit?: number } = {}): Promise<OutputPart> {
    refuseUnknown("Process.outputBytes", options, ["offset", "limit"]);
    const { offset = 0, limit } = options;
    return await readOutputPart(this.#connection, this.#sandboxId, this.execId, stream, offset, limit);
  }

  /** Sends input to a process that was started with `stdinOpen`. */
  async sendStdin(data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
    refuseUnknown("Process.sendStdin", options, ["close"]);
    const content = typeof data === "string" ? new TextEncoder().encode(data) : data;
    // One after the other: the guest takes input by its place only.
    const sent = this.#lastSent.then(() => this.#send(content, options));
    this.#lastSent = sent.catch(() => undefined);
    await sent;
  }

  /** Closes its input. */
  closeStdin(): Promise<void> {
    return this.sendStdin("", { close: true });
  }

  async #send(content: Uint8Array, options: { close?: boolean }): Promise<void> {
    const offset = (this.#stdinOffset ??= (await this.#get(undefined, undefined)).stdin_bytes);
    await this.#connection.done({
      method: "POST",
      path: this.#path("stdin"),
      query: { offset, close: options.close },
      content,
      isRepeatable: true,
    });
    this.#stdinOffset = offset + content.length;
  }

  /** Sends a signal, by number or by name with or without `SIG`, to its process group. */
  async signal(signal: number | string): Promise<void> {
    const number = typeof signal === "number" ? signal : SIGNAL_NUMBERS[signal.toUpperCase().replace(/^(?!SIG)/, "SIG")];
    if (number === undefined) throw new TypeError(`not a known signal: ${signal}`);
    await this.#connection.done({ method: "POST", path: this.#path("signal"), json: { signal: number } });
  }

  /** Ends it with its child processes. Its output is kept. May be repeated. */
  async kill(): Promise<void> {
    const json = { signal: SIGNAL_NUMBERS["SIGKILL"] };
    try {
      await this.#connection.done({ method: "POST", path: this.#path("signal"), json, isRepeatable: true });
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      // One that has ended takes no signal; one that never was is still an error.
      if (await this.isRunning()) throw error;
    }
  }

  /** Ends it with its child processes, and drops its output. May be repeated. */
  async delete(): Promise<void> {
    await this.#connection.done({ method: "DELETE", path: this.#path() });
  }

  /** Changes the size of its terminal. @internal */
  async resize(size: { columns: number; rows: number }): Promise<void> {
    await this.#connection.done({ method: "POST", path: this.#path("resize"), json: size, isRepeatable: true });
  }

  #path(...rest: string[]): string[] {
    return ["sandboxes", this.#sandboxId, "processes", this.execId, ...rest];
  }

  #get(waitSeconds: number | undefined, signal: AbortSignal | undefined): Promise<Wire["Process"]> {
    return this.#connection.json<Wire["Process"]>({
      method: "GET",
      path: this.#path(),
      query: { wait_seconds: waitSeconds },
      deadlineMs: CALL_DEADLINE_MS + (waitSeconds ?? 0) * 1000,
      signal,
    });
  }

  async #result(process: Wire["Process"]): Promise<ExecResult> {
    const { stdout, stderr } = await this.output();
    if (process.reason === "timed_out") {
      const error = new SandboxTimeout("the command ran longer than its limit", { code: "timeout", status: 504 });
      throw Object.assign(error, { stdout, stderr, execId: this.execId });
    }
    const isWhole = (text: string, extent: Wire["StreamExtent"]): boolean =>
      extent.start === 0 && new TextEncoder().encode(text).length >= extent.end;
    return execResult({
      ...process,
      stdout,
      stderr,
      stdout_bytes: process.stdout.end,
      stderr_bytes: process.stderr.end,
      exit_code: process.exit_code ?? -1,
      reason: process.reason ?? "",
      truncated: !isWhole(stdout, process.stdout) || !isWhole(stderr, process.stderr),
    });
  }
}
