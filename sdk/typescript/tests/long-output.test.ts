import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { event, FakeServer, SANDBOX, sendJson } from "./fake-server.js";
import type { Heard } from "./long-output-client.js";

const MIB = 1 << 20;
const CHUNK = `${"x".repeat(63)}\n`.repeat(1024);
const KEPT_BYTES = 8 * MIB;
const BYTES = { short: 32 * MIB, long: 300 * MIB };

/** As fast as the other side reads. */
async function flood(response: ServerResponse, bytes: number): Promise<void> {
  const piece = event("stdout", { chunk: CHUNK });
  for (let sent = 0; sent < bytes; sent += CHUNK.length) {
    if (!response.write(piece)) await once(response, "drain");
  }
  response.end(event("exit", { exit_code: 0, reason: "exited", duration_ms: 5 }));
}

test("300 MiB of output add at most 32 MiB to a client that listens", { timeout: 60_000 }, async () => {
  const server = await FakeServer.start(async (request, response) => {
    if (request.method === "GET") return sendJson(response, 200, SANDBOX);
    response.writeHead(200, { "content-type": "text/event-stream" });
    return await flood(response, request.json["cmd"] === "long" ? BYTES.long : BYTES.short);
  });
  const program = fileURLToPath(new URL("long-output-client.js", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program, server.options.apiUrl]);
  const heard = JSON.parse(stdout) as Heard;
  assert.equal(heard.characters, BYTES.long);
  assert.equal(heard.omittedBytes, BYTES.long - KEPT_BYTES);
  assert.ok(heard.addedMib <= 32, `${heard.addedMib.toFixed(1)} MiB`);
});
