// Files of this computer, into a sandbox and out of it, and what a file may be written from.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { AnswerLost, Forbidden, ProtocolError, Sandbox } from "dayfly";
import { unpackDirectory } from "#internal/local-tree";
import { headerOf, type TarEntry } from "#internal/tar-header";
import { event, FakeServer, refuse, SANDBOX, sendJson } from "./fake-server.js";

const place = mkdtempSync(join(tmpdir(), "dayfly-files-"));
after(() => rmSync(place, { recursive: true }));

/** A sandbox that keeps what is written to it, by path. */
async function keeping(): Promise<{ sandbox: Sandbox; kept: Map<string, Buffer>; server: FakeServer }> {
  const kept = new Map<string, Buffer>();
  const server = await FakeServer.start((request, response) => {
    const path = request.query.get("path") ?? "";
    if (request.method === "PUT") {
      kept.set(path, request.bytes);
      return sendJson(response, 200, { path, bytes: request.bytes.length });
    }
    const found = kept.get(path);
    if (request.path.endsWith("/stat") && found !== undefined) {
      return sendJson(response, 200, { name: "x", path, size: found.length, is_dir: path.endsWith("tree") });
    }
    if (request.path.includes("/fs")) {
      return found === undefined ? refuse(response, 403, "forbidden") : void response.end(found);
    }
    return sendJson(response, 200, SANDBOX);
  });
  return { sandbox: await Sandbox.connect("sb-1", server.options), kept, server };
}

test("a stream of Node is written, and what is none is refused with words", async () => {
  const { sandbox, kept } = await keeping();
  await sandbox.files.write("a", Readable.from([Buffer.from("one "), Buffer.from("two")]));
  await sandbox.files.write("b", Readable.from(["é", "!"]));
  assert.deepEqual([kept.get("a")?.toString(), kept.get("b")?.toString()], ["one two", "é!"]);
  await assert.rejects(sandbox.files.write("c", { a: 1 } as unknown as string), /JSON\.stringify/);
  await assert.rejects(sandbox.files.read("/secret"), (error: unknown) => {
    return error instanceof Forbidden && error.message.startsWith("/secret: ");
  });
});

test("more than was asked for is refused, and not read to its end", { timeout: 20_000 }, async () => {
  const server = await FakeServer.start((request, response) => {
    if (!request.path.endsWith("/fs")) return sendJson(response, 200, SANDBOX);
    const endless = new Readable({ read: () => void endless.push(Buffer.alloc(1 << 16)) });
    response.once("close", () => endless.destroy());
    endless.pipe(response);
  });
  const { files } = await Sandbox.connect("sb-1", server.options);
  await assert.rejects(files.read("/f", { offset: 3, length: 10 }), (error: unknown) => {
    return error instanceof ProtocolError && error.message.endsWith("longer than the 10 bytes that were asked for");
  });
  assert.equal(server.at("GET", "/v1/sandboxes/sb-1/fs").length, 1);
});

test("a signal ends a listing and a look at a file", async () => {
  const stop = new AbortController();
  const server = await FakeServer.start(({ path }, response) => {
    if (!path.includes("/fs/")) sendJson(response, 200, SANDBOX);
    else if (server.arrived.length > 2) stop.abort(new Error("enough"));
  });
  const { files } = await Sandbox.connect("sb-1", server.options);
  const { signal } = stop;
  const ended = await Promise.allSettled([files.list("/w", { signal }), files.stat("/w", { signal })]);
  for (const one of ended) assert.match(one.status === "rejected" ? String(one.reason) : "", /^Error: enough$/);
});

test("a file goes up and comes down under the name that is meant", async () => {
  const { sandbox, kept, server } = await keeping();
  const local = join(place, "data.bin");
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  writeFileSync(local, bytes, { mode: 0o640 });
  assert.equal(await sandbox.files.upload(local, "/workspace/x.bin"), 100_000);
  await sandbox.files.upload(pathToFileURL(local), "/workspace/new/");
  assert.deepEqual([...kept.keys()], ["/workspace/x.bin", "/workspace/new/data.bin"]);
  assert.equal(server.arrived.at(-1)?.query.get("mode"), "0640");
  const down = join(place, "down");
  assert.equal(await sandbox.files.download("/workspace/x.bin", `${down}/`), join(down, "x.bin"));
  assert.equal(await sandbox.files.download("/workspace/x.bin", join(down, "y.bin")), join(down, "y.bin"));
  assert.deepEqual(readdirSync(down).sort(), ["x.bin", "y.bin"]);
  assert.ok(readFileSync(join(down, "y.bin")).equals(bytes));
  await assert.rejects(sandbox.files.upload(join(place, "absent"), "/x"), { code: "ENOENT" });
});

