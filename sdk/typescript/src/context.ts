/** Code with a memory. */

import {
  checkRunOptions,
  type CodePlace,
  defaultContextLanguage,
  type RunOptions,
  runInContext,
  runInDefaultContext,
} from "./code.js";
import type { Execution } from "./execution.js";
import { checkedName } from "./ids.js";

/**
 * An interpreter that keeps its state between runs.
 *
 * @example
 * ```ts
 * await using context = await sandbox.createContext("python");
 * await context.run("x = 41");
 * console.log((await context.run("x + 1")).text); // "42"
 * ```
 */
export class CodeContext implements AsyncDisposable {
  readonly id: string;
  /** Not known of a context that was named only. */
  readonly language: string | undefined;
  readonly #place: CodePlace;

  /** @internal */
  constructor(place: CodePlace, id: string, language = defaultContextLanguage(id)) {
    this.#place = place;
    this.id = checkedName("context id", id);
    this.language = language;
  }

  /** Runs code and waits for its end. Code that raises is an outcome with `error` set. */
  async run(code: string, options: RunOptions = {}): Promise<Execution> {
    checkRunOptions("CodeContext.run", options);
    const language = defaultContextLanguage(this.id);
    if (language === undefined) return await runInContext(this.#place, this.id, code, options);
    return await runInDefaultContext(this.#place, language, code, options);
  }

  /** The same as `run`. */
  runCode(code: string, options: RunOptions = {}): Promise<Execution> {
    return this.run(code, options);
  }

  /** Ends what runs. The state stays. */
  async interrupt(): Promise<void> {
    await this.#place.connection.done({ method: "POST", path: this.#path("interrupt") });
  }

  /** Starts afresh: all variables are gone. An interpreter that has died is started again by the next run. */
  async restart(): Promise<void> {
    await this.#place.connection.done({ method: "POST", path: this.#path("restart") });
    this.#place.known.dead.delete(this.id);
  }

  /** Ends the context. May be repeated. */
  async delete(): Promise<void> {
    await this.#place.connection.done({ method: "DELETE", path: this.#path() });
    this.#place.known.dead.delete(this.id);
  }

  /** The same as `delete`. What `await using` does at the end. */
  close(): Promise<void> {
    return this.delete();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #path(...rest: string[]): string[] {
    return ["sandboxes", this.#place.sandboxId, "repl", "sessions", this.id, ...rest];
  }
}
