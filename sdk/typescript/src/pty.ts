/**
 * A terminal in a sandbox.
 *
 * Made of plain requests: output comes as events that can be gone on with after a lost connection, input
 * and sizes are requests of their own. A WebSocket would carry both at once, but cannot send the key from
 * Node 20 or a browser without a library.
 */

import type { Attachment } from "./attachment.js";
import { toStream } from "./content.js";
import type { Command, CommandOptions } from "./exec-options.js";
import type { ExecResult } from "./exec-result.js";
import type { Process } from "./process.js";

/** How large a terminal is, in characters. */
export interface TerminalSize {
  cols: number;
  rows: number;
}

/** Options of `sandbox.pty`. */
export interface PtyOptions extends Pick<CommandOptions, "timeoutSeconds" | "env" | "cwd" | "user" | "execId"> {
  /** Default 80. */
  cols?: number | undefined;
  /** Default 24. */
  rows?: number | undefined;
  /** What runs in it. Default: a login shell. */
  command?: Command | undefined;
}

/** @internal */
export const PTY_OPTIONS = ["cols", "rows", "command", "timeoutSeconds", "env", "cwd", "user", "execId"];
/** The same as `dayfly shell`. @internal */
export const PTY_COMMAND = "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi";

/**
 * A command with a terminal of its own. It belongs to its sandbox: losing this object, or the
 * connection, does not end it.
 *
 * @example
 * ```ts
 * await using pty = await sandbox.pty({ cols: 100, rows: 30 });
 * await pty.write("ls\n");
 * for await (const text of pty) screen.write(text);
 * ```
 */
export class Pty implements AsyncIterable<string>, AsyncDisposable {
  /** The command as a process: its id, its kept output, signals. */
  readonly process: Process;
  readonly #output: Attachment;
  #readable: ReadableStream<Uint8Array> | undefined;

  /** @internal */
  constructor(process: Process) {
    this.process = process;
    this.#output = process.attach();
  }

  get execId(): string {
    return this.process.execId;
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  /** What it shows, as text, from the beginning to its end. Once: either this or `readable`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    for await (const { text } of this.#output) yield text;
  }

  /** What it shows, as bytes of UTF-8. What was not UTF-8 is replaced. */
  get readable(): ReadableStream<Uint8Array> {
    return (this.#readable ??= toStream(this));
  }

  /** Types into it. Calls are carried out one after the other. */
  write(data: string | Uint8Array): Promise<void> {
    return this.process.sendStdin(data);
  }

  /** Tells it how large it is now. */
  resize({ cols, rows }: TerminalSize): Promise<void> {
    return this.process.resize({ columns: cols, rows });
  }

  /** Sends a signal, by number or name, to the process group of the command. */
  signal(signal: number | string): Promise<void> {
    return this.process.signal(signal);
  }

  /** Waits for the end of the command, whether or not somebody reads. */
  wait(options: { timeoutSeconds?: number; signal?: AbortSignal } = {}): Promise<ExecResult> {
    return this.process.wait(options);
  }

  /** Ends the command. May be repeated. */
  close(): Promise<void> {
    return this.process.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
