/** Moments of a sandbox before each tool call, so that any of them can be undone. */

import { DayflyError } from "../errors.js";
import type { Sandbox } from "../sandbox.js";
import type { Snapshot } from "../snapshot.js";
import { UndoRefused } from "./errors.js";

/** The moment before one tool call. */
interface Checkpoint {
  readonly snapshot: Snapshot;
  readonly callName: string;
}

/** The moments of one run, the latest last. Of too many the oldest go first. @internal */
export class Checkpoints {
  readonly #most: number;
  /** Ends them when nobody is left to delete them. */
  readonly #retainSeconds: number;
  readonly #kept: Checkpoint[] = [];
  #dropped = 0;

  constructor(most: number, retainSeconds: number) {
    this.#most = most;
    this.#retainSeconds = retainSeconds;
  }

  /** The snapshots, the latest last. */
  ids(): string[] {
    return this.#kept.map(({ snapshot }) => snapshot.id);
  }

  /** Keeps this moment, and gives its id. */
  async take(sandbox: Sandbox, callName: string): Promise<string> {
    const snapshot = await sandbox.snapshot({ retainSeconds: this.#retainSeconds });
    this.#kept.push({ snapshot, callName });
    return snapshot.id;
  }

  /** Deletes the oldest if there are too many, and says which. */
  async dropOldest(): Promise<string | undefined> {
    if (this.#kept.length <= this.#most) return undefined;
    const oldest = this.#kept.shift();
    if (oldest === undefined) return undefined;
    this.#dropped += 1;
    await remove(oldest);
    return oldest.snapshot.id;
  }

  /** Goes back by so many calls, and gives their names, the earliest first. */
  async undo(sandbox: Sandbox, steps: number): Promise<string[]> {
    if (!Number.isInteger(steps) || steps < 1) throw new UndoRefused("steps must be at least 1");
    const first = this.#kept[this.#kept.length - steps];
    if (first === undefined) throw new UndoRefused(this.#whyNot(steps));
    await sandbox.rollback(first.snapshot);
    const undone = this.#kept.splice(-steps);
    for (const one of undone) await remove(one);
    return undone.map(({ callName }) => callName);
  }

  /** Deletes all of them. */
  async clear(): Promise<void> {
    for (let one = this.#kept.pop(); one !== undefined; one = this.#kept.pop()) await remove(one);
  }

  #whyNot(steps: number): string {
    const text = `${steps} calls cannot be undone, only ${this.#kept.length}`;
    if (this.#dropped === 0) return text;
    return `${text}; ${this.#dropped} earlier checkpoints were dropped, ${this.#most} are kept`;
  }
}

function remove({ snapshot }: Checkpoint): Promise<void> {
  return deleteSnapshot(snapshot);
}

/** Deletes a snapshot, now or later. @internal */
export async function deleteSnapshot(snapshot: Snapshot): Promise<void> {
  try {
    await snapshot.delete();
  } catch (error) {
    // Its retention ends it then.
    if (!(error instanceof DayflyError)) throw error;
  }
}

/** What a model is to know when somebody else has undone its calls. @internal */
export function undoneNote(names: readonly string[]): string {
  const calls = names.length === 1 ? "tool call was" : `${names.length} tool calls were`;
  const what = "files, running programs, memory and the state of interpreters are as they were before.";
  return `[The last ${calls} undone (${names.join(", ")}): ${what}]`;
}
