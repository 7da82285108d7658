// An explicit client: what it is given reaches every request, and its end is an end.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { worded } from "#internal/hints";
import { Client, DayflyError, InvalidSettings, me, Sandbox, Snapshot, templates, Unauthorized, Volume } from "dayfly";
import { FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

test("whatever takes an address takes a client", async () => {
  const server = await FakeServer.start((request, response) => {
    if (request.method === "DELETE") return sendNothing(response);
    if (request.path === "/v1/templates") return sendJson(response, 200, []);
    if (request.path === "/v1/snapshots") return sendJson(response, 200, { snapshots: [] });
    if (request.path === "/v1/volumes" || request.query.has("limit")) return sendJson(response, 200, { items: [] });
    return sendJson(response, 200, SANDBOX);
  });
  const client = new Client({ ...server.options, headers: { "X-Team": "search" } });
  await using sandbox = await Sandbox.create({ client });
  await Sandbox.connect("sb-1", { client });
  await Sandbox.list({ client });
  await Snapshot.list({ client });
  await Volume.list({ client });
  await templates({ client });
  await me({ client });
  assert.equal(sandbox.id, "sb-1");
  assert.equal(server.arrived.length, 7);
  for (const { headers } of server.arrived) {
    assert.equal(headers["x-team"], "search");
    assert.equal(headers["authorization"], "Bearer df_test");
  }
  assert.equal(server.arrived[0]?.json["client"], undefined);
  await assert.rejects(me({ client, apiKey: "df_other" }), InvalidSettings);
});

test("another fetch is used, with its own limit in time, and the log has no key", async () => {
  const lines: string[] = [];
  const asked: string[] = [];
  const client = new Client({
    apiUrl: "http://dayfly.invalid",
    apiKey: "df_secret",
    timeoutMs: 50,
    maxRetries: 0,
    logger: { debug: (line) => lines.push(line) },
    fetch: (input, init) => {
      asked.push(String(input));
      if (String(input).endsWith("/me")) return Promise.resolve(Response.json({ project: "p" }));
      return new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("cut"))));
    },
  });
  assert.equal((await me({ client })).project, "p");
  await assert.rejects(templates({ client }), { code: "answer_timeout" });
  assert.deepEqual(asked, ["http://dayfly.invalid/v1/me", "http://dayfly.invalid/v1/templates"]);
  assert.match(lines.join("\n"), /^GET \/v1\/me: 200 in \d+ ms$/);
  assert.ok(!lines.join("\n").includes("df_secret"));
});

test("closing ends what is under way, waits for what must be done, and allows no more", async () => {
  const server = await FakeServer.start((request, response) => {
    if (request.method === "DELETE") return void setTimeout(() => sendNothing(response), 50);
    if (request.method === "POST") return void setTimeout(() => sendJson(response, 201, SANDBOX), 50);
    return undefined;
  });
  const client = new Client(server.options);
  const signal = AbortSignal.timeout(20);
  await assert.rejects(Sandbox.create({ client, signal }), { name: "TimeoutError" });
  const hanging = assert.rejects(me({ client }), /the client is closed/);
  await client.close();
  assert.equal(server.at("DELETE", "/v1/sandboxes/sb-1").length, 1);
  await hanging;
  await assert.rejects(me({ client }), /the client is closed/);
  await client.close();
});

test("settings of a client that cannot be right are refused at once", () => {
  const cases: [object, RegExp][] = [
    [{ apiKey: "" }, /the API key is empty/],
    [{ apiKey: "  " }, /the API key is empty/],
    [{ apiUrl: "http://127.0.0.1:7070/v1/" }, /must not end with \/v1/],
    [{ timeoutMs: 0 }, /timeoutMs/],
    [{ maxRetries: -1 }, /maxRetries/],
    [{ headers: { Authorization: "Bearer x" } }, /apiKey/],
    [{ timeout: 3 }, /no option timeout; did you mean timeoutMs/],
    [{ api_key: "x" }, /no option api_key; did you mean apiKey/],
  ];
  for (const [options, said] of cases) assert.throws(() => new Client(options as object), said);
  assert.throws(() => new Client({ apiUrl: "http://h/v1" }), (error: unknown) => {
    return error instanceof InvalidSettings && error.hint?.startsWith("use http://h:") === true;
  });
});

