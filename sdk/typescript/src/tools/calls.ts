/** Carries a call of a tool out. Whatever a model asks for, what comes of it is a result. */

import { DayflyError } from "../errors.js";
import { InvalidSettings } from "../failures.js";
import { SANDBOX_TOOLS, type SandboxToolName } from "../generated/tools.js";
import { named } from "../model-text.js";
import { type Arguments, ArgumentsRefused, fitted, parsed } from "./arguments.js";
import { type AnthropicTool, anthropicTool, type ToolDefinition } from "./definition.js";
import { inTime } from "./in-time.js";
import { callBash, callEditor, isView, NATIVE_SHAPES, type NativeToolName } from "./native.js";
import { failed, failedBy, type ToolResult, type ToolTarget } from "./result.js";
import { forkCommands, runCode, runShell } from "./runs.js";
import { listFiles, searchFiles } from "./search.js";
import { exposePort, rollback, snapshot } from "./state.js";
import { editFile, readFile, writeFile } from "./text-files.js";

/** A tool of a sandbox, or one of Anthropic's own. */
export type ToolName = SandboxToolName | NativeToolName;

const MAY_BE_WRITTEN = "whether the file was written is not known; look at it before you call it again";

/** Each takes what its schema has let through. */
type Executor = (target: ToolTarget, given: never) => Promise<ToolResult>;

const EXECUTORS: Readonly<Record<SandboxToolName, Executor>> = {
  run_code: runCode,
  run_shell: runShell,
  read_file: inTime(readFile),
  write_file: inTime(writeFile, MAY_BE_WRITTEN),
  edit_file: inTime(editFile, MAY_BE_WRITTEN),
  list_files: inTime(listFiles),
  search_files: searchFiles,
  fork: forkCommands,
  snapshot,
  rollback,
  expose_port: exposePort,
};
const NATIVE: Readonly<Record<NativeToolName, (target: ToolTarget, given: Arguments) => Promise<ToolResult>>> = {
  bash: callBash,
  text_editor: inTime(callEditor, MAY_BE_WRITTEN),
};
/** They make something beside the sandbox, and leave it as it is. */
const LEAVE_IT: readonly string[] = ["fork", "snapshot", "expose_port"];

const isNative = (name: string): name is NativeToolName => Object.hasOwn(NATIVE, name);

/** Which tools a model has. */
export class Selection {
  readonly definitions: readonly ToolDefinition[];
  readonly native: readonly NativeToolName[];

  /** Those of that names; without names all of ours, and none of Anthropic's own. */
  constructor(names: readonly string[]) {
    const known = [...SANDBOX_TOOLS.map(({ name }) => name), ...Object.keys(NATIVE)];
    const unknown = names.find((name) => !known.includes(name));
    if (unknown !== undefined) {
      throw new InvalidSettings(`there is no tool ${JSON.stringify(unknown)}; there are: ${known.join(", ")}`);
    }
    const wanted = [...new Set(names)];
    const ours = wanted.map((name) => SANDBOX_TOOLS.find((one) => one.name === name));
    this.definitions = names.length === 0 ? SANDBOX_TOOLS : ours.filter((one) => one !== undefined);
    this.native = wanted.filter(isNative);
  }

  /** The names that a model calls. */
  names(): string[] {
    return [...this.definitions, ...this.native.map((name) => NATIVE_SHAPES[name])].map(({ name }) => name);
  }

  /** Whether a call may change the sandbox; one that is refused does not. */
  changes(name: string, given: Arguments | string): boolean {
    const found = this.find(name);
    if (found === undefined) return false;
    try {
      const call = parsed(given);
      if (typeof found === "string") return !(found === "text_editor" && isView(call));
      fitted(found.input, call);
    } catch (error) {
      if (error instanceof ArgumentsRefused) return false;
      throw error;
    }
    return !found.read_only && !LEAVE_IT.includes(found.name);
  }

  anthropic(): AnthropicTool[] {
    return [...this.definitions.map(anthropicTool), ...this.native.map((name) => ({ ...NATIVE_SHAPES[name] }))];
  }

  /** The definitions, for whoever knows nothing of Anthropic's own types. */
  plain(): readonly ToolDefinition[] {
    if (this.native.length === 0) return this.definitions;
    throw new InvalidSettings(`only Anthropic's models have these tools: ${this.native.join(", ")}`);
  }

  /** The tool that a model means; nothing, if it has no such tool. */
  find(name: string): ToolDefinition | NativeToolName | undefined {
    return (
      this.native.find((one) => NATIVE_SHAPES[one].name === name) ?? this.definitions.find((one) => one.name === name)
    );
  }
}

/** What a tool gives. What does not fit, and what the server refuses, is a result as well. */
export async function callTool(
  target: ToolTarget,
  selection: Selection,
  name: string,
  given: Arguments | string,
): Promise<ToolResult> {
  try {
    return await callToolAloud(target, selection, name, given);
  } catch (error) {
    // Whoever has had enough is told so by the reason of their signal, whatever that is.
    if (!(error instanceof DayflyError) || target.signal?.aborted) throw error;
    return failedBy(error);
  }
}

/** The same, but an error of the server is thrown: the sandbox may be gone. */
export async function callToolAloud(
  target: ToolTarget,
  selection: Selection,
  name: string,
  given: Arguments | string,
): Promise<ToolResult> {
  target.signal?.throwIfAborted();
  const found = selection.find(name);
  if (found === undefined) {
    return failed(`there is no tool ${named(name)}; there are: ${selection.names().join(", ")}`);
  }
  try {
    const call = parsed(given);
    if (typeof found === "string") return await NATIVE[found](target, call);
    const execute = EXECUTORS[found.name as SandboxToolName];
    return await execute(target, fitted(found.input, call) as never);
  } catch (error) {
    if (!(error instanceof ArgumentsRefused)) throw error;
    return failed(error.message, "correct the arguments and call it again");
  }
}
