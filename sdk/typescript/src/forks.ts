/** Children that continue from one moment. */

import type { Connection } from "./connection.js";
import type { LifecycleOptions, NetworkOptions } from "./create.js";
import { freshKey } from "./ids.js";
import { FORK_DEADLINE_MS } from "./limits.js";
import { toSnake } from "./names.js";
import type { Sandbox } from "./sandbox.js";
import { deleteSandboxes, makeOrUndo } from "./undo.js";
import type { Capture, Wire } from "./wire.js";

/** What every child gets. TTL, idle time and labels are its source's unless others are given. */
export interface ForkOptions extends LifecycleOptions, NetworkOptions {
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Environment variables in place of those of the source. */
  env?: Readonly<Record<string, string>> | undefined;
  /** Also run the guest's reseed hooks, for generators in user space. */
  reseedUserSpace?: boolean | undefined;
  /** Gives up waiting. Children that are made in spite of it are deleted. */
  signal?: AbortSignal | undefined;
}

/** Options of a fork into several children. */
export interface ForkManyOptions extends ForkOptions {
  /**
   * Keeps those that could be made when others could not; `failures` then says why. Without it that is
   * a `ForkFailed`, and none stays.
   */
  partial?: boolean | undefined;
}

/**
 * Children of a fork. At the end of `await using` those are deleted that are neither persistent nor
 * detached.
 *
 * @example
 * ```ts
 * await using children = await sandbox.forkMany(3);
 * const results = await Promise.all(children.map((child) => child.exec("make test")));
 * children[0]?.detach(); // this one stays
 * ```
 */
export class Children extends Array<Sandbox> implements AsyncDisposable {
  /** Why a child was not made, by the id that it would have had. Empty without `partial`. */
  readonly failures: Readonly<Record<string, string>>;

  /** What `map` and `filter` give are plain lists, whose end deletes nothing. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  /** @internal */
  constructor(children: readonly Sandbox[], failures: Readonly<Record<string, string>>) {
    super();
    this.push(...children);
    this.failures = failures;
  }

  /** Deletes those that are neither persistent nor detached. May be repeated. */
  async close(): Promise<void> {
    const ends = await Promise.allSettled([...this].map((child) => child.close()));
    // The others are deleted all the same.
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The children of one fork. */
export interface ForkTree {
  treeId: string;
  children: Children;
  /** Why a child was not made, by the id that it would have had. Only with `partial`. */
  failures: Readonly<Record<string, string>>;
  /** What every child has of its own. */
  renewed: readonly string[];
  /** What children share with their source until their own code changes it. */
  notRenewed: readonly string[];
  capture: Capture;
}

/** @internal */
export const FORK_OPTIONS = [
  ...["ttlSeconds", "persistent", "idleSeconds", "onTimeout", "egressAllowlist", "network", "metadata"],
  ...["env", "reseedUserSpace", "signal"],
];

/** Asks for children. Carries a fresh key, so a repetition makes no second set. @internal */
export function requestFork(
  connection: Connection,
  path: string[],
  count: number,
  options: ForkManyOptions,
): Promise<Wire["Forked"]> {
  const { signal, partial: _, ...wish } = options;
  const given = Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== undefined));
  const call = {
    method: "POST",
    path,
    json: { ...toSnake(given), count },
    headers: { "idempotency-key": freshKey() },
    isRepeatable: true,
    waitsLong: true,
    deadlineMs: FORK_DEADLINE_MS,
  } as const;
  return makeOrUndo(
    connection,
    signal,
    () => connection.json<Wire["Forked"]>(call),
    ({ children }) => deleteSandboxes(connection, children.map(({ id }) => id)),
  );
}
