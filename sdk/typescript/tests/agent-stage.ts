// A stage for the scenarios of tests/model: the model that follows a script, and a daemon that gives for
// each call the result that stands beside it in the script. With a real daemon the calls are carried out.

import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Arrived } from "./fake-server.js";
import { CODE, CREATE, FakeDaemon, ONE, RAN, refusal, type Reply } from "./fake-daemon.js";
import { event, refuse, SANDBOX, sendJson } from "./fake-server.js";

const folder = fileURLToPath(new URL("../../../../tests/model", import.meta.url));

export type Form = "anthropic" | "chat" | "responses";

interface PlannedCall {
  tool: string;
  arguments?: Record<string, unknown>;
  rehearsal?: { text: string; is_error?: boolean };
}

interface PlannedTurn {
  content?: (string | PlannedCall)[];
  hold?: string;
}

export interface Act {
  do: string;
  steps?: number;
  before_call?: number;
  before_task?: number;
}

export interface Scenario {
  name: string;
  path: string;
  formats?: Form[];
  turns?: PlannedTurn[];
  conversations?: PlannedTurn[][];
  run: {
    tasks: string[];
    budget?: { steps?: number; tokens?: number; seconds?: number; cost?: number; cost_of_token?: number };
    stream?: boolean;
    max_retries?: number;
    step_timeout_seconds?: number;
    checkpoint?: "step";
    undo_tool?: boolean;
    native_tools?: boolean;
    candidates?: number;
    refuse?: { arguments_contain: string; why: string };
    acts?: Act[];
  };
  outcome: { stop: string; text?: { equals?: string; contains?: string }; calls?: number; requests_max?: number };
}

export function scenarios(): Scenario[] {
  return readdirSync(join(folder, "scenarios")).sort().map((file) => {
    const path = join(folder, "scenarios", file);
    return { ...(JSON.parse(readFileSync(path, "utf8")) as Scenario), name: basename(file, ".json"), path };
  });
}

/** The number of the request that is held, from 1. */
export function heldRequest({ turns = [] }: Scenario): number | undefined {
  const index = turns.findIndex(({ hold }) => hold !== undefined);
  return index === -1 ? undefined : index + 1;
}

export interface ModelLog {
  violations: unknown[];
  finished: boolean;
  requests: unknown[];
}

/** The model of a scenario, as a process of its own, which ends with its standard input. */
export class ModelProcess {
  readonly address: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.address = address;
  }

  static async start(path: string): Promise<ModelProcess> {
    const child = spawn("python3", ["-B", join(folder, "serve.py"), path], { stdio: ["pipe", "pipe", "inherit"] });
    for await (const line of createInterface({ input: child.stdout })) return new ModelProcess(child, line);
    throw new Error(`the model of ${path} did not start`);
  }

  async log(): Promise<ModelLog> {
    return (await (await fetch(`${this.address}/_log`)).json()) as ModelLog;
  }

  stop(): void {
    this.#child.stdin?.end();
  }
}

/** Where the packages of providers are, which are not of this package: a folder with `node_modules`. */
export const packages = process.env["DAYFLY_MODEL_PACKAGES"] ?? fileURLToPath(new URL("../../", import.meta.url));

