/** Code with a memory. */

import { type RunOptions, runInContext } from "./code.js";
import type { Connection } from "./connection.js";
import type { Execution } from "./execution.js";
import { checkedName } from "./ids.js";

/**
 * An interpreter that keeps its state between runs.
 *
 * @example
 * ```ts
 * await using context = await sandbox.createContext("python");
 * await context.runCode("x = 41");
 * console.log((await context.runCode("x + 1")).text); // "42"
 * ```
 */
export class CodeContext {
  readonly id: string;
  readonly language: string;
  readonly #connection: Connection;
  readonly #sandboxId: string;

  /** @internal */
  constructor(connection: Connection, sandboxId: string, id: string, language: string) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
    this.id = checkedName("context id", id);
    this.language = language;
  }

  /** Runs code and waits for its end. */
  runCode(code: string, options: RunOptions = {}): Promise<Execution> {
    return runInContext(this.#connection, this.#sandboxId, this.id, code, options);
  }

  /** Ends what runs. The state stays. */
  async interrupt(): Promise<void> {
    await this.#connection.done({ method: "POST", path: this.#path("interrupt") });
  }

  /** Starts afresh: all variables are gone. */
  async restart(): Promise<void> {
    await this.#connection.done({ method: "POST", path: this.#path("restart") });
  }

  /** Ends the context. May be repeated. */
  async close(): Promise<void> {
    await this.#connection.done({ method: "DELETE", path: this.#path() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #path(...rest: string[]): string[] {
    return ["sandboxes", this.#sandboxId, "repl", "sessions", this.id, ...rest];
  }
}
