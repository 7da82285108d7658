// Builds of templates: what is sent, and how they are followed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { type BuildEvent, BuildFailed, InvalidSettings, NotFound, Sandbox, Template } from "dayfly";
import { type Arrived, FakeServer, refuse, SANDBOX, sendJson, sendNothing } from "./fake-server.js";

const BUILD = {
  ...{ id: "bld-1", name: "web", tag: "latest", status: "queued", error: null, started_at: null, ended_at: null },
  ...{ size_mb: 0, bytes: 0, image_ref: "", version: null, steps: 0, cached: 0 },
};
const DONE = { ...BUILD, status: "done", image_ref: "web:latest", version: "tv-1", steps: 2, cached: 1 };
const FAILED = { ...BUILD, status: "failed", error: "step 2 of 2 failed with exit code 3: RUN b (line 3)" };
const STEPS = [
  { event: "stage", name: "stage 1", steps: 2 },
  { event: "cached", number: 1, steps: 2, text: "RUN a" },
  { event: "started", number: 2, steps: 2, text: "RUN b" },
  { event: "output", text: "hello", is_error: false },
];
const BUILT = { event: "built", name: "web", tag: "latest", version: "tv-1", steps: 2, cached: 1, elapsed_ms: 1500 };
const STEP = { number: 2, steps: 2, line: 3, text: "RUN b", exit_code: 3, tail: ["no such file"], sandbox: "sb-9" };
const ONE = "/v1/templates/builds/bld-1";

type Events = (response: ServerResponse, request: Arrived) => unknown;

function numbered(events: readonly object[], first = 1): string {
  return events.map((data, index) => `id: ${first + index}\ndata: ${JSON.stringify(data)}\n\n`).join("");
}

function stream(events: readonly object[], first = 1): Events {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(numbered(events, first));
  };
}

/** A server that builds; each request for events is served by the next of `streams`, the last of which stays. */
function serve(streams: Events[], end: object = DONE): Promise<FakeServer> {
  const rest = [...streams];
  return FakeServer.start((request, response) => {
    if (request.method === "DELETE") return sendNothing(response);
    if (request.path === "/v1/templates/build") return sendJson(response, 202, BUILD);
    if (request.path === ONE) return sendJson(response, 200, end);
    if (request.path !== `${ONE}/events`) return sendJson(response, 201, SANDBOX);
    const [next] = rest.length > 1 ? rest.splice(0, 1) : rest;
    next?.(response, request);
  });
}

const steps = (): Template => Template.fromTemplate("base").run("a").run("b");

/** The parts of a form, as the platform reads them. */
async function formOf(server: FakeServer): Promise<{ texts: Record<string, string>; files: Record<string, string> }> {
  const sent = server.at("POST", "/v1/templates/build").at(-1);
  assert.ok(sent !== undefined);
  const headers = { "content-type": String(sent.headers["content-type"]) };
  const form = await new Response(new Uint8Array(sent.bytes), { headers }).formData();
  const texts: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const [name, value] of form.entries()) {
    if (typeof value === "string") {
      texts[name] = value;
    } else {
      assert.equal(value.name, name);
      files[name] = await value.text();
    }
  }
  return { texts, files };
}

test("a build is followed to its end", async () => {
  const server = await serve([stream([...STEPS, BUILT])]);
  const events: BuildEvent[] = [];
  const built = await steps().build("web", { ...server.options, onEvent: (event) => void events.push(event) });
  assert.deepEqual(
    [built.id, built.name, built.version, built.reference, built.steps, built.cached, built.error],
    ["bld-1", "web", "tv-1", "web@tv-1", 2, 1, undefined],
  );
  assert.deepEqual(events.map(String), [
    "stage 1: 2 steps",
    "[1/2] cached  RUN a",
    "[2/2] RUN b",
    "    hello",
    "built web:latest in 1.5 s (1 of 2 steps from the cache)",
  ]);
  assert.deepEqual(await formOf(server), { texts: { name: "web", dockerfile: "FROM base\nRUN a\nRUN b\n" }, files: {} });
  assert.equal(server.at("DELETE", ONE).length, 0);
});

