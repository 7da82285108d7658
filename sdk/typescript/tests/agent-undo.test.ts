// Every tool call is a snapshot away from being undone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentEvent, type ToolCall, UndoRefused } from "dayfly/agents";
import { calling, DONE, kinds, Script, shell, world } from "./agent-world.js";
import { CREATE, type FakeDaemon, ONE, refusal } from "./fake-daemon.js";
import { SANDBOX, sendJson } from "./fake-server.js";

const undoing = (steps: number): ToolCall => ({ id: "u", name: "undo", arguments: { steps } });
const several = (count: number): ToolCall[] => Array.from({ length: count }, (_, index) => shell(String(index), `c${index}`));

function rolledBack(daemon: FakeDaemon): unknown[] {
  return daemon.seen("POST", `${ONE}/rollback`).map(({ json }) => json["snapshot_id"]);
}

test("the model undoes three calls", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const looking = { id: "r", name: "list_files", arguments: {} };
  const model = new Script(calling(...several(4)), calling(looking), calling(undoing(3)), DONE);
  const told: AgentEvent[] = [];
  const agent = make(model, { checkpoint: "step", undoTool: true });
  assert.ok((await agent.run("do it", { onEvent: (event) => void told.push(event) })).ok);
  assert.deepEqual(rolledBack(daemon), ["snap-2"]);
  assert.match(model.results()[0]?.text ?? "", /^undone, the earliest first: run_shell, run_shell/);
  assert.deepEqual(told.filter((one) => one.kind === "undone").map(({ calls }) => calls), [3]);
  assert.equal(told.filter(({ kind }) => kind === "checkpoint_taken").length, 4);
  assert.deepEqual(daemon.deletedSnapshots().sort(), ["snap-1", "snap-2", "snap-3", "snap-4"]);
  const [taken] = daemon.seen("POST", `${ONE}/snapshots`);
  assert.equal(taken?.json["retain_seconds"], 3600, "for when this process is killed");
  assert.ok(model.toolNames.includes("undo"));
});

test("more than there are is told", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const model = new Script(calling(shell(), undoing(2), undoing(0)), DONE);
  await make(model, { checkpoint: "step", undoTool: true }).run("do it");
  assert.equal(model.results()[1]?.text, "error: 2 calls cannot be undone, only 1");
  assert.equal(model.results()[2]?.text, "error: steps must be at least 1");
  assert.deepEqual(rolledBack(daemon), []);
});

test("the oldest go first, and that is told", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const model = new Script(calling(...several(3), undoing(3)), DONE);
  const dropped: string[] = [];
  const onEvent = (event: AgentEvent): void => {
    if (event.kind === "checkpoint_dropped") dropped.push(event.snapshotId);
  };
  await make(model, { checkpoint: "step", undoTool: true, maxCheckpoints: 2 }).run("do it", { onEvent });
  assert.deepEqual(dropped, ["snap-1"]);
  const why = "3 calls cannot be undone, only 2; 1 earlier checkpoints were dropped, 2 are kept";
  assert.equal(model.results()[3]?.text, `error: ${why}`);
});

test("what changes nothing has no checkpoint", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const calls = [
    { id: "a", name: "read_file", arguments: { path: "/a" } },
    { id: "b", name: "fork", arguments: { commands: ["ls"] } },
    { id: "c", name: "run_shell", arguments: { cmd: "ls" } },
    { id: "d", name: "nothing", arguments: {} },
  ];
  await make(new Script(calling(...calls), DONE), { checkpoint: "step" }).run("do it");
  assert.equal(daemon.seen("POST", `${ONE}/snapshots`).length, 0);
});

test("without a checkpoint nothing is done", async () => {
  const { daemon, make } = await world();
  daemon.on("POST", `${ONE}/snapshots`, refusal(403, "quota_exceeded"));
  const model = new Script(calling(shell()), DONE);
  await make(model, { checkpoint: "step" }).run("do it");
  assert.match(model.results()[0]?.text ?? "", /^error: no checkpoint could be taken/);
  assert.equal(daemon.seen("POST", `${ONE}/exec`).length, 0);
});

test("what the model took of a sandbox that is deleted is deleted as well", async () => {
  for (const [scope, deleted] of [["task", ["snap-1"]], ["session", []]] as const) {
    const { daemon, make } = await world();
    daemon.withSnapshots();
    const taking = { id: "s", name: "snapshot", arguments: { name: "before" } };
    await make(new Script(calling(taking), DONE), { scope }).run("do it");
    const sent = daemon.seen("POST", `${ONE}/snapshots`).map(({ json }) => json);
    assert.deepEqual(sent, [{ name: "by a tool: before", retain_seconds: 3600 }]);
    assert.deepEqual(daemon.deletedSnapshots(), deleted);
  }
});

