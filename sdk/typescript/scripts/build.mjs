// Builds the package twice: once for `import`, once for `require`.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");

for (const form of ["esm", "cjs"]) {
  rmSync(join(root, "dist", form), { recursive: true, force: true });
  const project = form === "esm" ? "tsconfig.json" : "tsconfig.cjs.json";
  const { status } = spawnSync(process.execPath, [compiler, "-p", project], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
// The package as a whole is of modules; without this, Node would read the second build as such.
mkdirSync(join(root, "dist", "cjs"), { recursive: true });
writeFileSync(join(root, "dist", "cjs", "package.json"), '{ "type": "commonjs" }\n');
