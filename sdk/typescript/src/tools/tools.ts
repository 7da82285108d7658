/** The tools of an agent, bound to a sandbox: see `Sandbox.tools`. */

import type {
  EditFileArguments,
  ExposePortArguments,
  ForkArguments,
  ListFilesArguments,
  ReadFileArguments,
  RollbackArguments,
  RunCodeArguments,
  RunShellArguments,
  SandboxToolName,
  SearchFilesArguments,
  SnapshotArguments,
  WriteFileArguments,
} from "../generated/tools.js";
import { refuseUnknown, toSnake } from "../names.js";
import type { Sandbox } from "../sandbox.js";
import { aiSdkTool, type AiSdkTool } from "./ai-sdk.js";
import type { Arguments } from "./arguments.js";
import { callTool, Selection } from "./calls.js";
import {
  type AnthropicTool,
  type McpTool,
  mcpTool,
  type OpenAIResponsesTool,
  openaiResponsesTool,
  type OpenAITool,
  openaiTool,
} from "./definition.js";
import type { ToolResult } from "./result.js";

/** Options of a call of a tool. */
export interface ToolCallOptions {
  /** Ends what the call runs, and throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Tools of a sandbox: shapes and `call` for a loop, and each as a plain function that gives the text for
 * a model.
 *
 * @example
 * ```ts
 * const tools = sandbox.tools();
 * const reply = await client.messages.create({ tools: tools.anthropic(), ... });
 * const result = await tools.call(block.name, block.input); // never throws for what a model did
 * const text = await tools.runShell({ command: "ls" }); // the same as a function
 * ```
 */
export class Tools {
  readonly #sandbox: Sandbox;
  readonly #selection: Selection;

  /** @internal */
  constructor(sandbox: Sandbox, names: readonly string[]) {
    this.#sandbox = sandbox;
    this.#selection = new Selection(names);
  }

  /** The names that a model calls. */
  get names(): string[] {
    return this.#selection.names();
  }

  /** `tools` of a request to Anthropic's Messages API. */
  anthropic(): AnthropicTool[] {
    return this.#selection.anthropic();
  }

  /** `tools` of a request to OpenAI's Chat Completions API, and those that are like it. */
  openai(): OpenAITool[] {
    return this.#selection.plain().map(openaiTool);
  }

  /** `tools` of a request to OpenAI's Responses API. */
  openaiResponses(): OpenAIResponsesTool[] {
    return this.#selection.plain().map(openaiResponsesTool);
  }

  /** `tools` of a response to MCP's `tools/list`. */
  mcp(): McpTool[] {
    return this.#selection.plain().map(mcpTool);
  }

  /** `tools` of `generateText` and `streamText` of Vercel's AI SDK (`ai` 6 and 7), each with its `execute`. */
  aiSdk(): Record<string, AiSdkTool> {
    const call = this.call.bind(this);
    return Object.fromEntries(this.#selection.plain().map((one) => [one.name, aiSdkTool(one, call)]));
  }

  /**
   * Carries out what a model asked for: the arguments as an object, or as its JSON. What does not fit, and
   * what the server refuses, is a result with `isError`.
   */
  async call(name: string, given: Arguments | string, options: ToolCallOptions = {}): Promise<ToolResult> {
    refuseUnknown("Tools.call", options, ["signal"]);
    return await callTool({ sandbox: this.#sandbox, signal: options.signal }, this.#selection, name, given);
  }

  /** Runs code in an interpreter that keeps its state. */
  runCode(given: RunCodeArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("run_code", given, options);
  }

  /** Runs a command with the shell and waits for its end. */
  runShell(given: RunShellArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("run_shell", given, options);
  }

  /** Reads a text file, or some of its lines, with their numbers. */
  readFile(given: ReadFileArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("read_file", given, options);
  }

  /** Writes a text file, whole. */
  writeFile(given: WriteFileArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("write_file", given, options);
  }

  /** Replaces a piece of a text file by another. */
  editFile(given: EditFileArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("edit_file", given, options);
  }

  /** Lists a directory, and what is below it as deep as asked. */
  listFiles(given: ListFilesArguments = {}, options?: ToolCallOptions): Promise<string> {
    return this.#say("list_files", given, options);
  }

  /** Searches the text files below a directory for a regular expression. */
  searchFiles(given: SearchFilesArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("search_files", given, options);
  }

  /** Tries several commands, each in its own copy of this sandbox as it is now. */
  fork(given: ForkArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("fork", given, options);
  }

  /** Keeps this moment of the sandbox. */
  snapshot(given: SnapshotArguments = {}, options?: ToolCallOptions): Promise<string> {
    return this.#say("snapshot", given, options);
  }

  /** Puts the sandbox back to a moment that `snapshot` kept. */
  rollback(given: RollbackArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("rollback", given, options);
  }

  /** Waits until a program listens on a port, and gives a link to it. */
  exposePort(given: ExposePortArguments, options?: ToolCallOptions): Promise<string> {
    return this.#say("expose_port", given, options);
  }

  async #say(name: SandboxToolName, given: object, options: ToolCallOptions = {}): Promise<string> {
    return (await this.call(name, toSnake(given), options)).text;
  }
}
