// The list of names that both languages share: what it says is there, and nothing else is.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import * as dayfly from "dayfly";
import * as agents from "dayfly/agents";

type Pair = [python: string, typescript: string];

interface SharedClass {
  python: string;
  typescript: string;
  both: Pair[];
  options?: Record<string, Pair[]>;
  python_only: Record<string, string>;
  typescript_only: Record<string, string>;
}

interface Names {
  functions: Pair[];
  errors: string[];
  classes: Record<string, SharedClass>;
  agents: Record<string, SharedClass>;
}

const names = JSON.parse(readFileSync(new URL("../../../../tests/names.json", import.meta.url), "utf8")) as Names;
const entries = ["index.d.ts", "agents/index.d.ts"].map((name) => fileURLToPath(new URL(`../../dist/esm/${name}`, import.meta.url)));
const program = ts.createProgram(entries, {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
});
const checker = program.getTypeChecker();
const modules = entries.map((entry) => checker.getSymbolAtLocation(program.getSourceFile(entry) as ts.SourceFile) as ts.Symbol);
const symbols = new Map(
  modules.flatMap((module) => checker.getExportsOfModule(module)).map((symbol) => {
    return [symbol.name, symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol] as const;
  }),
);
const values: Record<string, unknown> = { ...dayfly, ...agents };
const classes = { ...names.classes, ...names.agents };

const isPublic = ({ name }: ts.Symbol): boolean => !/^(__|#|prototype$)/.test(name);

/** The public members of a class, static ones included, by their names. */
function membersOf(name: string): Map<string, ts.Symbol> {
  const symbol = symbols.get(name);
  assert.ok(symbol !== undefined, `${name} is not exported`);
  const own = checker.getDeclaredTypeOfSymbol(symbol).getProperties();
  const common = checker.getTypeOfSymbol(symbol).getProperties();
  return new Map([...common, ...own].filter(isPublic).map((member) => [member.name, member]));
}

/** The names of the options that a method takes, as its last argument. */
function optionsOf(className: string, method: string): string[] {
  const symbol = symbols.get(className) as ts.Symbol;
  const type =
    method === "constructor"
      ? checker.getTypeOfSymbol(symbol).getConstructSignatures()[0]
      : checker.getTypeOfSymbol(membersOf(className).get(method) as ts.Symbol).getCallSignatures()[0];
  const last = type?.getParameters().at(-1);
  assert.ok(last !== undefined, `${className}.${method} takes nothing`);
  return checker.getNonNullableType(checker.getTypeOfSymbol(last)).getProperties().map(({ name }) => name);
}

for (const [name, shared] of Object.entries(classes)) {
  test(`the members of ${name} are those of the list`, () => {
    const listed = [...shared.both.map(([, one]) => one), ...Object.keys(shared.typescript_only)];
    assert.equal(new Set(listed).size, listed.length, "a name is listed twice");
    assert.deepEqual([...membersOf(shared.typescript).keys()].sort(), listed.sort());
    assert.equal(typeof values[shared.typescript], "function");
  });
  for (const [method, pairs] of Object.entries(shared.options ?? {})) {
    test(`${name}.${method} has the options of the list`, () => {
      const found = optionsOf(shared.typescript, method);
      assert.deepEqual(pairs.map(([, one]) => one).filter((one) => !found.includes(one)), []);
    });
  }
}

test("errors and functions are those of the list", () => {
  const isError = (one: unknown): boolean => typeof one === "function" && one.prototype instanceof Error;
  const errors = Object.entries(dayfly).filter(([, one]) => isError(one)).map(([name]) => name);
  assert.deepEqual(errors.sort(), [...names.errors].sort());
  for (const [, name] of names.functions) assert.equal(typeof (dayfly as Record<string, unknown>)[name], "function");
});

test("a name is the other one in the spelling of its language, but for those that are told", () => {
  // `class` is a word that Python keeps for itself.
  const told = new Set(["files", "Filesystem", "class_"]);
  const snake = (text: string): string => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  for (const { both, options = {} } of Object.values(classes)) {
    for (const [python, typescript] of [...both, ...Object.values(options).flat()]) {
      assert.ok(told.has(python) || snake(typescript) === python, `${python} and ${typescript}`);
    }
  }
});
