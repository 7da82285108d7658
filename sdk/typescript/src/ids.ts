/** Names that this side makes up or checks. */

import { InvalidSettings } from "./failures.js";

/** A name that no other request has: 128 random bits behind a prefix. */
export function freshId(prefix: string): string {
  return `${prefix}-${freshKey()}`;
}

export function freshKey(): string {
  return globalThis.crypto.randomUUID().replaceAll("-", "");
}

/** Keeps `..` and slashes out of a path, where they would name another object. */
export function checkedName(what: string, name: string): string {
  if (typeof name !== "string" || !/^[a-z0-9](\.?[a-z0-9_-])*\.?$/.test(name)) {
    throw new InvalidSettings(`not a valid ${what}: ${JSON.stringify(name)}`);
  }
  return name;
}
