/** Arguments that a model made up, held to the schema of their tool. */

import { named } from "../model-text.js";
import { isPlain } from "../names.js";
import type { ArgumentRule, ArgumentsSchema } from "./definition.js";

const KINDS: Readonly<Record<ArgumentRule["type"], string>> = {
  string: "a text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
};

/** Larger whole numbers may not be exact. */
const INTEGER_MAX = 2 ** 53;

/** Arguments by name, of a model or with their defaults. */
export type Arguments = Readonly<Record<string, unknown>>;

/** The arguments do not fit; the text says which and why, for the model. */
export class ArgumentsRefused extends Error {}

/** Arguments as an object; some providers give the text of one. */
export function parsed(given: Arguments | string): Arguments {
  let value: unknown = given;
  if (typeof given === "string") {
    try {
      value = JSON.parse(given === "" ? "{}" : given);
    } catch {
      throw new ArgumentsRefused("the arguments are not JSON");
    }
  }
  if (!isPlain(value)) throw new ArgumentsRefused("the arguments are not a JSON object");
  return value;
}

type Fields = Pick<ArgumentsSchema, "properties" | "required">;

/** The arguments with their defaults, or why they do not fit. */
export function fitted({ properties, required }: Fields, given: Arguments): Arguments {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(properties, name)) {
      const takes = Object.keys(properties).join(", ");
      throw new ArgumentsRefused(`there is no argument ${named(name)}; it takes ${takes}`);
    }
  }
  const found: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(properties)) {
    // Some models send null for what they leave out.
    const value = Object.hasOwn(given, name) ? (given[name] ?? undefined) : undefined;
    if (value !== undefined) found[name] = fittedValue(name, rule, value);
    else if (required.includes(name)) throw new ArgumentsRefused(`${name} is missing`);
    else found[name] = rule.default;
  }
  return found;
}

function fittedValue(name: string, rule: ArgumentRule, value: unknown): unknown {
  if (!isOf(rule.type, value)) throw new ArgumentsRefused(`${name} must be ${KINDS[rule.type]}`);
  if (typeof value === "string") checkText(name, rule, value);
  else if (typeof value === "number") checkNumber(name, rule, value);
  else if (Array.isArray(value)) {
    checkLength(name, rule, value.length);
    const { items } = rule;
    if (items !== undefined) return value.map((one, index) => fittedValue(`${name}[${index}]`, items, one));
  }
  return value;
}

function isOf(kind: ArgumentRule["type"], value: unknown): boolean {
  if (kind === "array") return Array.isArray(value);
  if (kind === "integer") return Number.isInteger(value);
  return kind === "number" ? Number.isFinite(value) : typeof value === kind;
}

function checkText(name: string, rule: ArgumentRule, value: string): void {
  if (rule.enum !== undefined && !rule.enum.includes(value)) {
    throw new ArgumentsRefused(`${name} must be one of ${rule.enum.join(", ")}`);
  }
  if (value.length < (rule.minLength ?? 0)) throw new ArgumentsRefused(`${name} must not be empty`);
  if (/\p{Surrogate}/u.test(value)) throw new ArgumentsRefused(`${name} has a half of a surrogate pair in it`);
}

function checkNumber(name: string, rule: ArgumentRule, value: number): void {
  const { minimum, exclusiveMinimum, maximum } = rule;
  if (rule.type === "integer" && Math.abs(value) > INTEGER_MAX) throw new ArgumentsRefused(`${name} is too large`);
  if (minimum !== undefined && value < minimum) throw new ArgumentsRefused(`${name} must be at least ${minimum}`);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
    throw new ArgumentsRefused(`${name} must be greater than ${exclusiveMinimum}`);
  }
  if (maximum !== undefined && value > maximum) throw new ArgumentsRefused(`${name} must be at most ${maximum}`);
}

function checkLength(name: string, { minItems = 0, maxItems = Infinity }: ArgumentRule, length: number): void {
  if (length < minItems) throw new ArgumentsRefused(`${name} must have at least ${minItems} entry`);
  if (length > maxItems) throw new ArgumentsRefused(`${name} must have at most ${maxItems} entries`);
}
