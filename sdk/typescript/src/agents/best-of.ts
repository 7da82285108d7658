/** One agent as a search: several runs from the same moment, of which the best is kept. */

import type { Attempt, Exploration } from "../explore.js";
import { InvalidSettings } from "../failures.js";
import { refuseUnknown } from "../names.js";
import type { Sandbox } from "../sandbox.js";
import type { Conductor } from "./conductor.js";
import type { AgentResult } from "./events.js";
import { AgentSandbox } from "./place.js";

/** Options of `bestOf`. */
export interface BestOfOptions {
  /**
   * Judges a run by how it ended, and by the sandbox that it left, for example by the tests in it; more is
   * better. Default: a run counts that came to its end.
   */
  score?: ((result: AgentResult, sandbox: Sandbox) => number | boolean | Promise<number | boolean>) | undefined;
  /** Once a score reaches it, no further run is begun, and those that go on are ended. */
  stopAt?: number | undefined;
  /** How many runs go on at the same time. Default 4. */
  maxParallel?: number | undefined;
  /** Ends all runs, deletes all copies, and throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** One run, how it was judged, or why it has no result. */
export interface Trial {
  result: AgentResult | undefined;
  score: number | undefined;
  error: unknown;
  /** It was not begun, or not waited for, because another one had reached `stopAt`. */
  isSkipped: boolean;
}

/** `winner` is the sandbox of the best run, and the caller's to delete; nobody, if all failed. */
export interface BestOf {
  winner: Sandbox | undefined;
  best: Trial | undefined;
  trials: Trial[];
}

/** Another run has reached what was wanted. */
class Enough extends Error {}

/** @internal */
export async function bestOf(core: Conductor, count: number, task: string, options: BestOfOptions): Promise<BestOf> {
  refuseUnknown("Agent.bestOf", options, ["score", "stopAt", "maxParallel", "signal"]);
  if (!Number.isInteger(count) || count < 1) throw new InvalidSettings("bestOf takes at least 1 run");
  const { signal, stopAt, maxParallel } = options;
  signal?.throwIfAborted();
  const source = await core.place.enter(signal);
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const running: Promise<Trial>[] = [];
  try {
    const attempt = (child: Sandbox): Promise<Trial> => {
      const trial = judgedRun(core, child, task, options, stop);
      running.push(trial);
      return trial;
    };
    const candidates = Array.from({ length: count }, () => attempt);
    const { ttlSeconds } = core.place;
    const score = (trial: unknown): number => (trial as Trial).score ?? 0;
    const found = await source.explore<Trial>(candidates, { score, stopAt, maxParallel, ttlSeconds });
    if (signal?.aborted) await found.winner?.delete();
    signal?.throwIfAborted();
    return bestOfFound(found);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // Runs that nobody waits for any more must not go on asking a model.
    stop.abort(new Enough());
    await Promise.allSettled(running);
    await core.place.leave(source);
  }
}

async function judgedRun(
  core: Conductor,
  child: Sandbox,
  text: string,
  { score, stopAt }: BestOfOptions,
  stop: AbortController,
): Promise<Trial> {
  const alone = core.apart(new AgentSandbox({ given: child }));
  const task = { text, transcript: undefined, onEvent: undefined, signal: stop.signal };
  const result = await alone.conduct(task);
  const points = Number(score === undefined ? result.ok : await score(result, child));
  if (stopAt !== undefined && points >= stopAt) stop.abort(new Enough());
  return { result, score: points, error: undefined, isSkipped: false };
}

function bestOfFound({ winner, best, attempts }: Exploration<Trial>): BestOf {
  return { winner, best: best === undefined ? undefined : trialOf(best), trials: attempts.map(trialOf) };
}

function trialOf({ result, error, isSkipped }: Attempt<Trial>): Trial {
  if (result !== undefined) return result as Trial;
  const isEnough = error instanceof Enough;
  return { result: undefined, score: undefined, error: isEnough ? undefined : error, isSkipped: isSkipped || isEnough };
}
