/** A sandbox: a small computer that is thrown away. */

import {
  checkRunOptions,
  type CodePlace,
  languageName,
  makeContext,
  runAsDeclared,
  runInDefaultContext,
  type RunOptions,
} from "./code.js";
import { connectionOf } from "./client.js";
import type { ConnectionOptions } from "./config.js";
import type { Connection } from "./connection.js";
import { CodeContext } from "./context.js";
import { CREATE_OPTIONS, type CreateOptions, createWhenReady } from "./create.js";
import { runCommand } from "./exec.js";
import {
  BACKGROUND_OPTIONS,
  type BackgroundOptions,
  type Command,
  commandBody,
  EXEC_OPTIONS,
  type ExecOptions,
} from "./exec-options.js";
import { AlreadyExists, NotFound, SandboxTimeout } from "./errors.js";
import type { ExecResult } from "./exec-result.js";
import type { Execution } from "./execution.js";
import {
  type Candidate,
  checkExploration,
  type Exploration,
  type ExploreOptions,
  exploreIn,
} from "./explore.js";
import { AnswerTimeout, ForkFailed } from "./failures.js";
import { Files } from "./files.js";
import { Children, FORK_OPTIONS, type ForkManyOptions, type ForkOptions, type ForkTree, requestFork } from "./forks.js";
import { checkedName, freshId, freshKey } from "./ids.js";
import { KnownContexts } from "./known-contexts.js";
import { CALL_DEADLINE_MS, LISTING_PAGE_LENGTH, PORT_WAIT_PART_MS, PORT_WAIT_SECONDS, STATE_DEADLINE_MS } from "./limits.js";
import { Listing } from "./listing.js";
import { refuseUnknown, toCamel, toSnake } from "./names.js";
import { Network } from "./network.js";
import { Process } from "./process.js";
import { Pty, PTY_COMMAND, PTY_OPTIONS, type PtyOptions } from "./pty.js";
import { Snapshot } from "./snapshot.js";
import type { ToolName } from "./tools/calls.js";
import { Tools } from "./tools/tools.js";
import { deleteSandboxes } from "./undo.js";
import type {
  ContextInfo,
  Lifecycle,
  OnTimeout,
  Port,
  PortLink,
  Promoted,
  SandboxInfo,
  Wire,
} from "./wire.js";

/** Which sandboxes a list is to have. Nothing named: all. */
export interface SandboxFilter {
  /** In this state, such as `running` or `hibernated`. */
  status?: string | undefined;
  template?: string | undefined;
  /** With all of these labels. */
  metadata?: Readonly<Record<string, string>> | undefined;
}

/** Options of `wake` and `rollback`. */
export interface EnvironmentOptions {
  /**
   * In place of its environment variables; `{}` leaves none. Commands and contexts that run keep theirs.
   */
  env?: Readonly<Record<string, string>> | undefined;
}

/** How code is run that has no context: as a command, in a fresh Python, or in one that stays. */
export type RunMode = "shell" | "python" | "python_context";

/** Options of `runCode`. */
export interface RunCodeOptions extends RunOptions {
  /** Default `python`. */
  language?: string | undefined;
  /** The interpreter, or its id, instead of the one that the sandbox has for the language. */
  context?: CodeContext | string | undefined;
}

/**
 * A disposable microVM.
 *
 * @example
 * ```ts
 * await using sandbox = await Sandbox.create({ template: "base", ttlSeconds: 600 });
 * const result = await sandbox.exec("uname -a");
 * console.log(result.stdout);
 * ```
 */
export class Sandbox implements AsyncDisposable {
  readonly id: string;
  readonly files: Files;
  readonly network: Network;
  readonly #connection: Connection;
  readonly #place: CodePlace;
  #info: SandboxInfo;
  #isDetached = false;

