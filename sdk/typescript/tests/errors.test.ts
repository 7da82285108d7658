import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inspect } from "node:util";
import * as dayfly from "dayfly";
import { FakeServer, refuse, SANDBOX, sendJson } from "./fake-server.js";

test("every code of the documented table has a class of its own choosing", async () => {
  const page = readFileSync(new URL("../../../../docs/api.md", import.meta.url), "utf8");
  const table = page.slice(page.indexOf("## Errors"));
  const rows = [...table.matchAll(/^\| (`[a-z_`, ]+`) \| (\d{3}) \|/gm)];
  const codes = rows.flatMap(([, words, status]) =>
    [...(words ?? "").matchAll(/`([a-z_]+)`/g)].map(([, code]) => ({ code: code ?? "", status: Number(status) })),
  );
  assert.ok(codes.length >= 25, "the table was not found");
  let current = { code: "", status: 0 };
  const server = await FakeServer.start((_, response) => refuse(response, current.status, current.code, { hint: "h" }));
  for (current of codes) {
    await assert.rejects(dayfly.me({ ...server.options, maxRetries: 0 }), (error: unknown) => {
      assert.ok(error instanceof dayfly.ApiError);
      assert.notEqual(error.constructor, dayfly.ApiError, `${current.code} has no class`);
      const { code, status, hint, requestId, message } = error;
      assert.deepEqual({ code, status, hint, requestId, message }, {
        ...current,
        // What a key is given by is not for the server to say.
        hint: current.code === "unauthorized" ? hint : "h",
        requestId: "req-1",
        message: `refused: ${current.code}`,
      });
      return true;
    });
  }
});

test("the class is chosen by the code and not by the status", async () => {
  const server = await FakeServer.start((_, response) => refuse(response, 409, "volume_busy"));
  await assert.rejects(dayfly.me(server.options), dayfly.VolumeBusy);
  const unknown = await FakeServer.start((_, response) => refuse(response, 409, "brand_new"));
  await assert.rejects(dayfly.me(unknown.options), (error: unknown) => {
    return error instanceof dayfly.ApiError && error.constructor === dayfly.ApiError && error.code === "brand_new";
  });
});

test("an answer of somebody else is still an error with a text", async () => {
  const proxy = await FakeServer.start((_, response) => {
    response.writeHead(502, { "content-type": "text/html" });
    response.end("<html>bad gateway</html>");
  });
  await assert.rejects(dayfly.me({ ...proxy.options, maxRetries: 0 }), /502/);
  const redirect = await FakeServer.start((_, response) => {
    response.writeHead(302, { location: "http://127.0.0.1:1/" });
    response.end();
  });
  await assert.rejects(dayfly.me(redirect.options), dayfly.ProtocolError);
  const nonsense = await FakeServer.start((_, response) => void response.end("hello"));
  await assert.rejects(dayfly.me(nonsense.options), {
    name: "ProtocolError",
    message: "the response does not come from a Dayfly server: it is not JSON (of no type)",
  });
  const fine = await FakeServer.start((_, response) => sendJson(response, 200, { project: "p", key_prefix: "k" }));
  assert.deepEqual(await dayfly.me(fine.options), { project: "p", keyPrefix: "k" });
});

test("settings that cannot be right are refused before anything is sent", async () => {
  for (const apiUrl of ["nowhere", "ftp://host", "http://user:secret@host", "http://host/?x=1"]) {
    await assert.rejects(dayfly.me({ apiUrl }), dayfly.InvalidSettings, apiUrl);
  }
  await assert.rejects(dayfly.me({ apiKey: "a\nb" }), (error: unknown) => {
    return error instanceof dayfly.InvalidSettings && !error.message.includes("a\nb");
  });
  for (const id of ["", "..", ".", "a/b", "A"]) {
    await assert.rejects(dayfly.Sandbox.connect(id), dayfly.InvalidSettings, id);
  }
});

test("the key is in no printed object", async () => {
  const server = await FakeServer.start((_, response) => sendJson(response, 200, SANDBOX));
  const sandbox = await dayfly.Sandbox.connect("sb-1", { apiUrl: server.options.apiUrl, apiKey: "df_secret" });
  server.stop();
  const error: unknown = await sandbox.info().catch((caught: unknown) => caught);
  assert.ok(error instanceof dayfly.DayflyError);
  assert.equal(server.arrived[0]?.headers["authorization"], "Bearer df_secret");
  assert.ok(!inspect([sandbox, error], { depth: 20, showHidden: true }).includes("df_secret"));
});
