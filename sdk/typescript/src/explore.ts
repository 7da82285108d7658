/** Trying several things from the same moment and keeping the best. */

import type { Command } from "./exec-options.js";
import { ExecResult } from "./exec-result.js";
import { Execution } from "./execution.js";
import { EXPLORE_MAX_PARALLEL } from "./limits.js";
import { refuseUnknown } from "./names.js";
import type { Sandbox } from "./sandbox.js";

/** One thing to try: a command, or a function that works in the child. */
export type Candidate<Value = ExecResult> = Command | ((child: Sandbox) => Value | Promise<Value>);

/** Options of `explore`. */
export interface ExploreOptions<Value = ExecResult> {
  /**
   * Judges what a candidate gave; the highest score is kept, of several the first. Default: 1 for a
   * success, else 0; a number is its own score.
   */
  score?: ((result: ExecResult | Value, child: Sandbox) => number | Promise<number>) | undefined;
  /** For each command. */
  timeoutSeconds?: number | undefined;
  /** How many attempts run at the same time. Default 4. */
  maxParallel?: number | undefined;
  /** A score that is good enough: once there is one, no more attempts begin and none is waited for. */
  stopAt?: number | undefined;
  /** Of the children. */
  ttlSeconds?: number | undefined;
}

/** One candidate: what it gave and how it was judged. */
export interface Attempt<Value = ExecResult> {
  candidate: Candidate<Value>;
  result: ExecResult | Value | undefined;
  score: number | undefined;
  /** Why it gave nothing. */
  error: unknown;
  /** It was not begun, or not waited for, because another one had reached `stopAt`. */
  isSkipped: boolean;
}

/** `winner` is the sandbox of the best attempt; nobody, if every one failed. The others are gone. */
export interface Exploration<Value = ExecResult> {
  winner: Sandbox | undefined;
  best: Attempt<Value> | undefined;
  attempts: Attempt<Value>[];
}

const EXPLORE_OPTIONS = ["score", "timeoutSeconds", "maxParallel", "stopAt", "ttlSeconds"];

/** @internal */
export function checkExploration(candidates: readonly unknown[], options: ExploreOptions<never>): void {
  refuseUnknown("Sandbox.explore", options, EXPLORE_OPTIONS);
  if (candidates.length === 0) throw new RangeError("there is nothing to explore");
  const { maxParallel = EXPLORE_MAX_PARALLEL } = options;
  if (!Number.isInteger(maxParallel) || maxParallel < 1) throw new RangeError("maxParallel must be 1 or more");
}

/** Tries each candidate in a child of its own and keeps the best. @internal */
export async function exploreIn<Value>(
  children: readonly Sandbox[],
  candidates: readonly Candidate<Value>[],
  options: ExploreOptions<Value>,
): Promise<Exploration<Value>> {
  try {
    const attempts = await new Search(children, candidates, options).run();
    const scores = attempts.map((attempt) => attempt.score ?? -Infinity);
    const best = attempts.some((attempt) => attempt.score !== undefined) ? scores.indexOf(Math.max(...scores)) : -1;
    const winner = children[best];
    if (winner === undefined) {
      await deleteAll(children);
      return { winner: undefined, best: undefined, attempts };
    }
    // One call that deletes the siblings and nobody else.
    await winner.promote();
    return { winner, best: attempts[best], attempts };
  } catch (error) {
    await deleteAll(children);
    throw error;
  }
}

class Search<Value> {
  readonly #children: readonly Sandbox[];
  readonly #candidates: readonly Candidate<Value>[];
  readonly #options: ExploreOptions<Value>;
  readonly #attempts: Attempt<Value>[];
  readonly #enough = new AbortController();
  #next = 0;

  constructor(children: readonly Sandbox[], candidates: readonly Candidate<Value>[], options: ExploreOptions<Value>) {
    this.#children = children;
    this.#candidates = candidates;
    this.#options = options;
    const nothing = { result: undefined, score: undefined, error: undefined, isSkipped: true };
    this.#attempts = candidates.map((candidate) => ({ candidate, ...nothing }));
  }

  async run(): Promise<Attempt<Value>[]> {
    const { maxParallel = EXPLORE_MAX_PARALLEL } = this.#options;
    const found = new Promise<void>((resolve) => {
      this.#enough.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const workers = Array.from({ length: Math.min(maxParallel, this.#candidates.length) }, () => this.#work());
    await Promise.race([Promise.all(workers), found]);
    // What still runs changes nothing any more: a copy, as it was when it was decided.
    return this.#attempts.map((attempt) => ({ ...attempt }));
  }

  async #work(): Promise<void> {
    while (!this.#enough.signal.aborted) {
      const index = this.#next;
      this.#next += 1;
      const [child, candidate] = [this.#children[index], this.#candidates[index]];
      if (child === undefined || candidate === undefined) return;
      const attempt = await this.#try(child, candidate);
      if (this.#enough.signal.aborted) return;
      this.#attempts[index] = attempt;
      const { stopAt } = this.#options;
      if (stopAt !== undefined && (attempt.score ?? -Infinity) >= stopAt) this.#enough.abort();
    }
  }

  async #try(child: Sandbox, candidate: Candidate<Value>): Promise<Attempt<Value>> {
    const { timeoutSeconds, score = defaultScore } = this.#options;
    let result: ExecResult | Value;
    try {
      result = await (typeof candidate === "function" ? candidate(child) : child.exec(candidate, { timeoutSeconds }));
    } catch (error) {
      return { candidate, result: undefined, score: undefined, error, isSkipped: false };
    }
    return { candidate, result, score: await score(result, child), error: undefined, isSkipped: false };
  }
}

/** Success counts, nothing else does. */
function defaultScore(result: unknown): number {
  if (typeof result === "number") return result;
  if (result instanceof ExecResult || result instanceof Execution) return result.ok ? 1 : 0;
  return result === false ? 0 : 1;
}

async function deleteAll(children: readonly Sandbox[]): Promise<void> {
  // The TTL ends the one that cannot be deleted; the others must not wait for that.
  await Promise.allSettled(children.map((child) => child.delete()));
}
