/**
 * The wire says `ttl_seconds`, TypeScript says `ttlSeconds`. This is the only place that knows
 * both; objects whose keys are data (metadata, environments, MIME types) are left as they are.
 */

type CamelName<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelName<Tail>>}`
  : Name;

/** A type of the wire with its names as TypeScript writes them. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { [Key in keyof T as Key extends string ? CamelName<Key> : Key]: Camel<T[Key]> }
    : T;

const DATA_FIELDS: ReadonlySet<string> = new Set([
  "metadata",
  "env",
  "failures",
  "results",
  "boot_stages_us",
  "provenance",
]);

/** Whether it is an object with fields, and not a list. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Turns an answer of the server into what callers see. */
export function toCamel<T>(value: T): Camel<T> {
  return convert(value, (name) => name.replace(/_([a-z0-9])/g, (_, next: string) => next.toUpperCase())) as Camel<T>;
}

/** Turns a caller's options into a body for the server. What is undefined is left out by JSON. */
export function toSnake(value: object): Record<string, unknown> {
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return convert(value, rename) as Record<string, unknown>;
}

function convert(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => convert(item, rename));
  if (!isPlain(value)) return value;
  const entries = Object.entries(value).map(([name, item]) => {
    return [rename(name), DATA_FIELDS.has(name) ? item : convert(item, rename)];
  });
  return Object.fromEntries(entries);
}

/** Refuses options that nobody would read, with the nearest that is known. */
export function refuseUnknown(what: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const word = unknown.replaceAll("_", "").toLowerCase();
  const far = (name: string): number => (name.toLowerCase().startsWith(word) ? 0 : distance(word, name.toLowerCase()));
  const [best] = [...known].sort((a, b) => far(a) - far(b));
  const isNear = best !== undefined && far(best) <= Math.min(3, word.length / 2);
  throw new TypeError(`${what} has no option ${unknown}${isNear ? `; did you mean ${best}?` : ""}`);
}

/** How many letters have to be changed to make one word of another. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
