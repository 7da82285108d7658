/** One run after the other: rules, a sandbox, and what is left of the last run. */

import { InvalidSettings } from "../failures.js";
import type { Sandbox } from "../sandbox.js";
import type { Snapshot } from "../snapshot.js";
import { Meter } from "./budget.js";
import { Checkpoints, deleteSnapshot } from "./checkpoints.js";
import { userText } from "./conversation.js";
import { UndoRefused } from "./errors.js";
import type { AgentResult, EventListener } from "./events.js";
import { type Rules, Run } from "./loop.js";
import type { AgentSandbox } from "./place.js";
import { Transcript } from "./transcript.js";

/** How long snapshots of a sandbox stay that has no TTL, when nobody deletes them. */
const RETAIN_SECONDS = 24 * 3600;

/** What becomes of checkpoints: how many there are, and whether they outlive the run. @internal */
export interface Keeping {
  readonly most: number;
  readonly isKept: boolean;
}

/** What a run is to do. @internal */
export interface Task {
  readonly text: string | undefined;
  /** The conversation that it goes on with. */
  readonly transcript: Transcript | undefined;
  readonly onEvent: EventListener | undefined;
  readonly signal: AbortSignal | undefined;
}

/** @internal */
export class Conductor {
  readonly #rules: Rules;
  readonly #place: AgentSandbox;
  readonly #keeping: Keeping;
  #run: Run | undefined;

  constructor(rules: Rules, place: AgentSandbox, keeping: Keeping) {
    this.#rules = rules;
    this.#place = place;
    this.#keeping = keeping;
  }

  get place(): AgentSandbox {
    return this.#place;
  }

  get transcript(): Transcript {
    return this.#run?.transcript ?? new Transcript();
  }

  get sandboxId(): string | undefined {
    return this.#run?.target.sandbox.id;
  }

  /** One with the same rules in a sandbox of the caller's. */
  apart(place: AgentSandbox): Conductor {
    return new Conductor(this.#rules, place, this.#keeping);
  }

  /** A whole run: a sandbox, the loop, and the end of the sandbox, whatever happens. */
  async conduct(task: Task): Promise<AgentResult> {
    const begun = transcriptOf(task);
    const meter = new Meter(this.#rules.budget);
    task.signal?.throwIfAborted();
    const sandbox = await this.#place.enter(task.signal);
    let result: AgentResult;
    try {
      result = await this.#runIn(sandbox, begun, meter, task);
    } finally {
      await this.#place.leave(sandbox);
    }
    await task.onEvent?.({ kind: "run_ended", result });
    return result;
  }

  async undo(steps: number): Promise<number> {
    if (this.#run === undefined) throw new UndoRefused("nothing was run yet that could be undone");
    return await this.#run.undo(steps);
  }

  async #runIn(sandbox: Sandbox, transcript: Transcript, meter: Meter, task: Task): Promise<AgentResult> {
    const retainSeconds = this.#place.ttlSeconds ?? RETAIN_SECONDS;
    const checkpoints = new Checkpoints(this.#keeping.most, retainSeconds);
    const taken: Snapshot[] = [];
    const onSnapshot = (snapshot: Snapshot): void => void taken.push(snapshot);
    const target = { sandbox, snapshotSeconds: retainSeconds, onSnapshot, signal: task.signal };
    const run = new Run(this.#rules, { target, transcript, checkpoints, meter, onEvent: task.onEvent });
    this.#run = run;
    transcript.stop = "cancelled";
    try {
      const reason = await run.go();
      transcript.stop = reason;
      if (reason === "sandbox_lost") this.#place.forget();
      await this.#clear(checkpoints, taken);
      return {
        text: transcript.turns().at(-1)?.text ?? "",
        ...{ reason, ok: reason === "done", spent: meter.spent(), transcript },
        ...{ sandboxId: sandbox.id, error: run.error, checkpoints: checkpoints.ids() },
      };
    } catch (error) {
      await this.#clear(checkpoints, taken);
      throw error;
    }
  }

  async #clear(checkpoints: Checkpoints, taken: readonly Snapshot[]): Promise<void> {
    if (!this.#keeping.isKept) await checkpoints.clear();
    // Nothing can go back to what the model took; elsewhere their retention ends them.
    if (this.#place.isOverAfterRun) for (const snapshot of taken) await deleteSnapshot(snapshot);
  }
}

/** The conversation with the task in it. */
function transcriptOf({ text, transcript }: Task): Transcript {
  const found = transcript?.copy() ?? new Transcript();
  found.stop = undefined;
  found.closeCalls();
  if (text !== undefined && text !== "") found.messages.push(userText(text));
  if (found.messages.length > 0) return found;
  throw new InvalidSettings("there is no task: give a text, or a transcript to go on with");
}