test("what is asked for is in the form", async () => {
  const server = await serve([stream([BUILT])]);
  const sizes = { cpu: 2, memoryMb: 1024, diskGb: 1.5 };
  const more = { description: "a server", target: "final", buildArgs: { A: "b" }, egressAllowlist: ["pypi.org"], fresh: true };
  await steps().build("web:1.0", { ...server.options, ...sizes, ...more });
  const { texts } = await formOf(server);
  const { build_args: buildArgs, network, ...rest } = texts;
  assert.deepEqual(JSON.parse(buildArgs ?? ""), { A: "b" });
  assert.deepEqual(JSON.parse(network ?? ""), { mode: "allowlist", rules: ["pypi.org"] });
  const wanted = { cpu: "2", memory_mb: "1024", size_mb: "1536", description: "a server", target: "final", fresh: "true" };
  assert.deepEqual(rest, { name: "web", tag: "1.0", dockerfile: "FROM base\nRUN a\nRUN b\n", ...wanted });
  await assert.rejects(steps().build("web:1.0", { ...server.options, tag: "2.0" }), /has a tag/);
  const both = { network: { mode: "public" }, egressAllowlist: ["a"] } as const;
  await assert.rejects(steps().build("web", { ...server.options, ...both }), /not both/);
  await assert.rejects(steps().build("web", { memory: 3 } as object), /did you mean memoryMb/);
});

/** A directory of the test's own. */
function tree(files: Readonly<Record<string, string>>): string {
  const place = mkdtempSync(join(tmpdir(), "dayfly-"));
  after(() => rmSync(place, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(place, path)), { recursive: true });
    writeFileSync(join(place, path), content);
    chmodSync(join(place, path), 0o644);
  }
  return place;
}

test("only what is copied is sent", async () => {
  const server = await serve([stream([BUILT])]);
  const context = tree({ "src/a.py": "1", "src/sub/ä b.py": "2", secret: "3", "run.sh": "4" });
  chmodSync(join(context, "run.sh"), 0o755);
  const base = Template.fromTemplate("base", { context });
  await base.copy(["src", join(context, "run.sh")], "/app/").build("web", server.options);
  const { texts, files } = await formOf(server);
  assert.deepEqual(files, { "src/a.py": "1", "src/sub/ä b.py": "2", "run.sh": "4" });
  assert.deepEqual(JSON.parse(texts["context.modes"] ?? ""), { "run.sh": "755" });
  await base.run("true").build("web", server.options);
  assert.deepEqual((await formOf(server)).files, {});
  assert.throws(() => base.copy("/etc/passwd", "/x"), /is outside of/);
});

test("an ignore file holds and is sent", async () => {
  const server = await serve([stream([BUILT])]);
  const ignored = { ".dockerignore": "**/*.log\npackages\n" };
  const context = tree({ "a.py": "1", "b.log": "2", "deep/c.log": "3", "deep/d.py": "4", "packages/e": "5", ...ignored });
  const sent = async (builder: Template): Promise<string[]> => {
    await builder.build("web", server.options);
    return Object.keys((await formOf(server)).files).sort();
  };
  const base = Template.fromTemplate("base", { context });
  assert.deepEqual(await sent(base.copy(".", "/app")), [".dockerignore", "a.py", "deep/d.py"]);
  const written = await Template.fromDockerfile("FROM base\nCOPY . /app\n", { context });
  assert.deepEqual(await sent(written), [".dockerignore", "a.py", "deep/d.py"]);
  // One that takes nothing is sent without the directory that it happens to stand in.
  for (const text of ["FROM base\nRUN a\n", "FROM base AS one\nFROM base\ncopy --from=one /a /b\n"]) {
    assert.deepEqual(await sent(await Template.fromDockerfile(text, { context })), []);
  }
  await assert.rejects(sent(base.copy("packages", "/app")), /has no files, or \.dockerignore hides/);
  await assert.rejects(sent(base.copy("none", "/app")), /"none" is not in/);
});

