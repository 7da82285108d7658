/** What a command may be given. */

import { freshId } from "./ids.js";
import { toSnake } from "./names.js";

/** A text for the shell, or a program with its arguments. */
export type Command = string | readonly string[];

/** Hears output as it comes. A promise is waited for before the next piece. */
export type OutputListener = (chunk: string) => void | Promise<void>;

/** What every command may be given. */
export interface CommandOptions {
  /** After this the command and its child processes are killed. Default: no limit. */
  timeoutSeconds?: number | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  /** Default `/workspace`. */
  cwd?: string | undefined;
  /** Default `agent`. */
  user?: string | undefined;
  /** The whole standard input. */
  stdin?: string | undefined;
  /** Memory of the command and its children. Over it they are killed. */
  memoryMb?: number | undefined;
  /** CPU time of the command and its child processes. */
  cpuSeconds?: number | undefined;
  /** Processes and threads at once. */
  maxProcesses?: number | undefined;
  /** Names the command, so that it can be found again. Made up when absent. */
  execId?: string | undefined;
  /** What the guest keeps of each stream. Default 64 MiB. */
  logMaxBytes?: number | undefined;
  /** What happens to more than that. Default `drop_oldest`. */
  logWhenFull?: "drop_oldest" | "block" | undefined;
}

/** Options of `exec`. */
export interface ExecOptions extends CommandOptions {
  /** Throws `CommandFailed` when the command does not end with 0. */
  check?: boolean | undefined;
  /** With one of these the output comes while the command runs. */
  onStdout?: OutputListener | undefined;
  onStderr?: OutputListener | undefined;
  /** Ends the command, and throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Shapes long output for a model: its head, its tail and, unless it is listened to, the lines around errors. */
  maxOutputBytes?: number | undefined;
  /** Lists the files that changed while the command ran. Not together with a listener. */
  reportChanges?: boolean | undefined;
}

/** Options of `execBackground`. */
export interface BackgroundOptions extends CommandOptions {
  /** Leaves standard input open for `process.sendStdin`. */
  stdinOpen?: boolean | undefined;
}

const COMMAND_OPTIONS = [
  ...["timeoutSeconds", "env", "cwd", "user", "stdin", "memoryMb", "cpuSeconds", "maxProcesses", "execId"],
  ...["logMaxBytes", "logWhenFull"],
];
/** @internal */
export const EXEC_OPTIONS = [
  ...COMMAND_OPTIONS,
  ...["check", "onStdout", "onStderr", "signal", "maxOutputBytes", "reportChanges"],
];
/** @internal */
export const BACKGROUND_OPTIONS = [...COMMAND_OPTIONS, "stdinOpen"];

/** A request's body. It always has an id of our own, so that it may be sent again. */
export function commandBody(
  command: Command,
  options: CommandOptions & Record<string, unknown>,
): Record<string, unknown> & { exec_id: string } {
  const cmd = typeof command === "string" ? command : [...command];
  return { ...toSnake(options), cmd, exec_id: options.execId ?? freshId("exec") };
}
