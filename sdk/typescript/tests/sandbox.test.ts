import assert from "node:assert/strict";
import { test } from "node:test";
import { type CodeContext, Sandbox, Volume } from "dayfly";
import { FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const LIFECYCLE = { persistent: true, on_timeout: "delete", idle_for_seconds: 0 };
const CONTEXT = { created_at: "", execution_count: 0, state: "idle" };

async function server(persistent = false): Promise<FakeServer> {
  return await FakeServer.start((request, response) => {
    if (request.method === "DELETE") return sendNothing(response);
    if (request.method === "PATCH") return sendJson(response, 200, LIFECYCLE);
    if (request.path.endsWith("/sessions")) return sendJson(response, 201, { ...CONTEXT, ...request.json });
    return sendJson(response, request.method === "POST" ? 201 : 200, { ...SANDBOX, persistent });
  });
}

const deletes = (fake: FakeServer): string[] =>
  fake.arrived.filter(({ method }) => method === "DELETE").map(({ path }) => path);

test("await using deletes at the end, also after an error", async () => {
  const fake = await server();
  {
    await using sandbox = await Sandbox.create(fake.options);
    assert.equal(sandbox.id, "sb-1");
    assert.deepEqual(deletes(fake), []);
  }
  assert.deepEqual(deletes(fake), ["/v1/sandboxes/sb-1"]);
  await assert.rejects(async () => {
    await using sandbox = await Sandbox.create(fake.options);
    throw new Error(sandbox.id);
  }, /sb-1/);
  assert.equal(deletes(fake).length, 2);
});

test("await using keeps what is persistent, from the beginning or since", async () => {
  const kept = await server(true);
  {
    await using sandbox = await Sandbox.create({ ...kept.options, persistent: true });
    assert.equal(sandbox.persistent, true);
  }
  assert.deepEqual(deletes(kept), []);
  const changed = await server();
  {
    await using sandbox = await Sandbox.create(changed.options);
    await sandbox.setPersistent();
  }
  assert.deepEqual(deletes(changed), []);
  const sandbox = await Sandbox.connect("sb-1", kept.options);
  await sandbox.kill();
  assert.equal(deletes(kept).length, 1);
});

test("a context is closed by await using", async () => {
  const fake = await server();
  const sandbox = await Sandbox.connect("sb-1", fake.options);
  let seen: CodeContext;
  {
    await using context = await sandbox.createContext("python");
    seen = context;
  }
  assert.deepEqual(deletes(fake), [`/v1/sandboxes/sb-1/repl/sessions/${seen.id}`]);
});

test("volumes become mounts, and names are the server's", async () => {
  const fake = await FakeServer.start((request, response) => {
    if (!request.path.startsWith("/v1/volumes")) return sendJson(response, 201, SANDBOX);
    if (request.method === "GET") return refuse(response, 404, "not_found");
    return sendJson(response, 201, { name: "data", size_mb: 64, created_at: "", readers: [], used_bytes: 0 });
  });
  const volume = await Volume.getOrCreate("data", { ...fake.options, sizeMb: 64 });
  assert.equal(volume.sizeMb, 64);
  await Sandbox.create({
    ...fake.options,
    volumes: [volume.mount("/workspace"), volume.mount(undefined, { readOnly: true })],
    idleSeconds: 60,
    onTimeout: "hibernate",
    egressAllowlist: ["example.com"],
    memoryMb: 1024,
    diskGb: 4,
    class: "reserved",
    fromSnapshot: "snap-1",
    diskOnly: true,
  });
  assert.deepEqual(fake.at("POST", "/v1/sandboxes")[0]?.json, {
    volumes: [
      { name: "data", path: "/workspace", read_only: false },
      { name: "data", read_only: true },
    ],
    idle_seconds: 60,
    on_timeout: "hibernate",
    egress_allowlist: ["example.com"],
    memory_mb: 1024,
    class: "reserved",
    disk_gb: 4,
    from_snapshot: "snap-1",
    disk_only: true,
  });
});

test("a file that is not there is told apart from a sandbox that is not", async () => {
  const fake = await FakeServer.start((request, response) => {
    if (request.path.includes("/fs/")) return refuse(response, 404, "not_found");
    if (fake.arrived.length > 3) return refuse(response, 404, "not_found");
    return sendJson(response, 200, SANDBOX);
  });
  const sandbox = await Sandbox.connect("sb-1", fake.options);
  assert.equal(await sandbox.files.exists("/x"), false);
  await assert.rejects(sandbox.files.exists("/x"));
});

test("code runs in the sandbox's own context, which is made at its first use", async () => {
  const last = { "text/plain": "42", "application/json": "[1]" };
  const results = [{ "text/plain": "1" }, last, { "image/png": "iVBO\nRw==" }];
  const result = { results, stdout: "", stderr: "" };
  const more = { exit: 1, exit_code: 1, status: "error", duration_ms: 1, truncated: false };
  const error = { error: "ValueError: a: b", traceback: ["line 1", "line 2"] };
  let isMade = false;
  const fake = await FakeServer.start((request, response) => {
    if (request.path.endsWith("/run") && !isMade) return refuse(response, 404, "not_found");
    if (request.path.endsWith("/run")) return sendJson(response, 200, { ...result, ...more, ...error });
    isMade = request.path.endsWith("/sessions");
    return sendJson(response, 201, { ...SANDBOX, ...request.json });
  });
  const sandbox = await Sandbox.connect("sb-1", fake.options);
  const execution = await sandbox.runCode("x", { language: "js", timeoutSeconds: 1.5 });
  assert.equal(execution.text, "42");
  assert.deepEqual(execution.json, [1]);
  assert.deepEqual(execution.png, new Uint8Array([0x89, 0x50, 0x4e, 0x47]));
  assert.equal(execution.jpeg, undefined);
  assert.deepEqual(execution.error, { name: "ValueError", value: "a: b", traceback: "line 1\nline 2" });
  assert.throws(() => execution.raiseForError(), /ValueError: a: b/);
  const [made] = fake.at("POST", "/v1/sandboxes/sb-1/repl/sessions");
  assert.deepEqual(made?.json, { id: "default-javascript", language: "javascript" });
  const runs = fake.at("POST", "/v1/sandboxes/sb-1/repl/sessions/default-javascript/run");
  assert.equal(runs.length, 2);
  assert.equal(runs[0]?.json["timeout_ms"], 1500);
});

test("a link to a file has the address of the server", async () => {
  const address = "/v1/sandboxes/sb-1/fs?path=/a&dayfly_token=secret";
  const fake = await FakeServer.start((request, response) => {
    if (request.method === "GET") return sendJson(response, 200, SANDBOX);
    if (request.method === "DELETE") return sendNothing(response);
    return sendJson(response, 201, { id: "dfk_a", method: "PUT", address, expires_at: "2026-01-01T00:00:00Z" });
  });
  const { files } = await Sandbox.connect("sb-1", fake.options);
  const link = await files.uploadLink("/a", { ttlSeconds: 60 });
  assert.deepEqual(link, { id: "dfk_a", method: "PUT", url: fake.options.apiUrl + address, expiresAt: "2026-01-01T00:00:00Z" });
  await files.downloadLink("/a");
  assert.deepEqual(fake.at("POST", "/v1/sandboxes/sb-1/fs/links").map(({ json }) => json), [
    { path: "/a", operation: "upload", ttl_seconds: 60 },
    { path: "/a", operation: "download" },
  ]);
  await files.revokeLink(link);
  assert.equal(fake.at("DELETE", "/v1/sandboxes/sb-1/fs/links/dfk_a").length, 1);
});

test("a sandbox is found by its name, or made with it", async () => {
  let isThere = false;
  const fake = await FakeServer.start((request, response) => {
    if (request.method === "GET" && !isThere) return refuse(response, 404, "not_found");
    if (request.method === "GET") return sendJson(response, 200, { ...SANDBOX, name: "notebook" });
    // Somebody else makes it in this moment.
    isThere = true;
    return refuse(response, 409, "already_exists");
  });
  const raced = await Sandbox.getOrCreate("notebook", { ...fake.options, ttlSeconds: 60 });
  assert.deepEqual([raced.id, raced.name], ["sb-1", "notebook"]);
  assert.deepEqual(fake.at("POST", "/v1/sandboxes")[0]?.json, { name: "notebook", ttl_seconds: 60 });
  const found = await Sandbox.getOrCreate("notebook", fake.options);
  assert.equal(found.id, "sb-1");
  assert.equal(fake.at("POST", "/v1/sandboxes").length, 1);
  assert.equal(fake.at("GET", "/v1/sandboxes/notebook").length, 3);
  await assert.rejects(Sandbox.getOrCreate("a", { ttl: 1 } as object), /ttlSeconds/);
});

test("a list is read page by page and chosen by the server", async () => {
  const fake = await FakeServer.start((request, response) => {
    const isSecond = request.query.get("cursor") === "1.sb-1";
    const page = isSecond
      ? { items: [{ ...SANDBOX, id: "sb-2" }] }
      : { items: [SANDBOX], next_cursor: "1.sb-1" };
    return sendJson(response, 200, page);
  });
  const found = await Sandbox.list({ ...fake.options, status: "running", metadata: { task: "7 & 8" } });
  assert.deepEqual(found.map(({ id }) => id), ["sb-1", "sb-2"]);
  const [first, second] = fake.at("GET", "/v1/sandboxes");
  assert.equal(first?.query.get("metadata"), '{"task":"7 & 8"}');
  assert.equal(first.query.get("cursor"), null);
  assert.equal(second?.query.get("status"), "running");
});

test("environment variables are sent as they are, at create, fork, wake and rollback", async () => {
  const fake = await FakeServer.start((request, response) => {
    if (request.path.endsWith("/wake")) return sendNothing(response);
    if (!request.path.endsWith("/fork")) return sendJson(response, 201, { ...SANDBOX, env_names: ["some_name"] });
    return sendJson(response, 201, { children: [SANDBOX], failures: {}, renewed: [], not_renewed: [], capture: {} });
  });
  const sandbox = await Sandbox.create({ ...fake.options, env: { some_name: "a", someName: "b" } });
  assert.deepEqual((await sandbox.info()).envNames, ["some_name"]);
  await sandbox.fork({ env: { A: "1" } });
  await sandbox.wake();
  await sandbox.wake({ env: {} });
  await sandbox.rollback("snap-1");
  await sandbox.rollback("snap-1", { env: { B: "2" } });
  const bodies = (path: string): unknown[] => fake.at("POST", path).map(({ json }) => json);
  assert.deepEqual(bodies("/v1/sandboxes"), [{ env: { some_name: "a", someName: "b" } }]);
  assert.deepEqual(bodies("/v1/sandboxes/sb-1/fork"), [{ count: 1, env: { A: "1" } }]);
  assert.deepEqual(bodies("/v1/sandboxes/sb-1/wake").slice(1), [{ env: {} }]);
  assert.deepEqual(bodies("/v1/sandboxes/sb-1/rollback"), [{ snapshot_id: "snap-1" }, { snapshot_id: "snap-1", env: { B: "2" } }]);
  assert.throws(() => void sandbox.wake({ envs: {} } as object), /did you mean env/);
});
