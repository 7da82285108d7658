/** Questions about the server itself. */

import { connectionOf } from "./client.js";
import type { ConnectionOptions } from "./config.js";
import { toCamel } from "./names.js";
import type { Me, TemplateInfo, Wire } from "./wire.js";

/**
 * What can be created, and how far each bake is.
 *
 * @example
 * ```ts
 * for (const { name, state } of await templates()) console.log(name, state);
 * ```
 */
export async function templates(options: ConnectionOptions = {}): Promise<TemplateInfo[]> {
  return toCamel(await connectionOf("templates", options).json<Wire["Template"][]>({ method: "GET", path: ["templates"] }));
}

/**
 * Whose key this is.
 *
 * @example
 * ```ts
 * console.log((await me()).project);
 * ```
 */
export async function me(options: ConnectionOptions = {}): Promise<Me> {
  return toCamel(await connectionOf("me", options).json<Wire["Me"]>({ method: "GET", path: ["me"] }));
}