test("links are followed inside alone", { skip: process.platform === "win32" }, async () => {
  const server = await serve([stream([BUILT])]);
  const outside = tree({ outside: "secret" });
  const context = tree({ "real/a": "1" });
  symlinkSync("real", join(context, "link"));
  symlinkSync("real/a", join(context, "file"));
  const base = Template.fromTemplate("base", { context });
  await base.copy(["link", "file"], "/x/").build("web", server.options);
  assert.deepEqual((await formOf(server)).files, { "link/a": "1", file: "1" });
  const bad = join(context, "real", "bad");
  for (const [target, said] of [[join(outside, "outside"), /leads out/], ["nowhere", /leads nowhere/], ["..", /that it is in/]] as const) {
    symlinkSync(target, bad);
    await assert.rejects(base.copy("real", "/x").build("web", server.options), said);
    rmSync(bad);
  }
  execFileSync("mkfifo", [bad]);
  await assert.rejects(base.copy("real", "/x").build("web", server.options), /neither a file nor a directory/);
});

test("a large context is sent while it is read, and too large a one is refused before", async () => {
  const server = await serve([stream([BUILT])]);
  const context = tree({ large: "x".repeat(9 << 20) });
  const all = Template.fromTemplate("base", { context }).copy(".", "/x");
  await all.build("web", server.options);
  assert.equal((await formOf(server)).files["large"]?.length, 9 << 20);
  // One that says that it is larger than it is, in no room.
  execFileSync("truncate", ["-s", String((256 << 20) + 1), join(context, "hollow")]);
  await assert.rejects(all.build("web", server.options), /more than 256 MiB; copy less/);
  assert.equal(server.at("POST", "/v1/templates/build").length, 1);
});

test("a failed step says which and where to look", async () => {
  const server = await serve([stream([...STEPS, { event: "failed", error: FAILED.error, step: STEP }])], FAILED);
  await assert.rejects(steps().build("web", server.options), (error: unknown) => {
    assert.ok(error instanceof BuildFailed);
    assert.deepEqual([error.step, error.exitCode, error.lines, error.sandboxId], ["RUN b", 3, ["no such file"], "sb-9"]);
    assert.equal(error.message, `${FAILED.error}\n  | no such file`);
    return error.hint === "to look: dayfly template debug sb-9" && error.build.id === "bld-1";
  });
  assert.equal(server.at("DELETE", ONE).length, 0);
  const other = await serve([stream([{ event: "failed", error: "no x", step: null }])], { ...FAILED, error: "no x" });
  await assert.rejects(steps().build("web", other.options), { message: "no x", step: undefined, lines: [] });
});

test("a stream that was cut off goes on where it was", async () => {
  const cut: Events = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(numbered(STEPS.slice(0, 2)), () => response.destroy());
  };
  const lost: Events = (response) => response.destroy();
  const away: Events = (response) => refuse(response, 503, "node_unavailable");
  const server = await serve([cut, lost, away, stream([...STEPS.slice(2), BUILT], 3)]);
  const events: string[] = [];
  const built = await steps().build("web", { ...server.options, onEvent: ({ event }) => void events.push(event) });
  assert.equal(built.version, "tv-1");
  assert.deepEqual(events, ["stage", "cached", "started", "output", "built"]);
  const asked = server.at("GET", `${ONE}/events`).map(({ query }) => query.get("after"));
  assert.deepEqual(asked, [null, ...asked.slice(1).map(() => "2")]);
  assert.equal(server.at("POST", "/v1/templates/build").length, 1);
});

