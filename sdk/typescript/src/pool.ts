/** Sandboxes that are ready before somebody asks. */

import { CREATE_OPTIONS, type CreateOptions } from "./create.js";
import { pause } from "./deadline.js";
import { NotFound } from "./errors.js";
import { AnswerTimeout, InvalidSettings } from "./failures.js";
import { POOL_PAUSE_MS } from "./limits.js";
import { refuseUnknown } from "./names.js";
import { Sandbox } from "./sandbox.js";
import type { Snapshot } from "./snapshot.js";

/** Options of `new SandboxPool`: how many, and how each is created. */
export interface SandboxPoolOptions extends Omit<CreateOptions, "persistent" | "signal"> {
  /** How many sandboxes there are, those that are out included. */
  size: number;
}

/** How a pool is. */
export interface PoolStatus {
  size: number;
  /** Ready to be had. */
  idle: number;
  /** Out. */
  busy: number;
  /** Being created, or set back. */
  preparing: number;
  /** Why the last one could not be created; it is tried again. */
  error: unknown;
}

/** A sandbox and the moment that it goes back to. */
interface Member {
  sandbox: Sandbox;
  fresh: Snapshot;
}

/** Somebody who waits for one. */
interface Waiting {
  take: (member: Member) => void;
  fail: (error: unknown) => void;
}

/**
 * A number of sandboxes that are created ahead and used again: whoever gives one back gets the next
 * user a sandbox as it was on its first day, by rollback to a snapshot.
 *
 * @example
 * ```ts
 * await using pool = new SandboxPool({ size: 4, template: "code-interpreter" });
 * const text = await pool.use(async (sandbox) => (await sandbox.runCode("6 * 7")).text);
 * ```
 */
export class SandboxPool implements AsyncDisposable {
  readonly #size: number;
  readonly #options: CreateOptions;
  readonly #idle: Member[] = [];
  readonly #busy = new Map<string, Member>();
  readonly #waiting: Waiting[] = [];
  readonly #work = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #lastError: unknown;

  /** Begins to create at once. */
  constructor(options: SandboxPoolOptions) {
    const { size, ...create } = options;
    if (!Number.isInteger(size) || size < 1) throw new InvalidSettings("the size of a pool must be 1 or more");
    refuseUnknown("new SandboxPool", create, CREATE_OPTIONS);
    this.#size = size;
    this.#options = create;
    for (let count = 0; count < size; count += 1) this.#inBackground(() => this.#add());
  }

