// What each call of a case means with this package. No expected result is written down here.

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CodeContext, type EnvironmentOptions, type ExecOptions, type ExecResult } from "dayfly";
import { BuildFailed, type NetworkMode, Sandbox, Snapshot, Template, type TemplateBuild } from "dayfly";
import { type BuilderCall, built } from "./template-calls.js";

/** What a case built, and the sandbox of a build that failed. */
export class CaseTemplate {
  constructor(
    readonly name: string,
    readonly build?: TemplateBuild,
    readonly sandboxId?: string,
  ) {}

  async delete(): Promise<void> {
    // It would wait for somebody who looks.
    if (this.sandboxId !== undefined) await (await Sandbox.connect(this.sandboxId)).delete();
    await Template.delete(this.name);
  }
}

export type Named = Sandbox | Snapshot | CodeContext | CaseTemplate;
type Arguments = Record<string, unknown>;
type Outcome = Named | Record<string, unknown> | undefined;
type Call = (sandbox: Sandbox, given: Arguments, made: Map<string, Named>) => Promise<Outcome>;

function execOptions(given: Arguments): ExecOptions {
  const { timeout_seconds: timeoutSeconds, env, cwd, stdin } = given;
  return { timeoutSeconds, env, cwd, stdin } as ExecOptions;
}

function execOutcome(result: ExecResult): Record<string, unknown> {
  const { stdout, stderr, exitCode, reason } = result;
  return { stdout, stderr, exit_code: exitCode, timed_out: reason === "timed_out" };
}

function environmentOf(given: Arguments): EnvironmentOptions {
  return { env: given["env"] } as EnvironmentOptions;
}

function snapshotOf(given: Arguments, made: Map<string, Named>): Snapshot {
  const snapshot = made.get(String(given["snapshot"]));
  if (!(snapshot instanceof Snapshot)) throw new TypeError("no snapshot of that name");
  return snapshot;
}

function templateOf(given: Arguments, made: Map<string, Named>): CaseTemplate {
  const template = made.get(String(given["template"]));
  if (!(template instanceof CaseTemplate)) throw new TypeError("no template of that name");
  return template;
}