/** A package of a provider, or nothing where it is not installed. */
export async function packageOf(name: string): Promise<Record<string, unknown> | undefined> {
  try {
    const path = createRequire(join(packages, "package.json")).resolve(name);
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** A daemon that gives what the script has for each call. */
export class StageDaemon {
  readonly daemon: FakeDaemon;
  readonly #calls: PlannedCall[];

  private constructor(daemon: FakeDaemon, { turns = [], conversations = [turns] }: Scenario) {
    this.daemon = daemon;
    const parts = conversations.flat().flatMap(({ content = [] }) => content);
    this.#calls = parts.filter((part) => typeof part !== "string");
  }

  static async start(scenario: Scenario): Promise<StageDaemon> {
    const stage = new StageDaemon(await FakeDaemon.start(), scenario);
    stage.#set(ONE);
    stage.#setState(scenario.run.candidates ?? 0);
    return stage;
  }

  /** The sandbox is gone. */
  lose(): void {
    this.daemon.on("POST", `${ONE}/exec`, refusal(502, "guest_unavailable"));
    this.daemon.on("GET", ONE, refusal(404, "not_found"));
  }

  #set(sandbox: string): void {
    const { daemon } = this;
    daemon.on("POST", `${sandbox}/exec`, this.#answer((request) => this.#ran(request)));
    for (const context of ["default", "default-bash"]) {
      const run = `${sandbox}/repl/sessions/${context}/run`;
      daemon.on("POST", run, this.#answer((request) => this.#ranCode(request)));
      // What code had printed that took too long is asked for again.
      daemon.on("POST", `${run}/stream`, ({ json }, response) => {
        const text = this.#text(({ arguments: given = {} }) => given["code"] === json["code"]) ?? "";
        const [, chunk] = /\nstdout:\n([^]*)$/.exec(text) ?? [];
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(event("stdout", { chunk }) + event("end", { status: "timed_out", duration_ms: 1 }));
      });
    }
  }

  #setState(candidates: number): void {
    const { daemon } = this;
    let count = 0;
    daemon.on("POST", `${ONE}/snapshots`, (_, response) => {
      count += 1;
      sendJson(response, 201, { id: `snap-stage-0000000${count}`, sandbox_id: "sb-1", template: "base" });
    });
    daemon.on("POST", `${ONE}/rollback`, SANDBOX);
    daemon.on("POST", `${ONE}/ports/8000/wait`, { port: 8000, address: "0.0.0.0" });
    daemon.on("POST", `${ONE}/ports/8000/links`, { id: "l", port: 8000, url: "http://8000-sb/", path_url: "http://p/" });
    daemon.on("GET", `${ONE}/fs/dir`, (_, response) => {
      const entries = [...daemon.files].map(([name, { length: size }]) => ({ name, size, is_dir: false, is_symlink: false }));
      sendJson(response, 200, { entries });
    });
    daemon.withForks("fork", 2);
    daemon.withForks("fork-tree", candidates);
    for (let index = 0; index < Math.max(2, candidates); index += 1) this.#set(`${CREATE}/sb-1${index}`);
  }

  /** Says nothing where the script has nothing: it takes until the caller gives up. */
  #answer(result: (request: Arrived) => object | undefined): Reply {
    return (request, response) => {
      const body = result(request);
      if (body === undefined) return;
      if (!("timeout" in body)) return sendJson(response, 200, body);
      const path = `${request.path.replace(/exec$/, "processes")}/${String(request.json["exec_id"])}/output`;
      this.daemon.on("GET", path, ({ query }, answer) => void answer.end(query.get("stream") === "stdout" ? body["timeout"] : ""));
      return refuse(response, 504, "timeout");
    };
  }

  #ran({ json }: Arrived): object | undefined {
    const { cmd } = json;
    if (Array.isArray(cmd)) {
      const [path, line, text] = this.#text(({ tool }) => tool === "search_files")?.split(":") ?? [];
      return { ...RAN, stdout: `${path}\0${line}:${text}\n` };
    }
    const text = this.#text((call) => call.arguments?.["command"] === cmd);
    if (text?.startsWith("timeout") === true) return { timeout: /\nstdout:\n([^]*)$/.exec(text)?.[1] };
    if (text !== undefined) return { ...RAN, ...outputOf(text), exit_code: Number(/\d+/.exec(text)?.[0]) };
    return cmd === "exit 7" ? { ...RAN, stdout: "", exit_code: 7 } : this.#inCopy(String(cmd));
  }

  #inCopy(command: string): object | undefined {
    const isForked = this.#calls.some((call) => (call.arguments?.["commands"] as string[] | undefined)?.includes(command));
    return isForked ? { ...RAN, stdout: "first\n" } : undefined;
  }

  #ranCode({ json }: Arrived): object | undefined {
    const text = this.#text(({ arguments: given = {} }) => (given["code"] ?? given["command"]) === json["code"]);
    if (text === undefined) return undefined;
    if (text.startsWith("timeout")) return { timeout: "" };
    const [, error] = /^error (\w+)/.exec(text) ?? [];
    const [, value] = /(?:^|\n)result:\n([^]*)$/.exec(text) ?? [];
    return {
      ...{ ...CODE, ...outputOf(text), status: error === undefined ? "ok" : "error" },
      ...{ exit_code: error === undefined ? 0 : 1, error: error ?? null },
      results: value === undefined ? [] : [{ "text/plain": value }],
    };
  }

  /** What the script has for a call. An endless model says the same again and again. */
  #text(fits: (call: PlannedCall) => boolean): string | undefined {
    const [first, ...others] = this.#calls.filter(fits);
    if (first !== undefined && others.length > 0) this.#calls.splice(this.#calls.indexOf(first), 1);
    return first?.rehearsal?.text;
  }
}

/** The streams of a result that is only a text. */
function outputOf(text: string): object {
  const [, stdout = ""] = /\nstdout:\n([^]*?)(?:\nstderr:\n|$)/.exec(text) ?? [];
  const [, stderr = ""] = /\nstderr:\n([^]*)$/.exec(text) ?? [];
  const [, bytes] = /\ncut: (\d+) bytes of stdout/.exec(text) ?? [];
  const omitted = bytes === undefined ? [] : [{ stream: "stdout", offset: 9, bytes: Number(bytes), readable: true }];
  return { stdout, stderr, omitted, truncated: omitted.length > 0 };
}