  /**
   * Gives a sandbox that nobody else has, when one is ready.
   *
   * @throws AnswerTimeout when none is ready after `timeoutSeconds`. Default: no limit.
   */
  async acquire(options: { timeoutSeconds?: number; signal?: AbortSignal } = {}): Promise<Sandbox> {
    refuseUnknown("SandboxPool.acquire", options, ["timeoutSeconds", "signal"]);
    const { timeoutSeconds, signal } = options;
    for (const start = Date.now(); ; ) {
      const leftMs = timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000 - (Date.now() - start);
      const member = this.#idle.shift() ?? (await this.#next(leftMs, signal));
      this.#busy.set(member.sandbox.id, member);
      try {
        if (await this.#isUsable(member)) return member.sandbox;
      } catch (error) {
        // Nothing is known against it; the next one may have more luck.
        this.#busy.delete(member.sandbox.id);
        this.#offer(member);
        throw error;
      }
      this.#replace(member);
    }
  }

  /** Gives a sandbox back. It is set back before the next one gets it; one that cannot be is replaced. */
  release(sandbox: Sandbox): void {
    const member = this.#busy.get(sandbox.id);
    if (member === undefined) throw new InvalidSettings(`${sandbox.id} is not out of this pool`);
    this.#busy.delete(sandbox.id);
    this.#inBackground(async () => {
      try {
        // Who had it may have replaced them, and a rollback keeps them.
        await member.sandbox.rollback(member.fresh, { env: this.#options.env ?? {} });
        this.#offer(member);
      } catch {
        await this.#discard(member);
        await this.#add();
      }
    });
  }

  /** Lends a sandbox to a function, whatever comes of it. */
  async use<Value>(
    work: (sandbox: Sandbox) => Value | Promise<Value>,
    options: { timeoutSeconds?: number; signal?: AbortSignal } = {},
  ): Promise<Value> {
    const sandbox = await this.acquire(options);
    try {
      return await work(sandbox);
    } finally {
      if (!this.#closing.signal.aborted) this.release(sandbox);
    }
  }

  /** How many are ready and out. Asks nothing. */
  status(): PoolStatus {
    const [idle, busy] = [this.#idle.length, this.#busy.size];
    return { size: this.#size, idle, busy, preparing: this.#work.size, error: this.#lastError };
  }

  /** Deletes all sandboxes, those that are out included, and their snapshots. May be repeated. */
  async close(): Promise<void> {
    const reason = new InvalidSettings("the pool is closed");
    this.#closing.abort(reason);
    for (const { fail } of this.#waiting.splice(0)) fail(reason);
    await Promise.all(this.#work);
    const members = [...this.#idle.splice(0), ...this.#busy.values()];
    this.#busy.clear();
    await Promise.all(members.map((member) => this.#discard(member)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #inBackground(work: () => Promise<void>): void {
    // A pool that is closed meanwhile is nobody's failure.
    const quiet = work().catch(() => undefined);
    this.#work.add(quiet);
    void quiet.then(() => this.#work.delete(quiet));
  }

  /** Creates one, for as long as it takes. */
  async #add(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        this.#offer(await this.#create());
        this.#lastError = undefined;
        return;
      } catch (error) {
        this.#lastError = error;
        // Who waits hears why; the pool itself goes on.
        for (const { fail } of this.#waiting.splice(0)) fail(error);
        await pause(POOL_PAUSE_MS, signal);
      }
    }
  }

  async #create(): Promise<Member> {
    const sandbox = await Sandbox.create({ ...this.#options, signal: this.#closing.signal });
    try {
      return { sandbox, fresh: await sandbox.snapshot() };
    } catch (error) {
      await sandbox.delete().catch(() => undefined);
      throw error;
    }
  }

  #offer(member: Member): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(member);
    else next.take(member);
  }

  #next(leftMs: number | undefined, signal: AbortSignal | undefined): Promise<Member> {
    this.#closing.signal.throwIfAborted();
    signal?.throwIfAborted();
    return new Promise<Member>((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        const index = this.#waiting.indexOf(waiting);
        if (index !== -1) this.#waiting.splice(index, 1);
      };
      const fail = (error: unknown): void => (end(), reject(error as Error));
      const stop = (): void => fail(signal?.reason);
      const waiting = { take: (member: Member): void => (end(), resolve(member)), fail };
      const giveUp = (): void => fail(new AnswerTimeout(leftMs ?? 0, "no sandbox of the pool was free in time"));
      const timer = leftMs === undefined ? undefined : setTimeout(giveUp, Math.max(leftMs, 0));
      signal?.addEventListener("abort", stop, { once: true });
      this.#waiting.push(waiting);
    });
  }

  /** Whether it is still there and runs. Its time begins anew. */
  async #isUsable({ sandbox }: Member): Promise<boolean> {
    try {
      const { status } = await sandbox.refresh();
      if (status !== "running" && status !== "hibernated") return false;
      if (this.#options.ttlSeconds !== undefined) await sandbox.setTtl(this.#options.ttlSeconds);
      return true;
    } catch (error) {
      if (error instanceof NotFound) return false;
      throw error;
    }
  }

  #replace(member: Member): void {
    this.#busy.delete(member.sandbox.id);
    this.#inBackground(async () => {
      await this.#discard(member);
      await this.#add();
    });
  }

  async #discard({ sandbox, fresh }: Member): Promise<void> {
    // The TTL ends a sandbox that cannot be deleted; its snapshot must not wait for that.
    await sandbox.delete().catch(() => undefined);
    await fresh.delete().catch(() => undefined);
  }
}
