/** Work in several copies of a sandbox. */

import type { Sandbox } from "../sandbox.js";

/** Does all of it, so much at once, and gives what came of each. */
export async function severalAtOnce<T>(
  works: readonly (() => Promise<T>)[],
  atOnce: number,
): Promise<PromiseSettledResult<T>[]> {
  const outcomes: PromiseSettledResult<T>[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < works.length; index = next++) {
      const [outcome] = await Promise.allSettled([works[index]?.() as Promise<T>]);
      outcomes[index] = outcome;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, works.length) }, worker));
  return outcomes;
}

/** Deletes copies; the TTL ends those that cannot be deleted. */
export async function deleteQuietly(children: readonly Sandbox[]): Promise<void> {
  await Promise.allSettled(children.map((child) => child.delete()));
}
