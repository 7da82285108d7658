// A daemon that is none: sandboxes, files and snapshots as far as tools and agents ask for them.

import type { ServerResponse } from "node:http";
import { Sandbox, type ToolName, type ToolResult } from "dayfly";
import { type Arrived, FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

export const CREATE = "/v1/sandboxes";
export const ONE = `${CREATE}/sb-1`;
export const RAN = { stdout: "hi\n", stderr: "", exit_code: 0, reason: "exited", duration_ms: 100, exec_id: "e", truncated: false };
export const CODE = { ...RAN, exit: 0, status: "ok", results: [] };

/** A body, or what responds. */
export type Reply = object | ((request: Arrived, response: ServerResponse) => void);

export const refusal = (status: number, code: string, more: object = {}): Reply => {
  return (_, response) => refuse(response, status, code, more);
};

export class FakeDaemon {
  readonly server: FakeServer;
  readonly files = new Map<string, Buffer>();
  readonly #replies: Map<string, Reply[]>;

  private constructor(server: FakeServer, replies: Map<string, Reply[]>) {
    this.server = server;
    this.#replies = replies;
  }

  static async start(): Promise<FakeDaemon> {
    const replies = new Map<string, Reply[]>();
    const server = await FakeServer.start((request, response) => {
      const left = replies.get(`${request.method} ${request.path}`);
      // The last one is said again and again.
      const reply = (left?.length ?? 0) > 1 ? left?.shift() : left?.[0];
      if (typeof reply === "function") return reply(request, response);
      if (reply !== undefined) return sendJson(response, 200, reply);
      if (request.path.endsWith("/fs")) return daemon.#file(request, response);
      if (request.method === "DELETE") return sendNothing(response);
      if (request.path === CREATE) return sendJson(response, 201, { ...SANDBOX, ttl_seconds: 3600 });
      if (request.path === ONE) return sendJson(response, 200, SANDBOX);
      return refuse(response, 404, "not_found");
    });
    const daemon = new FakeDaemon(server, replies);
    daemon.on("POST", `${ONE}/exec`, RAN);
    return daemon;
  }

  /** What it says to a request: one reply after the other, the last again and again. */
  on(method: string, path: string, ...replies: Reply[]): void {
    this.#replies.set(`${method} ${path}`, replies);
  }

  get options(): { apiUrl: string; apiKey: string } {
    return this.server.options;
  }

  seen(method: string, path: string): Arrived[] {
    return this.server.at(method, path);
  }

  get isDeleted(): boolean {
    return this.seen("DELETE", ONE).length > 0;
  }

  /** Has it take snapshots: snap-1, snap-2, ... */
  withSnapshots(): void {
    let count = 0;
    this.on("POST", `${ONE}/snapshots`, (_, response) => {
      count += 1;
      sendJson(response, 201, { id: `snap-${count}`, sandbox_id: "sb-1", template: "base" });
    });
    this.on("POST", `${ONE}/rollback`, SANDBOX);
  }

  deletedSnapshots(): string[] {
    const paths = this.server.arrived.filter(({ method }) => method === "DELETE").map(({ path }) => path);
    return paths.filter((path) => path.startsWith("/v1/snapshots/")).map((path) => path.slice("/v1/snapshots/".length));
  }

  /** Has forks of the sandbox made: sb-10, sb-11, ... */
  withForks(route: "fork" | "fork-tree", count: number): void {
    const children = Array.from({ length: count }, (_, index) => ({ ...SANDBOX, id: `sb-1${index}` }));
    this.on("POST", `${ONE}/${route}`, { children, failures: {}, renewed: [], not_renewed: [], capture: {} });
    for (const { id } of children) {
      this.on("POST", `${CREATE}/${id}/exec`, RAN);
      this.on("POST", `${CREATE}/${id}/promote`, { winner: id, tree_id: "t", deleted: [], failures: {} });
      this.on("GET", `${CREATE}/${id}`, { ...SANDBOX, id });
    }
  }

  /** What a tool gives in a sandbox of this daemon. */
  async call(name: string, given: Record<string, unknown> | string, ...tools: ToolName[]): Promise<ToolResult> {
    return await (await Sandbox.create(this.options)).tools(...tools).call(name, given);
  }

  #file(request: Arrived, response: ServerResponse): void {
    const path = request.query.get("path") ?? "";
    if (request.method === "PUT") {
      this.files.set(path, request.bytes);
      return sendJson(response, 200, { path, bytes: request.bytes.length });
    }
    const content = this.files.get(path);
    if (content === undefined) return refuse(response, 404, "not_found");
    const [, first = "0", last = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers["range"] ?? "") ?? [];
    if (request.headers["range"] !== undefined && Number(first) >= content.length) {
      return refuse(response, 416, "range_not_satisfiable");
    }
    response.end(content.subarray(Number(first), last === "" ? undefined : Number(last) + 1));
  }
}
