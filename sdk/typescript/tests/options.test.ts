// Options that nobody knows: every call that takes options refuses them before anything is sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Execution, me, Sandbox, SandboxPool, Snapshot, templates, Volume } from "dayfly";
import { FakeServer, SANDBOX, sendJson } from "./fake-server.js";

test("no call ignores an option that it does not know", async () => {
  const server = await FakeServer.start((request, response) => {
    if (request.path === "/v1/volumes/v") return sendJson(response, 200, { name: "v", size_mb: 1 });
    if (request.path === "/v1/snapshots/s") return sendJson(response, 200, { id: "s", sandbox_id: "sb-1" });
    return sendJson(response, 200, SANDBOX);
  });
  const wrong = { strange: 1 } as object;
  const to = { ...server.options, ...wrong };
  const sandbox = await Sandbox.connect("sb-1", server.options);
  const volume = await Volume.get("v", server.options);
  const snapshot = await Snapshot.get("s", server.options);
  const { files, network } = sandbox;
  const process = sandbox.process("ex-1");
  const context = sandbox.context("default");
  const execution = Reflect.construct(Execution, [{ results: [], stdout: "", stderr: "" }]) as Execution;
  const before = server.arrived.length;
  const calls: (() => unknown)[] = [
    ...[() => new Client(to), () => new SandboxPool({ size: 1, ...to }), () => me(to), () => templates(to)],
    ...[() => Sandbox.create(to), () => Sandbox.connect("sb-1", to), () => Sandbox.list(to)],
    ...[() => Snapshot.get("s", to), () => Snapshot.list(to), () => snapshot.createSandbox(wrong)],
    ...[() => Volume.create("v", { sizeGb: 1, ...to }), () => Volume.getOrCreate("v", { sizeGb: 1, ...to })],
    ...[() => Volume.get("v", to), () => Volume.list(to), () => Volume.delete("v", to)],
    ...[() => volume.mount("/v", wrong), () => volume.grow({ sizeGb: 2, ...wrong })],
    ...[() => sandbox.exec("x", wrong), () => sandbox.execBackground("x", wrong), () => sandbox.pty(wrong)],
    ...[() => sandbox.run("x", wrong), () => sandbox.runCode("x", wrong), () => context.run("x", wrong)],
    ...[() => sandbox.createContext("python", wrong), () => sandbox.fork(wrong), () => sandbox.forkMany(2, wrong)],
    ...[() => sandbox.forkTree(2, wrong), () => sandbox.promote(wrong), () => sandbox.explore(["x"], wrong)],
    ...[() => sandbox.snapshot(wrong), () => sandbox.setLifecycle(wrong), () => sandbox.waitForPort(1, wrong)],
    ...[() => sandbox.portLink(1, wrong), () => network.log(wrong), () => execution.forModel(wrong)],
    ...[() => process.attach(wrong), () => process.wait(wrong), () => process.outputBytes("stdout", wrong)],
    ...[() => process.sendStdin("x", wrong), () => files.read("x", wrong), () => files.readText("x", wrong)],
    ...[() => files.readStream("x", wrong), () => files.write("x", "", wrong), () => files.list("x", wrong)],
    ...[() => files.walk("x", wrong).next(), () => files.stat("x", wrong), () => files.exists("x", wrong)],
    ...[() => files.remove("x", wrong), () => files.mkdir("x", wrong), () => files.move("x", "y", wrong)],
    ...[() => files.chmod("x", "0600", wrong), () => files.watch("x", wrong), () => files.changes("x", wrong)],
    ...[() => files.upload("x", "y", wrong), () => files.download("x", "y", wrong)],
    ...[() => files.downloadArchive("x", wrong), () => files.uploadArchive("x", "", wrong)],
  ];
  for (const call of calls) {
    await assert.rejects(async () => await call(), /^TypeError: .* has no option strange$/, String(call));
  }
  await assert.rejects(async () => await Sandbox.list({ stauts: "running" } as object), /did you mean status\?/);
  assert.equal(server.arrived.length, before);
});
