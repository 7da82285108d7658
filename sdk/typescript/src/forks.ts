/** Children that continue from one moment, and a search among them. */

import type { Connection } from "./connection.js";
import type { LifecycleOptions, NetworkOptions } from "./create.js";
import type { Command } from "./exec-options.js";
import type { ExecResult } from "./exec-result.js";
import { freshKey } from "./ids.js";
import { EXPLORE_AT_ONCE, FORK_DEADLINE_MS } from "./limits.js";
import { toSnake } from "./names.js";
import type { Sandbox } from "./sandbox.js";
import type { Capture, Wire } from "./wire.js";

/** What every child gets. Nothing of the source's own lifecycle is inherited. */
export interface ForkOptions extends LifecycleOptions, NetworkOptions {
  metadata?: Readonly<Record<string, string>> | undefined;
  /** When one child cannot be made, none stays. */
  allOrNothing?: boolean | undefined;
  /** Also run the guest's reseed hooks, for generators in user space. */
  reseedUserSpace?: boolean | undefined;
}

/** The children of one fork. */
export interface ForkTree {
  treeId: string;
  children: Sandbox[];
  /** Why a child was not made, by the id that it would have had. */
  failures: Readonly<Record<string, string>>;
  /** What every child has of its own. */
  renewed: readonly string[];
  /** What children share with their source until their own code changes it. */
  notRenewed: readonly string[];
  capture: Capture;
}

/** One thing to try: a command, or a function that works in the child. */
export type Candidate = Command | ((child: Sandbox) => Promise<ExecResult>);

/** Options of `explore`. */
export interface ExploreOptions {
  /** The attempt with the highest score is kept, of several the first. Default: 1 for success, else 0. */
  score?: ((result: ExecResult) => number | Promise<number>) | undefined;
  /** For each command. */
  timeoutSeconds?: number | undefined;
  /** How many attempts run at the same time. Default 4. */
  atOnce?: number | undefined;
  /** Of the children. */
  ttlSeconds?: number | undefined;
}

/** One candidate: what it gave and how it was judged. `error` when it gave nothing. */
export interface Attempt {
  candidate: Candidate;
  result: ExecResult | undefined;
  score: number | undefined;
  error: unknown;
}

/** `winner` is the sandbox of the best attempt; nobody, if every one failed. The others are gone. */
export interface Exploration {
  winner: Sandbox | undefined;
  best: Attempt | undefined;
  attempts: Attempt[];
}

/** Asks for children. Carries a fresh key, so a repetition makes no second set. @internal */
export function requestFork(
  connection: Connection,
  sandboxId: string,
  route: "fork" | "fork-tree",
  count: number,
  options: ForkOptions,
): Promise<Wire["Forked"]> {
  return connection.json<Wire["Forked"]>({
    method: "POST",
    path: ["sandboxes", sandboxId, route],
    json: { ...toSnake(options), count },
    headers: { "idempotency-key": freshKey() },
    isRepeatable: true,
    waitsLong: true,
    deadlineMs: FORK_DEADLINE_MS,
  });
}

/** Tries each candidate in a child of its own and keeps the best. @internal */
export async function exploreIn(
  children: readonly Sandbox[],
  candidates: readonly Candidate[],
  options: ExploreOptions,
): Promise<Exploration> {
  try {
    const attempts = await tryAll(children, candidates, options);
    const scores = attempts.map((attempt) => attempt.score ?? -Infinity);
    const best = attempts.some((attempt) => attempt.score !== undefined) ? scores.indexOf(Math.max(...scores)) : -1;
    const winner = children[best];
    if (winner === undefined) {
      await deleteAll(children);
      return { winner: undefined, best: undefined, attempts };
    }
    // One call that deletes the siblings and nobody else.
    await winner.promote({ cleanupSiblings: true });
    return { winner, best: attempts[best], attempts };
  } catch (error) {
    await deleteAll(children);
    throw error;
  }
}

async function tryAll(
  children: readonly Sandbox[],
  candidates: readonly Candidate[],
  options: ExploreOptions,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      const index = next;
      next += 1;
      const [child, candidate] = [children[index], candidates[index]];
      if (child === undefined || candidate === undefined) return;
      attempts[index] = await tryOne(child, candidate, options);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, options.atOnce ?? EXPLORE_AT_ONCE) }, work));
  return attempts;
}

async function tryOne(child: Sandbox, candidate: Candidate, options: ExploreOptions): Promise<Attempt> {
  const { timeoutSeconds, score = defaultScore } = options;
  let result: ExecResult;
  try {
    result = await (typeof candidate === "function" ? candidate(child) : child.exec(candidate, { timeoutSeconds }));
  } catch (error) {
    return { candidate, result: undefined, score: undefined, error };
  }
  return { candidate, result, score: await score(result), error: undefined };
}

/** Success counts, nothing else does. */
function defaultScore(result: ExecResult): number {
  return result.ok ? 1 : 0;
}

async function deleteAll(children: readonly Sandbox[]): Promise<void> {
  // The TTL ends the one that cannot be deleted; the others must not wait for that.
  await Promise.allSettled(children.map((child) => child.delete()));
}
