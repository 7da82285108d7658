/** Lists that the server gives page by page. */

import { Lazy } from "./lazy.js";

/**
 * A list. Awaited it is whole; iterated, each item comes as soon as its page is there, and pages that
 * nobody gets to are not asked for.
 *
 * @example
 * ```ts
 * const all = await Sandbox.list();
 * for await (const sandbox of Sandbox.list({ status: "running" })) console.log(sandbox.id);
 * ```
 */
export class Listing<T> extends Lazy<T[]> implements AsyncIterable<T> {
  readonly #pages: () => AsyncIterable<T[]>;

  /** @internal */
  constructor(pages: () => AsyncIterable<T[]>) {
    super();
    this.#pages = pages;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.#pages()) yield* page;
  }

  protected override async begin(): Promise<T[]> {
    const items: T[] = [];
    for await (const page of this.#pages()) items.push(...page);
    return items;
  }
}
