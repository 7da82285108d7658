// A real HTTP server on loopback that answers as a test tells it to.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";

/** A request as it arrived. */
export interface Arrived {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  body: string;
  bytes: Buffer;
  json: Record<string, unknown>;
}

export type Answer = (request: Arrived, response: ServerResponse) => void | Promise<void>;

/** Answers with `answer`, and keeps what arrived. Ends with the tests of its file. */
export class FakeServer {
  readonly arrived: Arrived[] = [];
  /** How many connections there were at once. */
  mostConnections = 0;
  readonly #server: Server;

  private constructor(answer: Answer) {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        const bytes = Buffer.concat(pieces);
        const body = bytes.toString("utf8");
        const url = new URL(request.url ?? "/", "http://server");
        const json = isJson(body) ? (JSON.parse(body) as Record<string, unknown>) : {};
        const { method = "", headers } = request;
        const arrived = { method, path: url.pathname, query: url.searchParams, headers, body, bytes, json };
        this.arrived.push(arrived);
        void answer(arrived, response);
      });
    });
    let count = 0;
    this.#server.on("connection", (socket) => {
      count += 1;
      this.mostConnections = Math.max(this.mostConnections, count);
      socket.once("close", () => void (count -= 1));
    });
  }

  static async start(answer: Answer): Promise<FakeServer> {
    const server = new FakeServer(answer);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    after(() => server.stop());
    return server;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  get options(): { apiUrl: string; apiKey: string } {
    const { port } = this.#server.address() as AddressInfo;
    return { apiUrl: `http://127.0.0.1:${port}`, apiKey: "df_test" };
  }

  /** Waits until something arrived that fits. */
  async until(fits: (arrived: Arrived) => boolean): Promise<Arrived> {
    for (const start = Date.now(); Date.now() - start < 20_000; ) {
      const found = this.arrived.find(fits);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error(`it did not arrive; there were ${this.arrived.map(({ path }) => path).join(" ")}`);
  }

  /** What arrived at a path. */
  at(method: string, path: string): Arrived[] {
    return this.arrived.filter((one) => one.method === method && one.path === path);
  }
}

function isJson(body: string): boolean {
  return body.startsWith("{");
}

type HeaderSet = Record<string, string>;

export function sendJson(response: ServerResponse, status: number, body: unknown, headers: HeaderSet = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

export function sendNothing(response: ServerResponse): void {
  response.writeHead(204);
  response.end();
}

export function refuse(
  response: ServerResponse,
  status: number,
  code: string,
  more: object = {},
  retryAfter?: string,
): void {
  const headers: HeaderSet = retryAfter === undefined ? {} : { "retry-after": retryAfter };
  sendJson(response, status, { error: `refused: ${code}`, code, request_id: "req-1", ...more }, headers);
}

/** One event, as the server writes it. */
export function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

export const SANDBOX = {
  id: "sb-1",
  template: "base",
  status: "running",
  persistent: false,
  metadata: {},
  created_at: "2026-01-01T00:00:00Z",
  boot_mode: "restored",
  isolation: "microvm",
  cpu: 1,
  memory_mb: 256,
};
