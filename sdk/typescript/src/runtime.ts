/**
 * What the platform has beside `fetch`. Node, Bun and Deno have files; a browser or an edge worker has
 * none, so their modules are only ever asked for when they are needed.
 */

import { InvalidSettings } from "./failures.js";

interface BuiltIns {
  "node:fs": typeof import("node:fs");
  "node:fs/promises": typeof import("node:fs/promises");
  "node:os": typeof import("node:os");
  "node:path": typeof import("node:path");
  "node:url": typeof import("node:url");
}

/** A module of the platform, or `undefined` where there is none. @internal */
export async function builtIn<Name extends keyof BuiltIns>(name: Name): Promise<BuiltIns[Name] | undefined> {
  if (typeof process === "undefined" || process.versions?.node === undefined) return undefined;
  try {
    // Not a literal, so that tools that pack for browsers do not look for it.
    const wanted: string = name;
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ wanted)) as BuiltIns[Name];
  } catch {
    return undefined;
  }
}

/** The same, for what cannot be done without it. @internal */
export async function requireBuiltIn<Name extends keyof BuiltIns>(name: Name, what: string): Promise<BuiltIns[Name]> {
  const found = await builtIn(name);
  if (found === undefined) throw new InvalidSettings(`${what} needs the local files that Node, Bun and Deno have`);
  return found;
}

/** An environment variable. An empty one is one that is not set. @internal */
export function variable(name: string): string | undefined {
  const value = typeof process === "undefined" ? undefined : process.env?.[name];
  return value === undefined || value === "" ? undefined : value;
}

/** Whether this is Bun, whose `fetch` gives up on a silent server unless it is told not to. @internal */
export function isBun(): boolean {
  return typeof process !== "undefined" && process.versions?.["bun"] !== undefined;
}
