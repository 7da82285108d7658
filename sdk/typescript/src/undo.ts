/** Making something that must not be left behind by a caller who stops waiting for it. */

import type { Connection } from "./connection.js";

/**
 * Makes something. When the caller has had enough meanwhile, the call fails at once; what the server
 * has made, or is about to make, is deleted as soon as its response is there. @internal
 */
export function makeOrUndo<T>(
  connection: Connection,
  signal: AbortSignal | undefined,
  make: () => Promise<T>,
  undo: (made: T) => Promise<unknown>,
): Promise<T> {
  if (signal === undefined) return make();
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  // Without the signal: a request that is cut off says nothing about what it has made.
  const making = make();
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => {
      connection.inBackground(making.then(undo));
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", stop, { once: true });
    const settled = (): void => signal.removeEventListener("abort", stop);
    making.finally(settled).then(resolve, reject);
  });
}

/** Deletes sandboxes that nobody holds. The TTL ends those that cannot be deleted. @internal */
export async function deleteSandboxes(connection: Connection, ids: readonly string[]): Promise<void> {
  await Promise.allSettled(ids.map((id) => connection.done({ method: "DELETE", path: ["sandboxes", id] })));
}
