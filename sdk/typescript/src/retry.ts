/** Repeating what may be repeated. */

import { pause } from "./deadline.js";
import { ApiError, NodeUnavailable, TooMany } from "./errors.js";
import { AnswerLost, AnswerTimeout, ServerUnreachable } from "./failures.js";
import { RETRY_BUDGET_MS, RETRY_PAUSE_MS } from "./limits.js";
import { ConnectionsInUse } from "./places.js";

/** How one call may be repeated. */
export interface RetryRules {
  /** Whether a repetition changes nothing, so that it may follow a request that perhaps arrived. */
  isRepeatable: boolean;
  maxRetries: number;
  /** The answer may take longer than the platform waits for one; asking again is then no failure. */
  waitsLong: boolean;
  signal: AbortSignal | undefined;
  /** Hears why a call is sent again. */
  onRepeat?: ((error: unknown, waitMs: number) => void) | undefined;
}

/** Runs `attempt` until it succeeds, fails for good, or the budget is used up. */
export async function repeat<T>(rules: RetryRules, attempt: () => Promise<T>): Promise<T> {
  let tries = 0;
  let spentMs = 0;
  let lost: AnswerLost | undefined;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof AnswerLost) lost = error;
      const isPatience = rules.waitsLong && isHeadersTimeout(error);
      const waitMs = isPatience ? 0 : pauseBefore(error, tries, rules);
      if (waitMs === undefined || spentMs + waitMs > RETRY_BUDGET_MS) {
        // That nothing was sent the last time says nothing about the time before.
        throw error instanceof ServerUnreachable && lost !== undefined ? lost : error;
      }
      if (!isPatience) tries += 1;
      spentMs += waitMs;
      rules.onRepeat?.(error, waitMs);
      await pause(waitMs, rules.signal);
    }
  }
}

/** How long to wait before the next attempt; `undefined` when there is none. */
function pauseBefore(error: unknown, tries: number, rules: RetryRules): number | undefined {
  if (tries >= rules.maxRetries || !mayPass(error, rules.isRepeatable)) return undefined;
  if (error instanceof ApiError && error.retryAfterSeconds !== undefined) {
    // A little later than asked, so that many clients do not come back at once.
    return error.retryAfterSeconds * 1000 * (1 + Math.random() / 4);
  }
  return RETRY_PAUSE_MS * 4 ** tries * (0.5 + Math.random());
}

function mayPass(error: unknown, isRepeatable: boolean): boolean {
  // Waited for long enough already.
  if (error instanceof ConnectionsInUse) return false;
  // These two have done nothing yet, so any call may be sent again.
  if (error instanceof ServerUnreachable || error instanceof TooMany) return true;
  // Who was patient for so long would not be helped by being patient again.
  if (!isRepeatable || error instanceof AnswerTimeout) return false;
  if (error instanceof AnswerLost || error instanceof NodeUnavailable) return true;
  // A proxy's own words about a server that is not there.
  return error instanceof ApiError && error.code === "" && [502, 503, 504].includes(error.status ?? 0);
}

/** The platform's `fetch` gives up on a silent server: Node's after five minutes, by default. */
function isHeadersTimeout(error: unknown): boolean {
  if (!(error instanceof AnswerLost) || error instanceof AnswerTimeout) return false;
  const codes = causeCodes(error);
  const isNodes = codes.has("UND_ERR_HEADERS_TIMEOUT") || codes.has("UND_ERR_BODY_TIMEOUT");
  return isNodes || (error.cause as { name?: unknown } | undefined)?.name === "TimeoutError";
}

/** Every `code` in a chain of causes. */
export function causeCodes(error: unknown): Set<string> {
  const codes = causes(error).map(({ code }) => code);
  return new Set(codes.filter((code) => typeof code === "string"));
}

/** Every text in a chain of causes. */
export function causeTexts(error: unknown): string[] {
  const texts = causes(error).map(({ message }) => message);
  return texts.filter((text) => typeof text === "string");
}

function causes(error: unknown): { code?: unknown; message?: unknown }[] {
  const found: { code?: unknown; message?: unknown }[] = [];
  const waiting = [error];
  for (let step = 0; step < 16 && waiting.length > 0; step += 1) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    const { cause, errors } = next as { cause?: unknown; errors?: unknown };
    found.push(next);
    waiting.push(cause);
    if (Array.isArray(errors)) waiting.push(...(errors as unknown[]));
  }
  return found;
}
