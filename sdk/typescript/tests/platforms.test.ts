// The package does the same on Node, Bun and Deno: streams, local files, aborts, the file of `dayfly login`.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as dayfly from "dayfly";
import { event, FakeServer, SANDBOX, sendJson, sendNothing } from "./fake-server.js";
import { onOtherPlatforms } from "./other-platforms.js";
import { walk } from "./platform-cases.js";

const EXPECTED = {
  ...{ exec: 3, heard: ["a", "c"], chunks: ["stdout a", "stderr b", "stdout c"], copy: "hello", stream: "one two" },
  ...{ aborted: "enough", ids: ["sb-1", "sb-2"], agent: ["turn_began", "turn_ended", "run_ended", "done"] },
};

async function server(): Promise<FakeServer> {
  const kept = new Map<string, Buffer>();
  return await FakeServer.start((request, response) => {
    const path = request.query.get("path") ?? "";
    if (request.path.endsWith("/stream") || request.path.endsWith("/attach")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const text = event("stdout", { chunk: "a" }) + event("stderr", { chunk: "b" }) + event("stdout", { chunk: "c" });
      return void response.end(text + event("exit", { exit_code: 3, reason: "exited", duration_ms: 5 }));
    }
    // A command that hangs until its caller has had enough.
    if (request.path.endsWith("/exec")) return undefined;
    if (request.path.endsWith("/stat")) return sendJson(response, 200, { name: "tree", path, size: 0, is_dir: true });
    if (request.method === "PUT") {
      kept.set(path, request.bytes);
      return sendJson(response, 200, { path, bytes: request.bytes.length });
    }
    if (request.path.includes("/fs")) return void response.end(kept.get(path));
    if (request.method === "DELETE") return sendNothing(response);
    if (request.query.has("limit")) {
      const isSecond = request.query.get("cursor") === "1";
      const items = [{ ...SANDBOX, id: isSecond ? "sb-2" : "sb-1" }];
      return sendJson(response, 200, isSecond ? { items } : { items, next_cursor: "1" });
    }
    return sendJson(response, 201, SANDBOX);
  });
}

function check(fake: FakeServer, told: unknown): void {
  assert.deepEqual(told, EXPECTED);
  for (const { headers } of fake.arrived) assert.equal(headers["authorization"], "Bearer df_file");
  const gone = fake.arrived.filter(({ method }) => method === "DELETE").map(({ path }) => path.split("/").slice(3, 5).join("/"));
  assert.deepEqual(gone, ["sb-1/processes", "sb-1"]);
}

test("the walk on Node", { timeout: 60_000 }, async () => {
  const before = { ...process.env };
  const fake = await server();
  try {
    check(fake, await walk(dayfly, fake.options.apiUrl));
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
});

onOtherPlatforms("the walk", async (run) => {
  const fake = await server();
  check(fake, await run("platform-cases.js", fake.options.apiUrl));
});
