// One walk through the package against a scripted server. Also a program of its own, for Bun and Deno.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type * as dayfly from "dayfly";

/** What came of each step. */
export async function walk(package_: typeof dayfly, apiUrl: string): Promise<Record<string, unknown>> {
  const place = mkdtempSync(join(tmpdir(), "dayfly-walk-"));
  const told: Record<string, unknown> = {};
  try {
    mkdirSync(join(place, "config", "dayfly"), { recursive: true });
    const config = `current = "lab"\n[contexts.lab]\nurl = "${apiUrl}"\nkey = "df_file"\n`;
    writeFileSync(join(place, "config", "dayfly", "config.toml"), config, { mode: 0o600 });
    Object.assign(process.env, { XDG_CONFIG_HOME: join(place, "config"), DAYFLY_CONFIG: "", DAYFLY_API_URL: "", DAYFLY_API_KEY: "" });
    await using sandbox = await package_.Sandbox.create();
    const heard: string[] = [];
    told["exec"] = (await sandbox.exec("x", { onStdout: (text) => void heard.push(text) })).exitCode;
    told["heard"] = heard;
    const chunks: string[] = [];
    for await (const { stream, text } of sandbox.process("ex-1").attach()) chunks.push(`${stream} ${text}`);
    told["chunks"] = chunks;
    mkdirSync(join(place, "tree", "below"), { recursive: true });
    writeFileSync(join(place, "tree", "below", "a.txt"), "hello");
    await sandbox.files.upload(join(place, "tree"), "/tree");
    await sandbox.files.download("/tree", join(place, "copy"));
    told["copy"] = readFileSync(join(place, "copy", "below", "a.txt"), "utf8");
    await sandbox.files.write("/stream", Readable.from([Buffer.from("one "), Buffer.from("two")]));
    told["stream"] = await sandbox.files.readText("/stream");
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("enough")), 50);
    const aborted: unknown = await sandbox.exec("hang", { signal: controller.signal }).catch((error: unknown) => error);
    told["aborted"] = (aborted as Error).message;
    told["agent"] = await agentOn(sandbox, join(place, "transcript.json"));
    const ids: string[] = [];
    for await (const { id } of package_.Sandbox.list()) ids.push(id);
    told["ids"] = ids;
  } finally {
    rmSync(place, { recursive: true });
  }
  return told;
}

/** What an agent tells that says one thing and calls nothing, and whether its transcript can be stored. */
async function agentOn(sandbox: dayfly.Sandbox, path: string): Promise<string[]> {
  const { Agent, Transcript } = await import("dayfly/agents");
  const told: string[] = [];
  const agent = new Agent(() => ({ text: "done" }), { sandbox, budget: { seconds: 60 } });
  for await (const { kind } of agent.stream("do it")) told.push(kind);
  await agent.transcript.save(path);
  return [...told, (await Transcript.load(path)).stop ?? ""];
}

const [, program = "", apiUrl] = process.argv;
if (apiUrl !== undefined && program.includes("platform-cases")) {
  console.log(JSON.stringify(await walk(await import("dayfly"), apiUrl)));
}
