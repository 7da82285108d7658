/** Hands events of a run to whoever iterates over them, one at a time. */

/** @internal */
export class Handover<T> {
  #offered: { item: T; isDone: () => void } | undefined;
  #wake: (() => void) | undefined;
  #end: { error: unknown } | undefined;
  #isGivenUp = false;

  /** Offers an item, and waits until the one who took it comes back for the next. */
  offer(item: T): Promise<void> {
    if (this.#isGivenUp) return Promise.resolve();
    return new Promise((isDone) => {
      this.#offered = { item, isDone };
      this.#wake?.();
    });
  }

  /** There are no more, because of an error perhaps. */
  end(error?: unknown): void {
    this.#end = { error };
    this.#wake?.();
  }

  /** Nobody will take anything any more. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.#offered?.isDone();
  }

  /** All items, each as soon as it is there. */
  async *items(): AsyncGenerator<T, void, undefined> {
    for (;;) {
      if (this.#offered === undefined && this.#end === undefined) {
        await new Promise<void>((wake) => (this.#wake = wake));
      }
      const offered = this.#offered;
      if (offered !== undefined) {
        yield offered.item;
        this.#offered = undefined;
        offered.isDone();
      } else if (this.#end !== undefined) {
        if (this.#end.error !== undefined) throw this.#end.error;
        return;
      }
    }
  }
}
