/** An agent: a model, a sandbox, tools and a budget. */

import { InvalidSettings } from "../failures.js";
import { refuseUnknown } from "../names.js";
import type { Sandbox } from "../sandbox.js";
import { Selection, type ToolName } from "../tools/calls.js";
import { type BestOf, bestOf, type BestOfOptions } from "./best-of.js";
import { type Budget, checkedBudget } from "./budget.js";
import { Conductor } from "./conductor.js";
import type { AgentEvent, AgentResult, EventListener } from "./events.js";
import { Handover } from "./handover.js";
import type { BeforeExecution, Rules } from "./loop.js";
import { type ClientModel, type ModelFunction, modelOf } from "./model.js";
import { PLACE_OPTIONS, placeOf, type PlaceOptions } from "./place.js";
import type { Transcript } from "./transcript.js";

const STEP_TIMEOUT_SECONDS = 600;
const CHECKPOINTS_MAX = 20;

/** Options of an agent. */
export interface AgentOptions extends PlaceOptions {
  /** A sandbox of yours, which is not deleted. Without it each run makes one and deletes it, whatever happens. */
  sandbox?: Sandbox | undefined;
  /** Names of tools. Default: all of `Sandbox.tools`. */
  tools?: readonly ToolName[] | undefined;
  /** Default: 50 steps. */
  budget?: Budget | undefined;
  /** For the model. */
  system?: string | undefined;
  /** For each tool call, whatever the model asks for. Default 600; `null` is no limit. */
  stepTimeoutSeconds?: number | null | undefined;
  /**
   * Gets each call before it is carried out, and gives nothing or a `Refusal`. It is advice: the sandbox is
   * the boundary.
   */
  beforeExecution?: BeforeExecution | undefined;
  /** `step`: a snapshot before each tool call that may change something, so that `undo` can go back. */
  checkpoint?: "step" | undefined;
  /** Has the model undo calls as well. */
  undoTool?: boolean | undefined;
  /** How many checkpoints a run has; of more the oldest go first. Default 20. */
  maxCheckpoints?: number | undefined;
  /** Leaves checkpoints at the end of a run, for `undo` afterwards. */
  keepCheckpoints?: boolean | undefined;
}

/** Options of a run. */
export interface RunAgentOptions {
  /** A conversation to go on with, of this agent or a stored one. */
  transcript?: Transcript | undefined;
  /** Hears what happens. */
  onEvent?: EventListener | undefined;
  /** Ends the run, deletes the sandbox that was made for it, and throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

const AGENT_OPTIONS = [
  ...["sandbox", "tools", "budget", "system", "stepTimeoutSeconds", "beforeExecution", "checkpoint", "undoTool"],
  ...["maxCheckpoints", "keepCheckpoints", "apiUrl", "apiKey", "maxRetries", "client", ...PLACE_OPTIONS],
];

/**
 * A model that works in a sandbox, within a budget.
 *
 * @example
 * ```ts
 * const model = new AnthropicModel(new Anthropic(), "claude-...");
 * const agent = new Agent(model, { budget: { steps: 20, seconds: 600 } });
 * const result = await agent.run("How many primes are there below a million?");
 * console.log(result.text, result.reason, result.spent);
 * ```
 */
export class Agent implements AsyncDisposable {
  readonly #core: Conductor;

  /** Makes no request. */
  constructor(model: ClientModel | ModelFunction, options: AgentOptions = {}) {
    refuseUnknown("Agent", options, AGENT_OPTIONS);
    const { maxCheckpoints = CHECKPOINTS_MAX, keepCheckpoints = false } = options;
    if (!(maxCheckpoints >= 1)) throw new InvalidSettings("maxCheckpoints is at least 1");
    const place = placeOf(options.sandbox, options);
    this.#core = new Conductor(rulesOf(model, options), place, { most: maxCheckpoints, isKept: keepCheckpoints });
  }

  /** That of the run that goes on, or of the last one, also when it was cancelled. */
  get transcript(): Transcript {
    return this.#core.transcript;
  }