test("a build whose events are gone still has an end", async () => {
  const server = await serve([stream([])]);
  assert.equal((await steps().build("web", server.options)).reference, "web@tv-1");
});

test("who does not wait has the build at once", async () => {
  const server = await serve([stream([...STEPS, BUILT])]);
  const started = await steps().build("web", { ...server.options, wait: false });
  assert.deepEqual([started.status, started.reference], ["queued", "web:latest"]);
  assert.equal(server.at("GET", `${ONE}/events`).length, 0);
  assert.equal((await Template.getBuild("bld-1", server.options)).status, "done");
  let count = 0;
  const built = await Template.waitBuild("bld-1", { ...server.options, onEvent: () => void (count += 1) });
  assert.deepEqual([built.version, count], ["tv-1", 5]);
  await Template.cancelBuild("bld-1", server.options);
  assert.equal(server.at("DELETE", ONE).length, 1);
});

test("who gives up ends the build, at any moment", async () => {
  const endless: Events = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(numbered(STEPS));
  };
  const server = await serve([endless]);
  const stop = new AbortController();
  const onEvent = (): void => stop.abort();
  await assert.rejects(steps().build("web", { ...server.options, onEvent, signal: stop.signal }), { name: "AbortError" });
  await server.until(({ method, path }) => method === "DELETE" && path === ONE);
  // While it is started nobody knows its id yet.
  const early = new AbortController();
  const slow = await FakeServer.start(({ method }, response) => {
    early.abort();
    if (method === "DELETE") sendNothing(response);
    else sendJson(response, 202, BUILD);
  });
  await assert.rejects(steps().build("web", { ...slow.options, signal: early.signal }), { name: "AbortError" });
  await slow.until(({ method, path }) => method === "DELETE" && path === ONE);
  const faulty = await serve([endless]);
  const fault = (): never => {
    throw new RangeError("a fault of who listens");
  };
  await assert.rejects(steps().build("web", { ...faulty.options, onEvent: fault }), RangeError);
  await faulty.until(({ method, path }) => method === "DELETE" && path === ONE);
});

test("what was built is a template", async () => {
  const server = await serve([stream([BUILT])]);
  const built = await steps().build("web", server.options);
  for (const template of [built, built.reference]) await Sandbox.create({ ...server.options, template });
  assert.deepEqual(server.at("POST", "/v1/sandboxes").map(({ json }) => json["template"]), ["web@tv-1", "web@tv-1"]);
});

test("versions and tags", async () => {
  const version = { id: "tv-1", name: "web", state: "baked", tags: ["latest"], provenance: { base_images: [] } };
  const server = await FakeServer.start(({ method, path }, response) => {
    if (path.endsWith("tv-9") || (method === "DELETE" && path === "/v1/templates/web")) return refuse(response, 404, "not_found");
    if (method === "DELETE") return sendNothing(response);
    sendJson(response, 200, path.endsWith("/versions") ? { items: [version] } : version);
  });
  const [found] = await Template.versions("web", server.options);
  assert.deepEqual([found?.reference, found?.tags, found?.provenance], ["web@tv-1", ["latest"], { base_images: [] }]);
  assert.equal((await Template.get("web", undefined, server.options)).id, "tv-1");
  await assert.rejects(Template.get("web", "tv-9", server.options), NotFound);
  assert.equal((await Template.tag("web", "tv-1", "1.0", server.options)).id, "tv-1");
  await Template.untag("web", "1.0", server.options);
  await Template.delete("web", "tv-1", server.options);
  await Template.delete("web", undefined, server.options);
  await assert.rejects(Template.delete("..", undefined, server.options), InvalidSettings);
  assert.deepEqual(server.at("PUT", "/v1/templates/web/tags/1.0").map(({ json }) => json), [{ version: "tv-1" }]);
  assert.equal(server.at("GET", "/v1/templates/web/versions/latest").length, 1);
});
