// Tools and agents in a real sandbox: what a fake daemon cannot show.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NotFound, Sandbox, Snapshot, type ToolResult } from "dayfly";
import { Agent, type AgentEvent, type Message, type ModelFunction, type TurnWish } from "dayfly/agents";

const apiUrl = process.env["DAYFLY_API_URL"] ?? "";
const isRequired = process.env["DAYFLY_REQUIRE_VM"] === "1";
const skip = apiUrl === "" && !isRequired && "DAYFLY_API_URL is not set: there is no daemon to run this against";
const live = (name: string, work: () => Promise<void>): void => void test(name, { skip, timeout: 300_000 }, work);

function ok({ text, isError }: ToolResult): string {
  assert.ok(!isError, text);
  return text;
}

live("files and searches, as a model sees them", async () => {
  await using sandbox = await Sandbox.create({ template: "code-interpreter", ttlSeconds: 600 });
  const tools = sandbox.tools();
  await tools.writeFile({ path: "site/a.txt", content: "one\ntwo é\n" });
  assert.equal(await tools.readFile({ path: "site/a.txt" }), "lines 1-2 of 2\ncontent:\n1\tone\n2\ttwo é");
  ok(await tools.call("edit_file", { path: "site/a.txt", old_text: "two", new_text: "2" }));
  assert.match(await tools.readFile({ path: "site/a.txt", firstLine: 2 }), /content:\n2\t2 é$/);
  assert.match(await tools.listFiles({ depth: 2 }), /site\/a\.txt \(/);
  await tools.runShell({ command: "touch empty; head -c 100 /dev/zero > zeros; ln -s site/a.txt link" });
  assert.equal(await tools.readFile({ path: "empty" }), "the file is empty");
  assert.match(await tools.readFile({ path: "zeros" }), /^error: zeros is not a text file/);
  ok(await tools.call("edit_file", { path: "link", old_text: "one", new_text: "1" }));
  assert.match(await tools.runShell({ command: "test -L link && head -n 1 site/a.txt" }), /stdout:\n1$/);
  assert.match(await tools.readFile({ path: "nowhere" }), /^error: nowhere: /);
  await tools.writeFile({ path: "src/a b.py", content: "import os\nx = '$(id)'\n" });
  await tools.runShell({ command: "touch \"$(printf 'src/new\\nline.py')\"; echo import > src/new*line.py" });
  const found = await tools.searchFiles({ pattern: "^import", path: "src", name: "*.py" });
  assert.match(found, /^2 matches\nmatches:\n/);
  assert.ok(found.includes('"src/a b.py":1:import os') && found.includes('"src/new\\nline.py":1:import'), found);
  assert.match(await tools.searchFiles({ pattern: "import", path: "src", maxMatches: 1 }), /^the first 1 matches/);
  assert.match(await tools.searchFiles({ pattern: "nothing of that" }), /^no matches/);
  assert.match(await tools.searchFiles({ pattern: "(", path: "src" }), /^error: /);
});

live("code, commands, copies, moments and ports", async () => {
  await using sandbox = await Sandbox.create({ template: "code-interpreter", ttlSeconds: 600 });
  const tools = sandbox.tools();
  assert.match(await tools.runCode({ code: "x = 41\nx + 1" }), /result:\n42$/);
  assert.match(await tools.runCode({ code: "y" }), /^error NameError, /);
  assert.match(await tools.runShell({ command: "sleep 60", timeoutSeconds: 1 }), /^timeout after 1\.0 s/);
  assert.match(await tools.runCode({ code: "import time; time.sleep(60)", timeoutSeconds: 1 }), /^timeout/);
  const cut = await tools.runShell({ command: "yes 0123456789 | head -c 5000000" });
  assert.ok(cut.split("\nstdout:\n")[0]?.includes("\ncut: ") && cut.length < 20_000);
  assert.match(await tools.runShell({ command: "echo x > made" }), /\nchanged files: \/workspace\/made/);
  const copies = await tools.fork({ commands: ["echo first > made; cat made", "exit 7"] });
  assert.match(copies, /\ncopy 1: exit code 0, [^]*\ncopy 2: exit code 7[^]*copy 1 stdout:\nfirst$/);
  await tools.runCode({ code: "moment = 1" });
  const kept = await tools.call("snapshot", {});
  await tools.runCode({ code: "moment = 2" });
  ok(await tools.call("rollback", kept.structured ?? {}));
  assert.match(await tools.runCode({ code: "print(moment)" }), /stdout:\n1$/);
  await (await Snapshot.get(String(kept.structured?.["snapshot_id"]))).delete();
  await tools.runShell({ command: "nohup python3 -m http.server 8000 >/dev/null 2>&1 &" });
  const link = await tools.call("expose_port", { port: 8000 });
  ok(link);
  assert.equal((await fetch(String(link.structured?.["path_url"]))).status, 200);
  const shell = sandbox.tools("bash");
  await shell.call("bash", { command: "name=Ann" });
  assert.match((await shell.call("bash", { command: "echo $name" })).text, /stdout:\nAnn$/);
  ok(await shell.call("bash", { restart: true }));
  assert.match((await shell.call("bash", { command: "echo [$name]" })).text, /stdout:\n\[\]$/);
});

const code = (text: string, id: string): TurnWish => ({ calls: [{ id, name: "run_code", arguments: { code: text } }] });

/** A model that says its turns, and at the end what the last call gave. */
function script(...turns: TurnWish[]): ModelFunction {
  return (messages: readonly Message[]) => {
    const last = messages.at(-1);
    return turns.shift() ?? { text: last?.kind === "results" ? (last.results.at(-1)?.text ?? "") : "" };
  };
}

live("three steps are undone with files and memory, and nothing is left", async () => {
  const model = script(
    code("count = 0; open('steps', 'w').write('zero')", "a"),
    code("count += 1", "b"),
    { calls: [{ id: "c", name: "write_file", arguments: { path: "steps", content: "changed" } }] },
    code("count += 1", "d"),
    { calls: [{ id: "u", name: "undo", arguments: { steps: 3 } }] },
    code("print(count, open('steps').read())", "e"),
  );
  const result = await new Agent(model, { checkpoint: "step", undoTool: true }).run("try it");
  assert.equal(result.reason, "done");
  assert.match(result.text, /stdout:\n0 zero$/);
  assert.deepEqual(await Snapshot.list({ sandboxId: result.sandboxId }), []);
  await assert.rejects(Sandbox.connect(result.sandboxId), NotFound);
});

live("a sandbox that sleeps between turns wakes, with its state", async () => {
  const agent = new Agent(script(code("number = 1729", "a"), code("number", "b")));
  const onEvent = async ({ kind }: AgentEvent): Promise<void> => {
    if (kind === "call_ended") await (await Sandbox.connect(agent.sandboxId ?? "")).hibernate();
  };
  assert.match((await agent.run("remember", { onEvent })).text, /result:\n1729$/);
});

live("a cancelled run leaves nothing", async () => {
  const stop = new AbortController();
  const agent = new Agent(() => ({ calls: [{ id: "a", name: "run_shell", arguments: { command: "sleep 600" } }] }));
  const onEvent = ({ kind }: AgentEvent): void => {
    if (kind === "call_began") setTimeout(() => stop.abort(new Error("enough")), 500);
  };
  await assert.rejects(agent.run("sleep", { onEvent, signal: stop.signal }), /^Error: enough$/);
  assert.equal(agent.transcript.stop, "cancelled");
  await assert.rejects(Sandbox.connect(agent.sandboxId ?? ""), NotFound);
});

const KILLED = `
import { Agent } from "dayfly/agents";
const sleep = { calls: [{ id: "a", name: "run_shell", arguments: { command: "sleep 600" } }] };
const agent = new Agent(() => sleep, { template: "base", ttlSeconds: 20, checkpoint: "step" });
await agent.run("sleep", { onEvent: ({ kind }) => console.log(kind, agent.sandboxId) });
`;

live("of a killed client nothing is left after the TTL", async () => {
  const cwd = fileURLToPath(new URL("../../", import.meta.url));
  const client = spawn(process.execPath, ["--input-type=module", "-e", KILLED], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  let id = "";
  for await (const line of createInterface({ input: client.stdout })) {
    const [kind, sandboxId = ""] = line.split(" ");
    id = sandboxId;
    if (kind === "call_began") client.kill("SIGKILL");
  }
  if (client.exitCode === null && client.signalCode === null) await once(client, "exit");
  await Sandbox.connect(id);
  for (const start = Date.now(); Date.now() - start < 60_000; ) {
    const isGone = await Sandbox.connect(id).then(() => false, (error: unknown) => error instanceof NotFound);
    if (isGone && (await Snapshot.list({ sandboxId: id })).length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.fail("the sandbox or its snapshots are still there");
});