  private constructor(connection: Connection, wire: Wire["Sandbox"]) {
    this.#connection = connection;
    this.#info = toCamel(wire);
    this.id = checkedName("sandbox id", this.#info.id);
    this.#place = { connection, sandboxId: this.id, known: new KnownContexts() };
    this.files = new Files(connection, this.id);
    this.network = new Network(connection, this.id);
  }

  /**
   * Creates a sandbox; user code can run when this resolves. Waits while the template is baked
   * or the host has no room. A lost response does not make a second one.
   */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    return await Sandbox.createOn(connectionOf("Sandbox.create", options, CREATE_OPTIONS), options);
  }

  /** @internal */
  static async createOn(connection: Connection, options: CreateOptions): Promise<Sandbox> {
    return new Sandbox(connection, await createWhenReady(connection, options));
  }

  /** Finds a sandbox that exists, by its id or its name. */
  static async connect(id: string, options: ConnectionOptions = {}): Promise<Sandbox> {
    return await Sandbox.#find(connectionOf("Sandbox.connect", options), id);
  }

  static async #find(connection: Connection, id: string): Promise<Sandbox> {
    const path = ["sandboxes", checkedName("sandbox id", id)];
    return new Sandbox(connection, await connection.json<Wire["Sandbox"]>({ method: "GET", path }));
  }

  /**
   * The sandbox of that name; it is created if there is none. The options count for a new one only:
   * one that is there is as it was left, asleep perhaps.
   */
  static async getOrCreate(name: string, options: Omit<CreateOptions, "name"> = {}): Promise<Sandbox> {
    const connection = connectionOf("Sandbox.getOrCreate", options, CREATE_OPTIONS);
    const find = (): Promise<Sandbox> => Sandbox.#find(connection, name);
    try {
      return await find();
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
    try {
      return await Sandbox.createOn(connection, { ...options, name });
    } catch (error) {
      // Somebody else was quicker.
      if (error instanceof AlreadyExists) return find();
      throw error;
    }
  }

  /**
   * The sandboxes of the key's project that have everything that is named, oldest first. Awaited, the
   * whole list; in a `for await`, page by page.
   */
  static list(options: SandboxFilter & ConnectionOptions = {}): Listing<Sandbox> {
    return new Listing(() => Sandbox.#pages(options));
  }

  static async *#pages(options: SandboxFilter & ConnectionOptions): AsyncGenerator<Sandbox[], void, undefined> {
    const connection = connectionOf("Sandbox.list", options, ["status", "template", "metadata"]);
    const { status, template } = options;
    const metadata = options.metadata && JSON.stringify(options.metadata);
    let cursor: string | undefined;
    for (;;) {
      const query = { status, template, metadata, limit: LISTING_PAGE_LENGTH, cursor };
      const page = await connection.json<Wire["SandboxList"]>({ method: "GET", path: ["sandboxes"], query });
      yield page.items.map((wire) => new Sandbox(connection, wire));
      const next = page.next_cursor ?? undefined;
      if (next === undefined || next === cursor) return;
      cursor = next;
    }
  }

  /** What the server said of it last. @internal */
  get lastInfo(): SandboxInfo {
    return this.#info;
  }

  /** The same as `files`. */
  get filesystem(): Files {
    return this.files;
  }

  /** What its project calls it; it stands for the id. */
  get name(): string | undefined {
    return this.#info.name ?? undefined;
  }

  get template(): string {
    return this.#info.template;
  }

  get metadata(): Readonly<Record<string, string>> {
    return this.#info.metadata;
  }

  /** What was known last; `refresh` asks. */
  get persistent(): boolean {
    return this.#info.persistent;
  }

  /** `running`, `paused`, `hibernated`, ...: what was known last. `refresh` asks. */
  get status(): string {
    return this.#info.status;
  }

  /** Asks the server how it is now, and gives this back: `(await sandbox.refresh()).status`. */
  async refresh(): Promise<this> {
    await this.info();
    return this;
  }

  /** What the server says about it now. */
  async info(): Promise<SandboxInfo> {
    const wire = await this.#connection.json<Wire["Sandbox"]>({ method: "GET", path: this.#path() });
    this.#info = toCamel(wire);
    return this.#info;
  }

  /** Deletes it with all that runs in it. One that is gone already is a success. */
  async delete(): Promise<void> {
    await this.#connection.done({ method: "DELETE", path: this.#path() });
  }

  /** The same as `delete`. */
  kill(): Promise<void> {
    return this.delete();
  }

  /** Deletes it, unless it is persistent or detached. What `await using` does at the end. */
  async close(): Promise<void> {
    if (!this.persistent && !this.#isDetached) await this.delete();
  }

  /** From now on `await using` and `close` leave it alone; its TTL ends it. Gives this back. */
  detach(): this {
    this.#isDetached = true;
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Runs a command to its end. A status other than 0 is a result; `check` makes it an error.
   *
   * @throws SandboxTimeout when it ran past `timeoutSeconds`.
   * @throws ExecInterrupted when the connection was lost and how it ended cannot be learned.
   * @example
   * ```ts
   * await sandbox.exec(["make", "test"], { check: true, onStdout: (text) => console.log(text) });
   * ```
   */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    refuseUnknown("Sandbox.exec", options, EXEC_OPTIONS);
    return await runCommand(this.#connection, this.id, command, options);
  }

  /** Starts a command and leaves it running. It has no timeout unless you give one. */
  async execBackground(command: Command, options: BackgroundOptions = {}): Promise<Process> {
    refuseUnknown("Sandbox.execBackground", options, BACKGROUND_OPTIONS);
    return await this.#start(command, options);
  }

  async #start(command: Command, options: BackgroundOptions): Promise<Process> {
    const json = { ...commandBody(command, { ...options }), background: true };
    // The id in the body keeps a repetition from starting a second process.
    const call = { method: "POST", path: this.#path("exec"), json, isRepeatable: true } as const;
    const wire = await this.#connection.json<Wire["Process"]>(call);
    return new Process(this.#connection, this.id, wire.exec_id, wire);
  }

  /**
   * Starts a command, by default a login shell, in a terminal of its own.
   *
   * @example
   * ```ts
   * await using pty = await sandbox.pty({ cols: 100, rows: 30, command: ["python3"] });
   * await pty.write("6 * 7\n");
   * for await (const text of pty) if (text.includes("42")) break;
   * ```
   */
  async pty(options: PtyOptions = {}): Promise<Pty> {
    refuseUnknown("Sandbox.pty", options, PTY_OPTIONS);
    const { cols = 80, rows = 24, command = PTY_COMMAND, env, ...rest } = options;
    const wish = { ...rest, env: { TERM: "xterm-256color", ...env }, terminal: { columns: cols, rows }, stdinOpen: true };
    return new Pty(await this.#start(command, wish));
  }

  /** Commands that run and ran. */
  async processes(): Promise<Process[]> {
    const call = { method: "GET", path: this.#path("processes") } as const;
    const { items } = await this.#connection.json<Wire["ProcessList"]>(call);
    return items.map((wire) => new Process(this.#connection, this.id, wire.exec_id, wire));
  }

  /** A command by its id, to go on with it. Asks nothing. */
  process(execId: string): Process {
    return new Process(this.#connection, this.id, execId);
  }

  /**
   * Runs code as the template declares it: as a command, in a fresh Python, or in one that stays.
   * Such a run has no id of its own, so a lost response is not asked for again; for code that takes
   * minutes, `runCode` is the better choice.
   */
  async run(code: string, options: RunOptions & { mode?: RunMode | undefined } = {}): Promise<Execution> {
    checkRunOptions("Sandbox.run", options, ["mode"]);
    return await runAsDeclared(this.#connection, this.id, code, options);
  }

  /**
   * Runs code in an interpreter that keeps its state: the given context, or the one that the
   * sandbox has for the language. In templates without contexts each call is a fresh one.
   *
   * @example
   * ```ts
   * const execution = await sandbox.runCode("print(1 / 0)", { timeoutSeconds: 10, onStdout: console.log });
   * console.log(execution.forModel());
   * ```
   */
  async runCode(code: string, options: RunCodeOptions = {}): Promise<Execution> {
    const { context, language = "python", ...rest } = options;
    checkRunOptions("Sandbox.runCode", rest, ["context", "language"]);
    if (context === undefined) {
      return await runInDefaultContext(this.#place, languageName(language), code, rest);
    }
    const chosen = typeof context === "string" ? this.context(context) : context;
    return await chosen.run(code, rest);
  }

  /** Makes an interpreter that keeps its state, apart from all others. */
  async createContext(language = "python", options: { cwd?: string } = {}): Promise<CodeContext> {
    refuseUnknown("Sandbox.createContext", options, ["cwd"]);
    const wish = { id: freshId("ctx"), language: languageName(language), ...options };
    const wire = await makeContext(this.#connection, this.id, wish);
    return new CodeContext(this.#place, wire.id, wire.language);
  }

  /**
   * An interpreter by its id. Asks nothing. `default` is the one of Python that `runCode` uses, and
   * `default-LANGUAGE` that of another language.
   */
  context(id: string): CodeContext {
    return new CodeContext(this.#place, id);
  }

  /** The interpreters that it has. */
  async contexts(): Promise<ContextInfo[]> {
    const call = { method: "GET", path: this.#path("repl", "sessions") } as const;
    return toCamel((await this.#connection.json<Wire["ContextList"]>(call)).items);
  }

  /** Makes a child that continues from this moment, apart. */
  async fork(options: ForkOptions = {}): Promise<Sandbox> {
    refuseUnknown("Sandbox.fork", options, FORK_OPTIONS);
    const [child] = await this.forkMany(1, options);
    return child as Sandbox;
  }

  /**
   * Makes several children from one moment. `await using` deletes them at its end.
   *
   * @throws ForkFailed when not all could be made, after those that were are deleted; unless `partial`.
   */
  async forkMany(count: number, options: ForkManyOptions = {}): Promise<Children> {
    return (await this.#fork("fork", count, options)).children;
  }

  /**
   * Makes several children, of which one is to be kept: see `promote`.
   *
   * @throws ForkFailed as `forkMany` does.
   */
  async forkTree(count: number, options: ForkManyOptions = {}): Promise<ForkTree> {
    const { children, wire } = await this.#fork("fork-tree", count, options);
    return {
      treeId: wire.children[0]?.metadata["fork_tree_id"] ?? "",
      children,
      failures: children.failures,
      renewed: wire.renewed,
      notRenewed: wire.not_renewed,
      capture: toCamel(wire.capture),
    };
  }

  /** Keeps this child of a fork and deletes the others, never the source; with `keepSiblings` none. */
  async promote(options: { keepSiblings?: boolean; treeId?: string } = {}): Promise<Promoted> {
    refuseUnknown("Sandbox.promote", options, ["keepSiblings", "treeId"]);
    const json = { cleanup_siblings: options.keepSiblings !== true, tree_id: options.treeId };
    const call = { method: "POST", path: this.#path("promote"), json, isRepeatable: true } as const;
    return toCamel(await this.#connection.json<Wire["Promoted"]>(call));
  }

  /**
   * Tries each candidate in a child of its own and keeps the best; the other children are deleted.
   *
   * @example
   * ```ts
   * const { winner, best } = await sandbox.explore(["make fast", "make small"], {
   *   score: (result) => -result.durationMs,
   * });
   * ```
   */
  async explore<Value = ExecResult>(
    candidates: readonly Candidate<Value>[],
    options: ExploreOptions<Value> = {},
  ): Promise<Exploration<Value>> {
    checkExploration(candidates, options);
    const { children } = await this.forkTree(candidates.length, { ttlSeconds: options.ttlSeconds });
    return await exploreIn(children, candidates, options);
  }

  /** Keeps this moment; the sandbox goes on. `retainSeconds` gives the snapshot an end. */
  async snapshot(options: { name?: string; retainSeconds?: number } = {}): Promise<Snapshot> {
    refuseUnknown("Sandbox.snapshot", options, ["name", "retainSeconds"]);
    const wire = await this.#connection.json<Wire["Snapshot"]>({
      method: "POST",
      path: this.#path("snapshots"),
      json: toSnake(options),
      headers: { "idempotency-key": freshKey() },
      isRepeatable: true,
      deadlineMs: STATE_DEADLINE_MS,
    });
    return new Snapshot(this.#connection, wire);
  }

  /** Goes back to a snapshot of its own, in place. What happened since is lost. */
  async rollback(snapshot: Snapshot | string, options: EnvironmentOptions = {}): Promise<void> {
    refuseUnknown("Sandbox.rollback", options, ["env"]);
    const json = { snapshot_id: typeof snapshot === "string" ? snapshot : snapshot.id, env: options.env };
    const call = { method: "POST", path: this.#path("rollback"), json, deadlineMs: STATE_DEADLINE_MS } as const;
    this.#info = toCamel(await this.#connection.json<Wire["Sandbox"]>(call));
    this.#place.known.dead.clear();
  }

  /** Stops its CPUs; memory stays taken. */
  pause(): Promise<void> {
    return this.#change("pause");
  }

  resume(): Promise<void> {
    return this.#change("resume");
  }

  /** Puts it on disk alone. A command or a file wakes it. */
  hibernate(): Promise<void> {
    return this.#change("hibernate");
  }

  /** Brings it back. `env` replaces its environment variables, also while it runs. */
  wake(options: EnvironmentOptions = {}): Promise<void> {
    refuseUnknown("Sandbox.wake", options, ["env"]);
    return this.#change("wake", options.env === undefined ? undefined : { env: options.env });
  }

  /** How long it lives. */
  async lifecycle(): Promise<Lifecycle> {
    return toCamel(await this.#connection.json<Wire["Lifecycle"]>({ method: "GET", path: this.#path("lifecycle") }));
  }

  /** Changes what is named and leaves the rest; `null` takes a time away. */
  async setLifecycle(change: {
    ttlSeconds?: number | null;
    persistent?: boolean;
    idleSeconds?: number | null;
    onTimeout?: OnTimeout;
  }): Promise<Lifecycle> {
    refuseUnknown("Sandbox.setLifecycle", change, ["ttlSeconds", "persistent", "idleSeconds", "onTimeout"]);
    const call = { method: "PATCH", path: this.#path("lifecycle"), json: toSnake(change) } as const;
    const lifecycle = toCamel(await this.#connection.json<Wire["Lifecycle"]>(call));
    this.#info = { ...this.#info, persistent: lifecycle.persistent };
    return lifecycle;
  }

  /** Deletes it that long from now; `null` for never. */
  setTtl(seconds: number | null): Promise<Lifecycle> {
    return this.setLifecycle({ ttlSeconds: seconds });
  }

  setPersistent(persistent = true): Promise<Lifecycle> {
    return this.setLifecycle({ persistent });
  }

  /**
   * Tools for a model, bound to this sandbox: all of them, or those that are named. `bash` and
   * `text_editor` are Anthropic's own.
   *
   * @example
   * ```ts
   * const tools = sandbox.tools("run_code", "run_shell");
   * const result = await tools.call("run_shell", { command: "ls" });
   * console.log(result.text, result.isError);
   * ```
   */
  tools(...names: ToolName[]): Tools {
    return new Tools(this, names);
  }

  /** What listens in it. */
  async ports(): Promise<Port[]> {
    return toCamel((await this.#connection.json<Wire["PortList"]>({ method: "GET", path: this.#path("ports") })).ports);
  }

  /**
   * Waits until something listens on a port.
   *
   * @throws AnswerTimeout when nothing does after `timeoutSeconds`, 60 unless given.
   */
  async waitForPort(port: number, options: { timeoutSeconds?: number; signal?: AbortSignal } = {}): Promise<Port> {
    refuseUnknown("Sandbox.waitForPort", options, ["timeoutSeconds", "signal"]);
    const { timeoutSeconds = PORT_WAIT_SECONDS, signal } = options;
    const end = Date.now() + timeoutSeconds * 1000;
    for (;;) {
      const left = Math.max(0, end - Date.now());
      const timeout = Math.ceil(Math.min(left, PORT_WAIT_PART_MS));
      try {
        const found = await this.#connection.json<Wire["Port"]>({
          method: "POST",
          path: this.#path("ports", String(port), "wait"),
          json: { timeout_ms: timeout },
          isRepeatable: true,
          deadlineMs: timeout + CALL_DEADLINE_MS,
          signal,
        });
        return toCamel(found);
      } catch (error) {
        if (!(error instanceof SandboxTimeout)) throw error;
        if (left > timeout) continue;
        const text = `nothing listens on port ${port} after ${timeoutSeconds} s`;
        throw new AnswerTimeout(timeoutSeconds * 1000, text, error.hint);
      }
    }
  }

  /**
   * The address of a service for programs that send the API key in the header `Authorization`. Opens
   * nothing and asks nothing; for those who have no key, see `portLink`.
   */
  portUrl(port: number, path = "/"): string {
    const base = ["v1", ...this.#path("ports", String(port), "http")].join("/");
    return `${this.#connection.apiUrl}/${base}/${path.replace(/^\//, "")}`;
  }

  /**
   * A link with a token: opens a port to those who have it, or with `public` to anybody. Default: for
   * an hour. For programs that have the key, see `portUrl`.
   */
  async portLink(port: number, options: { ttlSeconds?: number; public?: boolean } = {}): Promise<PortLink> {
    refuseUnknown("Sandbox.portLink", options, ["ttlSeconds", "public"]);
    const call = { method: "POST", path: this.#path("ports", String(port), "links"), json: toSnake(options) } as const;
    return toCamel(await this.#connection.json<Wire["PortLink"]>(call));
  }

  /** The links of a port that work now, without their tokens. */
  async portLinks(port: number): Promise<PortLink[]> {
    const call = { method: "GET", path: this.#path("ports", String(port), "links") } as const;
    return toCamel((await this.#connection.json<Wire["PortLinkList"]>(call)).items);
  }

  /** Revokes a link. Connections that came by it are cut. */
  async revokeLink(link: Pick<PortLink, "port" | "id">): Promise<void> {
    const path = this.#path("ports", String(link.port), "links", checkedName("link id", link.id));
    await this.#connection.done({ method: "DELETE", path });
  }

  async #fork(
    route: "fork" | "fork-tree",
    count: number,
    options: ForkManyOptions,
  ): Promise<{ children: Children; wire: Wire["Forked"] }> {
    refuseUnknown("a fork", options, [...FORK_OPTIONS, "partial"]);
    const wire = await requestFork(this.#connection, this.#path(route), count, options);
    const { failures } = wire;
    const made = wire.children.map((child) => new Sandbox(this.#connection, child));
    const children = new Children(made, failures);
    if (Object.keys(failures).length > 0 && options.partial !== true) {
      const ids = children.map(({ id }) => id);
      await deleteSandboxes(this.#connection, ids);
      throw new ForkFailed(ids, failures);
    }
    return { children, wire };
  }

  #path(...rest: string[]): string[] {
    return ["sandboxes", this.id, ...rest];
  }

  #change(state: "pause" | "resume" | "hibernate" | "wake", json?: object): Promise<void> {
    // Each of them may be repeated, and does nothing when it is done already.
    const call = { method: "POST", path: this.#path(state), json, isRepeatable: true } as const;
    return this.#connection.done({ ...call, deadlineMs: STATE_DEADLINE_MS });
  }
}
