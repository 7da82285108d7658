import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as imported from "dayfly";

const root = fileURLToPath(new URL("../../", import.meta.url));
const required = createRequire(import.meta.url)("dayfly") as typeof imported;

test("import and require give the same names, from two builds", () => {
  assert.deepEqual(Object.keys(required).filter((name) => name !== "default").sort(), Object.keys(imported).sort());
  assert.notEqual(required.Sandbox, imported.Sandbox);
  assert.equal(typeof required.Sandbox.create, "function");
});

test("import and require give the same names of agents, which are for the same sandboxes", async () => {
  const agents = await import("dayfly/agents");
  const again = createRequire(import.meta.url)("dayfly/agents") as typeof agents;
  assert.deepEqual(Object.keys(again).filter((name) => name !== "default").sort(), Object.keys(agents).sort());
  assert.ok(new agents.UndoRefused("x") instanceof imported.DayflyError);
  assert.ok(new again.UndoRefused("x") instanceof required.DayflyError);
});

test("a program of either kind can use the package", () => {
  const check = "if (new dayfly.NotFound('x', {code: 'not_found'}).code !== 'not_found') throw new Error('wrong')";
  const run = (type: string, code: string): Buffer =>
    execFileSync(process.execPath, [`--input-type=${type}`, "-e", code], { cwd: root });
  run("module", `import * as dayfly from "dayfly"; ${check}`);
  run("commonjs", `const dayfly = require("dayfly"); ${check}`);
});

test("the version is that of the package, which depends on nothing", () => {
  const described = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as Record<string, unknown>;
  assert.equal(imported.VERSION, described["version"]);
  assert.equal(described["dependencies"], undefined);
});

test("the package has its licence, and no more generated types than it uses", async () => {
  assert.equal(readFileSync(`${root}LICENSE`, "utf8"), readFileSync(`${root}../../LICENSE`, "utf8"));
  const pack = promisify(execFile)("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root });
  const [packed] = JSON.parse((await pack).stdout) as [{ files: { path: string; size: number }[]; unpackedSize: number }];
  assert.ok(packed.files.some(({ path }) => path === "LICENSE"));
  const generated = packed.files.filter(({ path }) => path.endsWith("generated/api.d.ts"));
  assert.ok(generated.every(({ size }) => size < 100_000), JSON.stringify(generated));
});

test("a first program compiles with what the README says", () => {
  const [, options = ""] = /```json\n([^]*?)```/.exec(readFileSync(`${root}README.md`, "utf8")) ?? [];
  const place = `${root}dist/tests/first`;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  writeFileSync(`${place}/package.json`, '{ "type": "module" }');
  writeFileSync(`${place}/tsconfig.json`, options.replace('"compilerOptions": {', '"files": ["first.ts"], "compilerOptions": { "types": [], "noEmit": true,'));
  const program = 'import { Sandbox } from "dayfly";\nawait using sandbox = await Sandbox.create();\nconst { stdout } = await sandbox.exec("true");\nexport { stdout };\n';
  writeFileSync(`${place}/first.ts`, program);
  mkdirSync(`${place}/node_modules`);
  symlinkSync(root, `${place}/node_modules/dayfly`);
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [compiler, "-p", place], { stdio: "inherit" });
  } finally {
    rmSync(place, { recursive: true });
  }
});

test("no module of the platform is imported before it is needed", () => {
  for (const form of ["esm", "cjs"]) {
    const files = (readdirSync(`${root}dist/${form}`, { recursive: true }) as string[]).filter((name) => name.endsWith(".js"));
    assert.ok(files.length > 20);
    for (const name of files) {
      assert.doesNotMatch(readFileSync(`${root}dist/${form}/${name}`, "utf8"), /(from|require\() ?"node:/, name);
    }
  }
});

test("the lock names no registry", () => {
  assert.ok(!/"resolved"|https?:\/\/[^"]*registry/.test(readFileSync(`${root}package-lock.json`, "utf8")));
});
