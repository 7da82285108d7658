/** What the handles of one sandbox know of its contexts. */

/** @internal */
export class KnownContexts {
  /** Their interpreters have ended; the next run starts a new one. */
  readonly dead = new Set<string>();
  readonly #underWay = new Map<string, string[]>();

  /** Notes a run until it is over. */
  async during<T>(context: string, run: string, work: () => Promise<T>): Promise<T> {
    const runs = this.#underWay.get(context) ?? [];
    this.#underWay.set(context, runs);
    runs.push(run);
    try {
      return await work();
    } finally {
      runs.splice(runs.indexOf(run), 1);
    }
  }

  /** Whether the run is the one that the context is at, as far as is known here. */
  isFirst(context: string, run: string): boolean {
    return this.#underWay.get(context)?.[0] === run;
  }
}