async function buildTemplate(given: Arguments, made: Map<string, Named>): Promise<CaseTemplate> {
  const name = `case-${randomUUID().slice(0, 13)}`;
  const context = await mkdtemp(join(tmpdir(), "dayfly-"));
  try {
    for (const [path, text] of Object.entries((given["files"] ?? {}) as Record<string, string>)) {
      const isExecutable = ((given["executables"] ?? []) as string[]).includes(path);
      await mkdir(dirname(join(context, path)), { recursive: true });
      await writeFile(join(context, path), text, { mode: isExecutable ? 0o755 : 0o644 });
    }
    const builder = await built(given["calls"] as BuilderCall[], { context });
    return new CaseTemplate(name, await builder.build(name));
  } catch (error) {
    // To be deleted with all that a case made.
    if (error instanceof BuildFailed) made.set(name, new CaseTemplate(name, undefined, error.sandboxId));
    throw error;
  } finally {
    await rm(context, { recursive: true });
  }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const path = (given: Arguments): string => String(given["path"]);
const nothing = async (work: Promise<unknown>): Promise<undefined> => {
  await work;
  return undefined;
};

export const CALLS: Readonly<Record<string, Call>> = {
  exec: async (sandbox, given) => execOutcome(await sandbox.exec(given["cmd"] as string, execOptions(given))),
  exec_stream: async (sandbox, given) => {
    const heard = { stdout: "", stderr: "" };
    const result = await sandbox.exec(given["cmd"] as string, {
      ...execOptions(given),
      onStdout: (chunk) => void (heard.stdout += chunk),
      onStderr: (chunk) => void (heard.stderr += chunk),
    });
    return { ...execOutcome(result), ...heard };
  },
  run_code: async (sandbox, given, made) => {
    const context = made.get(String(given["context"]));
    const language = given["language"] as string | undefined;
    const chosen = context instanceof CodeContext ? context : undefined;
    const execution = await sandbox.runCode(String(given["code"]), { context: chosen, language });
    const { stdout, stderr, text, png, error } = execution;
    return { stdout, stderr, text, has_png: png !== undefined, error_name: error?.name };
  },
  create_context: (sandbox, given) => sandbox.createContext(String(given["language"])),
  write: async (sandbox, given) => {
    const data = given["base64"] === undefined ? String(given["text"]) : Buffer.from(String(given["base64"]), "base64");
    return { bytes: (await sandbox.files.write(path(given), data)).bytes };
  },
  read: async (sandbox, given) => {
    const bytes = await sandbox.files.read(path(given));
    return { text: textOf(bytes), base64: Buffer.from(bytes).toString("base64") };
  },
  list: async (sandbox, given) => ({ names: (await sandbox.files.list(path(given))).map(({ name }) => name).sort() }),
  stat: async (sandbox, given) => {
    const { size, isDir } = await sandbox.files.stat(path(given));
    return { size, is_dir: isDir };
  },
  exists: async (sandbox, given) => ({ exists: await sandbox.files.exists(path(given)) }),
  make_directory: (sandbox, given) => nothing(sandbox.files.mkdir(path(given))),
  move: (sandbox, given) => nothing(sandbox.files.move(String(given["from"]), String(given["to"]))),
  remove: (sandbox, given) => nothing(sandbox.files.remove(path(given), { recursive: given["recursive"] === true })),
  fork: (sandbox, given) => sandbox.fork(environmentOf(given)),
  snapshot: (sandbox) => sandbox.snapshot(),
  create_from: (_, given, made) => Sandbox.create({ fromSnapshot: snapshotOf(given, made), ...environmentOf(given) }),
  build_template: (_, given, made) => buildTemplate(given, made),
  create_from_template: (_, given, made) => Sandbox.create({ template: templateOf(given, made).build, ttlSeconds: 600 }),
  template_versions: async (_, given, made) => {
    const versions = await Template.versions(templateOf(given, made).name);
    return { tags: versions.map(({ tags }) => tags) };
  },
  delete_snapshot: (_, given, made) => nothing(snapshotOf(given, made).delete()),
  pause: (sandbox) => nothing(sandbox.pause()),
  resume: (sandbox) => nothing(sandbox.resume()),
  hibernate: (sandbox) => nothing(sandbox.hibernate()),
  wake: (sandbox, given) => nothing(sandbox.wake(environmentOf(given))),
  rollback: (sandbox, given, made) => nothing(sandbox.rollback(snapshotOf(given, made), environmentOf(given))),
  info: async (sandbox) => {
    const { status, template, persistent, metadata, envNames } = await sandbox.info();
    return { status, template, persistent, metadata, env_names: envNames };
  },
  set_lifecycle: (sandbox, given) => {
    const change: { ttlSeconds?: number; persistent?: boolean } = {};
    if (given["ttl_seconds"] !== undefined) change.ttlSeconds = Number(given["ttl_seconds"]);
    if (given["persistent"] !== undefined) change.persistent = given["persistent"] === true;
    return nothing(sandbox.setLifecycle(change));
  },
  lifecycle: async (sandbox) => {
    const { ttlSeconds, persistent } = await sandbox.lifecycle();
    return { ttl_seconds: ttlSeconds, persistent };
  },
  network: async (sandbox) => {
    const { mode, allow } = await sandbox.network.get();
    return { mode, allow };
  },
  set_network: (sandbox, given) =>
    nothing(sandbox.network.set(given["mode"] as NetworkMode, given["allow"] as string[] | undefined)),
  ports: async (sandbox) => ({ ports: (await sandbox.ports()).map(({ port }) => port).sort((a, b) => a - b) }),
  wait_for_port: async (sandbox, given) => ({ port: (await sandbox.waitForPort(Number(given["port"]))).port }),
  delete: (sandbox) => nothing(sandbox.delete()),
};