test("the caller undoes while it goes on", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const model = new Script(calling(shell("a", "c1"), shell("b", "c2")), DONE);
  const agent = make(model, { checkpoint: "step" });
  const onEvent = async (event: AgentEvent): Promise<void> => {
    if (event.kind === "call_ended" && event.call.id === "c2") await agent.undo(2);
  };
  await agent.run("do it", { onEvent });
  assert.deepEqual(rolledBack(daemon), ["snap-1"]);
  const [results, note] = model.seen[1]?.slice(-2) ?? [];
  assert.equal(results?.kind, "results");
  assert.ok(note?.kind === "user" && note.text.startsWith("[The last 2 tool calls were undone (run_shell, run_shell)"));
});

for (const kind of ["call_began", "checkpoint_taken"] as const) {
  test(`in a listener of ${kind} nothing is undone`, async () => {
    const { daemon, make } = await world();
    daemon.withSnapshots();
    const agent = make(new Script(calling(...several(2)), DONE), { checkpoint: "step" });
    const refused: unknown[] = [];
    const onEvent = async (event: AgentEvent): Promise<void> => {
      if (event.kind === kind) await agent.undo().catch((error: unknown) => refused.push(error));
    };
    assert.ok((await agent.run("do it", { onEvent })).ok);
    assert.deepEqual(refused.map((error) => error instanceof UndoRefused && /call_ended/.test(error.message)), [true, true]);
    assert.deepEqual(rolledBack(daemon), []);
    assert.equal(daemon.seen("POST", `${ONE}/exec`).length, 2);
  });
}

test("a call waits for an undo that nobody waited for", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const order: string[] = [];
  daemon.on("POST", `${ONE}/rollback`, (_, response) => {
    setImmediate(() => {
      order.push("rolled back");
      sendJson(response, 200, SANDBOX);
    });
  });
  const agent = make(new Script(calling(...several(2)), DONE), { checkpoint: "step" });
  const onEvent = (event: AgentEvent): void => {
    if (event.kind === "call_ended" && event.call.id === "c0") void agent.undo();
    if (event.kind === "call_began") order.push(event.call.id);
  };
  await agent.run("do it", { onEvent });
  assert.deepEqual(order, ["c0", "rolled back", "c1"]);
});

test("between calls and their results stands nothing else", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  for (const isCut of [false, true]) {
    const model = new Script(calling(shell()), { ...calling(shell("b", "c2")), isCut }, DONE);
    const agent = make(model, { checkpoint: "step" });
    const onEvent = async (event: AgentEvent): Promise<void> => {
      if (event.kind === "turn_ended" && event.step === 2) await agent.undo();
    };
    const { transcript } = await agent.run("do it", { onEvent });
    const after = isCut ? [] : ["turn"];
    assert.deepEqual(kinds(transcript.messages), ["user", "turn", "results", "turn", "results", "user", ...after]);
  }
});

test("a run that ends right after an undo has its note behind the results", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const agent = make(new Script(calling(shell()), calling(shell("b", "c2"))), { checkpoint: "step" });
  const onEvent = async (event: AgentEvent): Promise<void> => {
    if (event.kind !== "turn_ended" || event.step !== 2) return;
    await agent.undo();
    throw new Error("mine");
  };
  await assert.rejects(agent.run("do it", { onEvent }), /^Error: mine$/);
  assert.deepEqual(kinds(agent.transcript.messages), ["user", "turn", "results", "turn", "results", "user"]);
});

test("the caller undoes afterwards", async () => {
  const { daemon, make } = await world();
  daemon.withSnapshots();
  const model = new Script(calling(shell()), DONE);
  const agent = make(model, { checkpoint: "step", scope: "session", keepCheckpoints: true });
  await assert.rejects(agent.undo(), UndoRefused);
  const { checkpoints } = await agent.run("do it");
  assert.deepEqual(checkpoints, ["snap-1"]);
  assert.equal(await agent.undo(), 1);
  await assert.rejects(agent.undo(), /only 0/);
  await agent.run("again", { transcript: agent.transcript });
  const said = (model.seen.at(-1) ?? []).flatMap((one) => (one.kind === "user" ? [one.text] : []));
  assert.match(said[1] ?? "", /^\[The last tool call was undone/);
  assert.equal(said[2], "again");
  assert.equal(daemon.seen("POST", CREATE).length, 1);
});
