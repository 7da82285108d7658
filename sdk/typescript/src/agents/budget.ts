/** How much a run may take, and why it ended. */

import { InvalidSettings } from "../failures.js";
import { refuseUnknown } from "../names.js";
import { totalOf, type Usage } from "./conversation.js";

const STEPS_DEFAULT = 50;

/** A budget that is used up. */
export type BudgetName = "steps" | "tokens" | "seconds" | "cost";

/**
 * Why a run ended; a budget is named by itself.
 *
 * - `done`: the model had nothing more to call.
 * - `output_limit`: a turn was longer than the model may write.
 * - `model_refused`: the model, or its provider, refused.
 * - `model_error`: the provider failed, after the retries of its client.
 * - `sandbox_lost`: the sandbox is gone, or the server cannot be reached.
 */
export type StopReason = "done" | BudgetName | "output_limit" | "model_refused" | "model_error" | "sandbox_lost";

/**
 * What one run may take. A turn is never cut off: the one that goes over a budget is the last, and its
 * calls are not carried out.
 */
export interface Budget {
  /** Turns of the model, each with its tool calls. Default 50; `null` is no limit. */
  steps?: number | null | undefined;
  /**
   * Of input and output together, as the provider counts them. One that reports none ends the run, as a
   * budget that cannot be kept is none.
   */
  tokens?: number | null | undefined;
  /** Of wall time. Tool calls are ended by it, and a model is not waited for longer. */
  seconds?: number | null | undefined;
  /** In whatever `costOf` counts. */
  cost?: number | null | undefined;
  /** What a turn costs. */
  costOf?: ((usage: Usage) => number) | undefined;
}

/** What a run took. */
export interface Spent {
  steps: number;
  inputTokens: number;
  outputTokens: number;
  seconds: number;
  cost: number;
}

const LIMITS = ["steps", "tokens", "seconds", "cost"] as const;

/** A budget that can be kept. @internal */
export function checkedBudget(budget: Budget): Budget {
  refuseUnknown("a budget", budget, [...LIMITS, "costOf"]);
  for (const name of LIMITS) {
    const value = budget[name] ?? undefined;
    if (value !== undefined && !(value > 0)) throw new InvalidSettings(`${name} must be greater than 0`);
  }
  if ((budget.cost ?? undefined) !== undefined && budget.costOf === undefined) {
    throw new InvalidSettings("a budget of cost needs costOf, which says what a turn costs");
  }
  return { ...budget, steps: budget.steps === undefined ? STEPS_DEFAULT : budget.steps };
}

/** Counts what a run takes against its budget. @internal */
export class Meter {
  readonly #budget: Budget;
  readonly #begin = performance.now();
  #spent = { steps: 0, inputTokens: 0, outputTokens: 0, cost: 0 };

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Takes a turn into account. */
  add(usage: Usage): void {
    const { steps, inputTokens, outputTokens, cost } = this.#spent;
    const more: unknown = this.#budget.costOf === undefined ? 0 : this.#budget.costOf(usage);
    // A sum that is no number would never reach the budget.
    if (typeof more !== "number" || !(more >= 0)) throw new TypeError("costOf must give a number from 0");
    this.#spent = {
      steps: steps + 1,
      inputTokens: inputTokens + usage.inputTokens,
      outputTokens: outputTokens + usage.outputTokens,
      cost: cost + more,
    };
  }

  get step(): number {
    return this.#spent.steps;
  }

  /** Whether a turn says what the budget is about. */
  canCount(usage: Usage): boolean {
    const isNeeded = (this.#budget.tokens ?? this.#budget.cost ?? undefined) !== undefined;
    return totalOf(usage) > 0 || !isNeeded;
  }

  /** Which budget does not allow another turn. */
  nextTurn(): BudgetName | undefined {
    return this.step >= (this.#budget.steps ?? Infinity) ? "steps" : this.nextCall();
  }

  /** Which budget does not allow another call. */
  nextCall(): BudgetName | undefined {
    const { tokens, cost } = this.#budget;
    if (totalOf(this.#spent) >= (tokens ?? Infinity)) return "tokens";
    if ((this.secondsLeft() ?? Infinity) <= 0) return "seconds";
    return this.#spent.cost >= (cost ?? Infinity) ? "cost" : undefined;
  }

  secondsLeft(): number | undefined {
    const seconds = this.#budget.seconds ?? undefined;
    return seconds === undefined ? undefined : seconds - this.#seconds();
  }

  spent(): Spent {
    return { ...this.#spent, seconds: this.#seconds() };
  }

  #seconds(): number {
    return (performance.now() - this.#begin) / 1000;
  }
}
