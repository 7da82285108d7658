import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox } from "dayfly";
import { event, FakeServer, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const PROCESS = {
  ...{ exec_id: "ex-1", title: "sh", user: "agent", pid: 7, started_at: "", state: "exited", duration_ms: 1, exit_code: 0 },
  ...{ terminal: true, takes_stdin: true, stdin_bytes: 0, stdout: { start: 0, end: 0 }, stderr: { start: 0, end: 0 } },
};
const BASE = "/v1/sandboxes/sb-1/processes/ex-1";

async function terminal(): Promise<[Sandbox, FakeServer]> {
  const server = await FakeServer.start((request, response) => {
    if (request.path.endsWith("/attach")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event("stdout", { chunk: "$ " }));
      return void response.end(event("stdout", { chunk: "é" }) + event("exit", { exit_code: 0, reason: "exited", duration_ms: 1 }));
    }
    if (request.path.endsWith("/resize") || request.path.endsWith("/signal")) return sendNothing(response);
    if (request.path.endsWith("/stdin")) {
      // The first is the slowest: an order that holds is not one of luck.
      const isFirst = request.query.get("offset") === "0";
      return void setTimeout(() => sendJson(response, 200, { stdin_bytes: 1 }), isFirst ? 50 : 0);
    }
    if (request.path.endsWith("/output")) return void response.end();
    if (request.path.endsWith("/exec") || request.path === BASE) return sendJson(response, 200, PROCESS);
    return sendJson(response, 200, SANDBOX);
  });
  return [await Sandbox.connect("sb-1", server.options), server];
}

test("a terminal shows, takes input in order, changes its size and ends", async () => {
  const [sandbox, server] = await terminal();
  {
    await using pty = await sandbox.pty({ cols: 100, rows: 30, command: ["python3"], env: { A: "b" } });
    await Promise.all([pty.write("ls"), pty.write("\n"), pty.resize({ cols: 10, rows: 5 })]);
    let shown = "";
    for await (const text of pty) shown += text;
    assert.equal(shown, "$ é");
    assert.equal((await pty.wait()).exitCode, 0);
  }
  const { json } = server.at("POST", "/v1/sandboxes/sb-1/exec")[0] ?? {};
  assert.deepEqual(json?.["terminal"], { columns: 100, rows: 30 });
  assert.deepEqual(json?.["env"], { TERM: "xterm-256color", A: "b" });
  assert.deepEqual([json?.["cmd"], json?.["stdin_open"], json?.["background"]], [["python3"], true, true]);
  const typed = server.at("POST", `${BASE}/stdin`).map(({ query, body }) => [query.get("offset"), body]);
  assert.deepEqual(typed, [["0", "ls"], ["2", "\n"]]);
  assert.deepEqual(server.at("POST", `${BASE}/resize`)[0]?.json, { columns: 10, rows: 5 });
  assert.deepEqual(server.at("POST", `${BASE}/signal`)[0]?.json, { signal: 9 });
});

test("a terminal can be read as a stream of bytes, and is a shell unless told otherwise", async () => {
  const [sandbox, server] = await terminal();
  const pty = await sandbox.pty();
  assert.equal(await new Response(pty.readable).text(), "$ é");
  assert.match(String(server.at("POST", "/v1/sandboxes/sb-1/exec")[0]?.json["cmd"]), /bash -l/);
  await assert.rejects(sandbox.pty({ columns: 3 } as object), /no option columns/);
});