test("a directory goes up and comes down as it is, with long names, links and modes", async () => {
  const { sandbox, kept } = await keeping();
  const source = join(place, "source");
  const long = `${"é".repeat(70)}.txt`;
  mkdirSync(join(source, "below", "empty"), { recursive: true });
  writeFileSync(join(source, "run.sh"), "echo hi\n", { mode: 0o755 });
  writeFileSync(join(source, "below", long), "x".repeat(1000));
  writeFileSync(join(source, "none"), "");
  symlinkSync("../run.sh", join(source, "below", "link"));
  assert.ok((await sandbox.files.upload(source, "/workspace/tree")) > 0);
  const names = execFileSync("tar", ["-tf", "-"], { input: kept.get("/workspace/tree"), encoding: "utf8" });
  assert.equal(names.trim().split("\n").length, 7);
  const target = join(place, "target");
  await sandbox.files.download("/workspace/tree", target);
  await sandbox.files.download("/workspace/tree", target);
  assert.equal(readFileSync(join(target, "below", long), "utf8"), "x".repeat(1000));
  assert.equal(statSync(join(target, "run.sh")).mode & 0o777, 0o755);
  assert.equal(readlinkSync(join(target, "below", "link")), "../run.sh");
  assert.ok(lstatSync(join(target, "below", "empty")).isDirectory());
  assert.equal(readFileSync(join(target, "none"), "utf8"), "");
});

test("a target with a slash at its end is a directory to put a directory into", async () => {
  const { sandbox, kept } = await keeping();
  const source = join(place, "one-tree");
  mkdirSync(source);
  writeFileSync(join(source, "a.txt"), "x");
  await sandbox.files.upload(source, "/workspace/new/");
  await sandbox.files.upload(`${source}/.`, "/workspace/other/");
  assert.deepEqual([...kept.keys()], ["/workspace/new/one-tree", "/workspace/other/one-tree"]);
  const down = join(place, "into");
  const made = await sandbox.files.download("/workspace/new/one-tree", `${down}/`);
  assert.equal(made, join(down, "one-tree"));
  assert.equal(readFileSync(join(made, "a.txt"), "utf8"), "x");
  assert.equal(await sandbox.files.download("/workspace/new/one-tree", down), down);
  assert.deepEqual(readdirSync(down).sort(), ["a.txt", "one-tree"]);
});

test("refused directories and watches say which path", async () => {
  const { sandbox } = await keeping();
  const isNamed = (error: unknown) => error instanceof Forbidden && error.message.startsWith("/srv/tree: ");
  await assert.rejects(sandbox.files.downloadArchive("/srv/tree"), isNamed);
  await assert.rejects(sandbox.files.watch("/srv/tree").ready, isNamed);
  const refusing = await FakeServer.start((request, response) => {
    if (request.path.endsWith("/tar")) return refuse(response, 403, "forbidden");
    if (!request.path.endsWith("/watch")) return sendJson(response, 200, SANDBOX);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(event("ready", {}) + event("error", { code: "forbidden", error: "no" }));
  });
  const { files } = await Sandbox.connect("sb-1", refusing.options);
  await assert.rejects(files.uploadArchive("/srv/tree", new Uint8Array(1024)), isNamed);
  await assert.rejects(files.watch("/srv/tree")[Symbol.asyncIterator]().next(), isNamed);
});

test("archives of other programs are read", async () => {
  const source = join(place, "source");
  for (const format of ["gnu", "pax", "ustar"]) {
    const hasLong = format !== "ustar";
    const skipped = hasLong ? [] : ["--exclude=*é*"];
    const archive = execFileSync("tar", ["-C", source, `--format=${format}`, ...skipped, "-cf", "-", "."]);
    const target = join(place, format);
    await unpackDirectory(Readable.from([archive.subarray(0, 700), archive.subarray(700)]), target);
    assert.equal(readFileSync(join(target, "run.sh"), "utf8"), "echo hi\n");
    assert.equal(readdirSync(join(target, "below")).length, hasLong ? 3 : 2);
  }
});

async function* archiveOf(...entries: (Partial<TarEntry> & { text?: string })[]): AsyncGenerator<Uint8Array> {
  for (const { text = "", ...entry } of entries) {
    yield* headerOf({ path: "x", kind: "file", mode: 0o644, target: "", ...entry, size: text.length });
    if (text !== "") yield Buffer.concat([Buffer.from(text), Buffer.alloc(512 - text.length)]);
  }
  yield new Uint8Array(1024);
}

test("nothing of a guest's archive leaves the directory", async () => {
  const outside = join(place, "outside");
  const bad: Parameters<typeof archiveOf>[] = [
    [{ path: "../outside", text: "x" }],
    [{ path: outside, text: "x" }],
    [{ path: "link", kind: "symlink", target: "../outside" }],
    [{ path: "link", kind: "symlink", target: place }],
    [{ path: "hard", kind: "hardlink", target: "../data.bin" }],
    [{ path: "a/../../outside", text: "x" }],
  ];
  for (const [index, entries] of bad.entries()) {
    const target = join(place, `bad-${index}`);
    await assert.rejects(unpackDirectory(archiveOf(...entries), target), /leads out of it/, JSON.stringify(entries));
    assert.ok(!existsSync(outside));
  }
  // A link that is there already is replaced, not written through, and does not lead elsewhere.
  const target = join(place, "linked");
  mkdirSync(target);
  symlinkSync(outside, join(target, "file"));
  symlinkSync(place, join(target, "dir"));
  await unpackDirectory(archiveOf({ path: "file", text: "x" }), target);
  assert.equal(readFileSync(join(target, "file"), "utf8"), "x");
  await assert.rejects(unpackDirectory(archiveOf({ path: "dir/outside", text: "x" }), target), /leads out of it/);
  assert.ok(!existsSync(outside));
  const cut = Readable.from([...headerOf({ path: "x", kind: "file", mode: 0o644, target: "", size: 9 })]);
  await assert.rejects(unpackDirectory(cut, target), AnswerLost);
});