  /** The sandbox of the run that goes on, or of the last one. */
  get sandboxId(): string | undefined {
    return this.#core.sandboxId;
  }

  /**
   * Works on a task until the model is done or a budget is used up. What went wrong with the model or the
   * sandbox is in the result; `transcript` of the agent has all that was said, also after an exception.
   */
  async run(task?: string, options: RunAgentOptions = {}): Promise<AgentResult> {
    refuseUnknown("Agent.run", options, ["transcript", "onEvent", "signal"]);
    const { transcript, onEvent, signal } = options;
    return await this.#core.conduct({ text: task, transcript, onEvent, signal });
  }

  /**
   * As `run`, as events to iterate over; the last is `run_ended`. The run goes on when the next event is
   * asked for, and who stops iterating ends it.
   *
   * @example
   * ```ts
   * for await (const event of agent.stream("Sort the files in /workspace by size.")) {
   *   if (event.kind === "call_began") console.log(event.call.name, event.call.arguments);
   * }
   * ```
   */
  async *stream(
    task?: string,
    options: Omit<RunAgentOptions, "onEvent"> = {},
  ): AsyncGenerator<AgentEvent, void, undefined> {
    refuseUnknown("Agent.stream", options, ["transcript", "signal"]);
    const { transcript, signal } = options;
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const events = new Handover<AgentEvent>();
    const onEvent = (event: AgentEvent): Promise<void> => events.offer(event);
    const running = this.#core
      .conduct({ text: task, transcript, onEvent, signal: stop.signal })
      .then(() => events.end(), (error: unknown) => events.end(error));
    try {
      yield* events.items();
    } finally {
      signal?.removeEventListener("abort", onAbort);
      stop.abort(new Error("nobody iterates over the events of the run any more"));
      events.giveUp();
      await running;
    }
  }

  /**
   * Undoes the last tool calls that may have changed something: files, memory, interpreters. While a run
   * goes on, between two calls (in a listener of `call_ended`), or after it with `keepCheckpoints` in a
   * sandbox that is still there. The model gets to know. Gives how many were undone.
   *
   * @throws UndoRefused if there are not so many checkpoints, or a call is being carried out.
   */
  undo(steps = 1): Promise<number> {
    return this.#core.undo(steps);
  }

  /**
   * Has a task done several times, each in a fork of the same moment, and keeps the best. `winner` is the
   * sandbox of the best run, and yours to delete; the others are deleted. Budgets count for each run.
   */
  bestOf(count: number, task: string, options: BestOfOptions = {}): Promise<BestOf> {
    return bestOf(this.#core, count, task, options);
  }

  /** Deletes the sandbox of `scope: "session"`. May be repeated. */
  async close(): Promise<void> {
    await this.#core.place.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** What an agent is made of, checked before anything is made. */
function rulesOf(given: ClientModel | ModelFunction, options: AgentOptions): Rules {
  const { tools, system, beforeExecution, checkpoint, undoTool = false } = options;
  const { stepTimeoutSeconds = STEP_TIMEOUT_SECONDS } = options;
  if (typeof tools === "string") throw new InvalidSettings("tools is a list of names");
  // Without names all of them are meant, which an empty list hardly is.
  if (tools?.length === 0) throw new InvalidSettings("tools has no name; leave it away for all of them");
  if (checkpoint !== undefined && checkpoint !== "step") throw new InvalidSettings('checkpoint is "step", or nothing');
  if (undoTool && checkpoint === undefined) throw new InvalidSettings('undoTool needs checkpoint: "step"');
  if (stepTimeoutSeconds !== null && !(stepTimeoutSeconds > 0)) {
    throw new InvalidSettings("stepTimeoutSeconds must be greater than 0");
  }
  const model = modelOf(given);
  const selection = new Selection(tools ?? []);
  model.check(selection);
  return {
    ...{ model, selection, system, beforeExecution },
    budget: checkedBudget(options.budget ?? {}),
    stepTimeoutSeconds: stepTimeoutSeconds ?? undefined,
    isCheckpointed: checkpoint === "step",
    hasUndoTool: undoTool,
  };
}