test("a missing key is said with the three ways to give one", async () => {
  const server = await FakeServer.start((_, response) => {
    refuse(response, 401, "unauthorized", { hint: "send the header `Authorization: Bearer <key>`" });
  });
  process.env["DAYFLY_CONFIG"] = "";
  const { HOME, XDG_CONFIG_HOME } = process.env;
  process.env["HOME"] = process.env["XDG_CONFIG_HOME"] = "/nonexistent";
  try {
    await assert.rejects(me({ apiUrl: server.options.apiUrl }), (error: unknown) => {
      assert.ok(error instanceof Unauthorized);
      assert.match(error.hint ?? "", /DAYFLY_API_KEY.*apiKey.*dayfly login/);
      return true;
    });
  } finally {
    Object.assign(process.env, { HOME, XDG_CONFIG_HOME });
    if (XDG_CONFIG_HOME === undefined) delete process.env["XDG_CONFIG_HOME"];
  }
});

test("hints are in the words of this package, by their code", async () => {
  const told: [Record<string, unknown>, string][] = [
    [{ hint_code: "grow_volume", hint_parameters: { volume: "v" } }, "volume.grow({ sizeGb }) makes it larger"],
    [{ hint_code: "template_failed", hint_parameters: { template: "tools" } }, "templates() says why: `detail` of tools"],
    [{ hint_code: "key_permissions" }, "me() says what this key may be used for"],
    [{ hint_code: "output_kept", hint_parameters: { exec_id: "ex-1" } }, 'its output is kept: sandbox.process("ex-1").output()'],
    [{ hint_code: "key_ended" }, "h"],
    [{ hint_code: "of_a_later_server" }, "h"],
    [{ hint_code: "template_failed" }, "h"],
    [{}, "h"],
  ];
  let current: Record<string, unknown> = {};
  const server = await FakeServer.start((_, response) => {
    refuse(response, 409, "already_exists", { hint: "h", ...current });
  });
  for (const [fields, expected] of told) {
    current = fields;
    await assert.rejects(me(server.options), (error: unknown) => {
      return error instanceof DayflyError && error.hint === expected;
    }, expected);
  }
});

const REPOSITORY = fileURLToPath(new URL("../../../..", import.meta.url));
const DOCUMENT = join(REPOSITORY, "openapi/v1.json");

interface Codes {
  components: { schemas: { HintCode: { enum: string[]; "x-enumDescriptions": Record<string, string> } } };
}

test("no hint of the server is told in words of REST, and commands in hints exist", { skip: !existsSync(DOCUMENT) }, () => {
  const { HintCode } = (JSON.parse(readFileSync(DOCUMENT, "utf8")) as Codes).components.schemas;
  assert.ok(HintCode.enum.length > 10);
  const commands = readFileSync(join(REPOSITORY, "docs/reference/cli.md"), "utf8");
  for (const code of HintCode.enum) {
    const words = HintCode["x-enumDescriptions"][code] ?? "";
    const names = [...words.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => [name, "a"]);
    const told = worded({ hint: words, hint_code: code, hint_parameters: Object.fromEntries(names) }) ?? "";
    assert.notEqual(told, "", code);
    assert.doesNotMatch(told, /\b(GET|PUT|POST|PATCH|DELETE) |\/v1\/|Bearer|Idempotency-Key/, code);
    for (const [, command] of told.matchAll(/`(dayfly [a-z ]+)`/g)) assert.ok(commands.includes(`## \`${command}\`\n`), told);
  }
});
