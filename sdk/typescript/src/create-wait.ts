/** Waiting for a create that was refused for now. */

import { type ApiError, NoCapacity, NodeUnavailable, TemplateBaking } from "./errors.js";
import {
  BAKING_WAIT_MS,
  CAPACITY_WAIT_MS,
  NODE_WAIT_MS,
  WAIT_PAUSE_DEFAULT_MS,
  WAIT_PAUSE_MAX_MS,
  WAIT_PAUSE_MIN_MS,
} from "./limits.js";

/** Why a create has to wait. */
export type WaitReason = "template_baking" | "no_capacity" | "node_unavailable";

/** News of a create that has to wait. Nothing has been created yet. */
export interface WaitProgress {
  reason: WaitReason;
  /** How far a bake is, 0 to 100. */
  percent: number | undefined;
  /** The server's words. */
  message: string;
  /** Since the first refusal. */
  waitedSeconds: number;
}

/** What to do about a refusal. */
export interface Wait {
  progress: WaitProgress;
  pauseMs: number;
}

/** The waits of one create. */
export class Waits {
  readonly #bakingMs: number;
  /** The reason of the last refusal, and how long was waited when it began. */
  #last: { reason: WaitReason; beganMs: number } | undefined;

  /** `waitSeconds` is the caller's own limit, for every reason. */
  constructor(waitSeconds: number | undefined) {
    this.#bakingMs = waitSeconds === undefined ? BAKING_WAIT_MS : waitSeconds * 1000;
  }

  /**
   * How to wait after a refusal; `undefined` when waiting does not help, or has lasted too long: for
   * this reason, or as a whole. A node that starts again after a long bake, as the first start on a
   * host with KVM does, is waited for like any other.
   */
  after(error: unknown, waitedMs: number): Wait | undefined {
    const reason = reasonOf(error);
    if (reason === undefined) return undefined;
    const beganMs = this.#last?.reason === reason ? this.#last.beganMs : waitedMs;
    this.#last = { reason, beganMs };
    const limitMs = this.#limitOf(reason);
    const leftMs = Math.min(limitMs - (waitedMs - beganMs), this.#bakingMs - waitedMs);
    if (leftMs <= 0) return undefined;
    const { retryAfterSeconds, message } = error as ApiError;
    const askedMs = retryAfterSeconds === undefined ? WAIT_PAUSE_DEFAULT_MS : retryAfterSeconds * 1000;
    const percent = error instanceof TemplateBaking ? error.percent : undefined;
    return {
      progress: { reason, percent, message, waitedSeconds: waitedMs / 1000 },
      pauseMs: Math.min(Math.max(askedMs, WAIT_PAUSE_MIN_MS), WAIT_PAUSE_MAX_MS, leftMs),
    };
  }

  #limitOf(reason: WaitReason): number {
    if (reason === "template_baking") return this.#bakingMs;
    return Math.min(this.#bakingMs, reason === "no_capacity" ? CAPACITY_WAIT_MS : NODE_WAIT_MS);
  }
}

/** The refusals that leave nothing behind and pass by themselves. */
function reasonOf(error: unknown): WaitReason | undefined {
  if (error instanceof TemplateBaking) return "template_baking";
  if (error instanceof NoCapacity) return "no_capacity";
  return error instanceof NodeUnavailable ? "node_unavailable" : undefined;
}
