// Bun and Deno, where this machine has them: `npm install --no-save bun deno`. With DAYFLY_REQUIRE_PLATFORMS=1 it must.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../", import.meta.url));

function program(name: string): string | undefined {
  const places = [join(root, "node_modules", ".bin"), ...(process.env["PATH"] ?? "").split(delimiter)];
  return places.map((place) => join(place, name)).find((path) => existsSync(path));
}

/** Gives what a file of the tests prints, which is JSON, when it is run as a program. */
export type Run = (file: string, argument: string) => Promise<unknown>;

/** A test on each of them. */
export function onOtherPlatforms(what: string, work: (run: Run) => Promise<void>): void {
  for (const [name, ...flags] of [["bun"], ["deno", "run", "--allow-all"]] as const) {
    const path = program(name);
    const missing = `${name} is not installed: \`npm install --no-save ${name}\``;
    const skip = path === undefined && process.env["DAYFLY_REQUIRE_PLATFORMS"] !== "1" && missing;
    const run: Run = async (file, argument) => {
      if (path === undefined) throw new Error(missing);
      const args = [...flags, join(root, "dist", "tests", file), argument];
      return JSON.parse((await promisify(execFile)(path, args, { cwd: root })).stdout);
    };
    test(`${what}, on ${name}`, { skip, timeout: 120_000 }, () => work(run));
  }
}
