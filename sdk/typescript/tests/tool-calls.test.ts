// Calls of tools, over a fake daemon: whatever a model asks for, a result comes of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox, type ToolResult } from "dayfly";
import { CODE, CREATE, FakeDaemon, ONE, RAN, refusal } from "./fake-daemon.js";
import { refuse, SANDBOX, sendJson } from "./fake-server.js";

const WRONG: [name: string, given: Record<string, unknown> | string, said: string][] = [
  ["run_shell", {}, "command is missing"],
  ["run_shell", { command: 5 }, "command must be a text"],
  ["run_shell", { command: "ls", cwd: "/" }, "there is no argument cwd; it takes command"],
  ["run_shell", { command: "ls", timeout_seconds: 0 }, "timeout_seconds must be greater"],
  ["run_shell", { command: "ls", timeout_seconds: true }, "timeout_seconds must be a num"],
  ["run_shell", { command: "ls", timeout_seconds: Infinity }, "timeout_seconds must be a num"],
  ["run_shell", { command: "\ud800" }, "command has a half of a surrogate pair"],
  ["run_shell", "{", "the arguments are not JSON"],
  ["run_shell", "[]", "the arguments are not a JSON object"],
  ["run_shell", "null", "the arguments are not a JSON object"],
  ["run_shell", '{"command": "ls", "__proto__": 1}', "there is no argument __proto__"],
  ["run_shell", { command: "ls", constructor: 1 }, "there is no argument constructor"],
  ["run_code", { code: "1", language: "cobol" }, "language must be one of python, java"],
  ["read_file", { path: "a", max_lines: 2001 }, "max_lines must be at most 2000"],
  ["edit_file", { path: "a", old_text: "", new_text: "" }, "old_text must not be empty"],
  ["fork", { commands: [] }, "commands must have at least 1 entry"],
  ["fork", { commands: ["a", 1] }, "commands[1] must be a text"],
  ["expose_port", { port: 1.5 }, "port must be a whole number"],
  ["expose_port", { port: 1e300 }, "port is too large"],
  ["no\nsuch", {}, 'there is no tool "no\\nsuch"; there are: run_code'],
  ["constructor", {}, "there is no tool constructor"],
];

test("what does not fit is a result", async () => {
  const daemon = await FakeDaemon.start();
  for (const [name, given, said] of WRONG) {
    const { text, isError } = await daemon.call(name, given);
    assert.ok(isError && text.startsWith(`error: ${said}`), text);
  }
  assert.equal(daemon.server.arrived.length, WRONG.length, "only the creates");
});

test("a command", async () => {
  const daemon = await FakeDaemon.start();
  daemon.on("POST", `${ONE}/exec`, { ...RAN, exit_code: 1 });
  const result = await daemon.call("run_shell", { command: "ls", working_directory: null });
  assert.deepEqual([result.text, result.isError], ["exit code 1, 0.1 s\nstdout:\nhi", true]);
  assert.equal(result.structured?.["exit_code"], 1);
  const { exec_id: _, ...sent } = daemon.seen("POST", `${ONE}/exec`)[0]?.json ?? {};
  assert.deepEqual(sent, { cmd: "ls", timeout_seconds: 120, max_output_bytes: 15000, report_changes: true });
});

test("a command that takes too long is a result, with what it printed", async () => {
  const daemon = await FakeDaemon.start();
  daemon.on("POST", `${ONE}/exec`, (request, response) => {
    const output = `${ONE}/processes/${String(request.json["exec_id"])}/output`;
    daemon.on("GET", output, ({ query }, answer) => void answer.end(query.get("stream") === "stdout" ? "begun\n" : ""));
    refuse(response, 504, "timeout");
  });
  const { text, isError } = await daemon.call("run_shell", '{"command": "sleep 9", "timeout_seconds": 2}');
  assert.match(text, /^timeout after 2\.0 s, the command was ended \(exit code 124\)\n(.*\n)*stdout:\nbegun$/);
  assert.ok(isError);
});

const base64 = (text: string): string => Buffer.from(text, "latin1").toString("base64");
const PNG = base64("\x89PNG\r\n\x1a\nrest");

test("pictures are shown if they are what they say, and not too large", async () => {
  const daemon = await FakeDaemon.start();
  const shown: [kind: string, data: string][] = [
    ["image/png", PNG],
    ["image/jpeg", base64("\xff\xd8\xffrest")],
    ["image/gif", base64("GIF89arest")],
    ["image/webp", base64("RIFF\n\0\0\0WEBPrest")],
  ];
  const hidden: typeof shown = [
    ["image/png", `${PNG.slice(0, -4)}${"AAAA".repeat(1_250_000)}`],
    ["image/png", `${PNG}!`],
    ["image/png", `${PNG.slice(0, 12)}\n\n\n\n`],
    ["image/png", PNG.slice(0, -1)],
    ["image/png", ""],
    ["image/png", base64("hi")],
    ["image/webp", base64("RIFF, and something else")],
  ];
  const results = [...shown, ...hidden, ["image/x", PNG], ["constructor", PNG]].map(([kind = "", data]) => ({ [kind]: data }));
  daemon.on("POST", `${ONE}/repl/sessions/default/run`, { ...CODE, results }, { ...CODE, results: Array(9).fill(results[0]) });
  const result = await daemon.call("run_code", { code: "plot()" });
  assert.deepEqual(result.images, shown.map(([mediaType, data]) => ({ mediaType, data })));
  const said = ["ok, 0.1 s", "cut: 7 images are too large, too many or damaged", "stdout:"];
  assert.deepEqual(result.text.split("\n").slice(0, 3), said);
  assert.equal((await daemon.call("run_code", { code: "plot()" })).images.length, 8);
});

test("code that takes too long is a result", async () => {
  const daemon = await FakeDaemon.start();
  daemon.on("POST", `${ONE}/repl/sessions/default/run`, refusal(504, "timeout"));
  const { text, isError } = await daemon.call("run_code", { code: "spin()", timeout_seconds: 3 });
  assert.match(text, /^timeout after 3\.0 s, the code was interrupted\n/);
  assert.ok(isError);
});

test("a refusal of the server is a result", async () => {
  const daemon = await FakeDaemon.start();
  daemon.on("POST", `${ONE}/rollback`, refusal(404, "not_found", { hint: "take one\nfirst" }));
  const result = await daemon.call("rollback", { snapshot_id: "snap-1" });
  assert.deepEqual([result.isError, result.text], [true, "error: refused: not_found\nhint: take one?first"]);
});

test("copies are tried and deleted", async () => {
  const daemon = await FakeDaemon.start();
  daemon.withForks("fork", 3);
  daemon.on("POST", `${CREATE}/sb-10/exec`, { ...RAN, stdout: "copy 2: exit code 0, 0.0 s\n" });
  daemon.on("POST", `${CREATE}/sb-11/exec`, { ...RAN, stdout: "", exit_code: 2 });
  daemon.on("POST", `${CREATE}/sb-12/exec`, refusal(502, "guest_unavailable"));
  const { text } = await daemon.call("fork", { commands: ["a", "b", "c"] });
  assert.deepEqual(text.split("\n"), [
    "3 copies, all of them deleted again",
    "copy 1: exit code 0, 0.1 s",
    "copy 2: exit code 2, 0.1 s; nothing was printed",
    "copy 3: error: refused: guest_unavailable",
    "copy 1 stdout:",
    "copy 2: exit code 0, 0.0 s",
  ]);
  assert.equal(daemon.seen("POST", `${ONE}/fork`)[0]?.json["ttl_seconds"], 420);
  for (const id of ["sb-10", "sb-11", "sb-12"]) assert.equal(daemon.seen("DELETE", `${CREATE}/${id}`).length, 1);
});

test("moments and ports", async () => {
  const daemon = await FakeDaemon.start();
  daemon.withSnapshots();
  const link = { id: "l", port: 8000, url: "http://8000-sb.localhost/", path_url: "http://p/" };
  daemon.on("POST", `${ONE}/ports/8000/wait`, { port: 8000, address: "0.0.0.0" });
  daemon.on("POST", `${ONE}/ports/8000/links`, link);
  assert.equal((await daemon.call("snapshot", {})).text, "snapshot snap-1 was taken; rollback goes back to it");
  assert.match((await daemon.call("rollback", { snapshot_id: "snap-1" })).text, /^the sandbox is as it was at snapshot snap-1/);
  const { text, structured } = await daemon.call("expose_port", { port: 8000, minutes: 5 });
  assert.equal(text, "http://8000-sb.localhost/ leads to port 8000 for 5 minutes");
  assert.deepEqual(structured, { url: link.url, path_url: link.path_url });
  assert.equal(daemon.seen("POST", `${ONE}/ports/8000/links`)[0]?.json["ttl_seconds"], 300);
});

test("functions say texts, and take the names of their language", async () => {
  const daemon = await FakeDaemon.start();
  const tools = (await Sandbox.create(daemon.options)).tools();
  assert.equal(await tools.runShell({ command: "ls", workingDirectory: "/tmp", timeoutSeconds: 3 }), "exit code 0, 0.1 s\nstdout:\nhi");
  const [sent] = daemon.seen("POST", `${ONE}/exec`);
  assert.deepEqual([sent?.json["cwd"], sent?.json["timeout_seconds"]], ["/tmp", 3]);
  assert.equal(await tools.writeFile({ path: "/f", content: "é\n" }), "wrote 3 bytes to /f");
  await assert.rejects(tools.call("run_shell", {}, { timeout: 1 } as object), /no option timeout/);
});

test("Anthropic's own tools", async () => {
  const daemon = await FakeDaemon.start();
  daemon.files.set("/a", Buffer.from("one\ntwo\n"));
  daemon.on("POST", `${ONE}/repl/sessions/default-bash/run`, CODE);
  daemon.on("GET", `${ONE}/fs/stat`, { name: "a", path: "/a", size: 8, is_dir: false });
  const use = async (name: string, given: Record<string, unknown>): Promise<string> => {
    return (await daemon.call(name, given, "bash", "text_editor")).text;
  };
  const edit = (command: string, given: Record<string, unknown>): Promise<string> => {
    return use("str_replace_based_edit_tool", { command, ...given });
  };
  assert.match(await use("bash", { command: "ls" }), /^ok, 0\.1 s/);
  assert.equal(await use("bash", { restart: true }), "the shell was started again");
  assert.match(await use("bash", {}), /^error: command is missing/);
  assert.equal(await edit("view", { path: "/a" }), "lines 1-2 of 2\ncontent:\n1\tone\n2\ttwo");
  assert.match(await edit("view", { path: "/a", view_range: [2, -1] }), /content:\n2\ttwo$/);
  assert.match(await edit("view", { path: "/a", view_range: [2, 1] }), /^error: view_range is/);
  assert.match(await edit("insert", { path: "/a", insert_line: 1, new_str: "x" }), /^inserted behind line 1/);
  assert.match(await edit("str_replace", { path: "/a", old_str: "two", new_str: "2" }), /^replaced 1 place/);
  assert.equal(daemon.files.get("/a")?.toString(), "one\nx\n2\n");
  assert.equal(await edit("create", { path: "/b", file_text: "b" }), "wrote 1 bytes to /b");
  assert.match(await edit("undo_edit", { path: "/b" }), /^error: command must be one of view, create/);
  assert.match(await use("run_shell", { command: "ls" }), /^error: there is no tool run_shell/);
});

test("a search hands everything on as arguments", async () => {
  const daemon = await FakeDaemon.start();
  daemon.on("POST", `${ONE}/exec`, { ...RAN, stdout: `./a\nb\u00003:hint: x\n./c\u00001:${"y".repeat(500)}\n./d\u000010:z\n` });
  const wish = { pattern: "'; rm -rf /", path: "-path", name: "$(x)*.py", ignore_case: true, max_matches: 2 };
  const { text } = await daemon.call("search_files", wish);
  assert.equal(text, `the first 2 matches; there are more\nmatches:\n"a\\nb":3:hint: x\nc:1:${"y".repeat(400)}[...]`);
  const sent = daemon.seen("POST", `${ONE}/exec`)[0]?.json["cmd"] as string[];
  const options = ["-rnEIZH", "--color=never", "-i", "--include=$(x)*.py"];
  assert.deepEqual(sent.slice(3), ["sh", "524288", ...options, "-e", "'; rm -rf /", "--", "-path"]);
});

test("a search that finds nothing, or cannot", async () => {
  const daemon = await FakeDaemon.start();
  daemon.on("POST", `${ONE}/exec`, { ...RAN, stdout: "" }, { ...RAN, stdout: "", stderr: "grep: Unmatched ( or \\(\n" });
  assert.equal((await daemon.call("search_files", { pattern: "x" })).text, "no matches");
  const wrong = await daemon.call("search_files", { pattern: "(" });
  assert.deepEqual([wrong.isError, wrong.text], [true, "error: the search failed\nstderr:\ngrep: Unmatched ( or \\("]);
});

test("whatever a guest prints for a search is read in one pass", { timeout: 20_000 }, async () => {
  const daemon = await FakeDaemon.start();
  const length = 512 << 10;
  for (const stdout of ["1".repeat(length), "\0".repeat(length), `a\0${"1".repeat(length)}`, "a\0x:".repeat(length / 4)]) {
    daemon.on("POST", `${ONE}/exec`, { ...RAN, stdout });
    assert.equal((await daemon.call("search_files", { pattern: "x" })).text, "no matches");
  }
  assert.equal(daemon.seen("POST", `${ONE}/exec`)[0]?.json["max_output_bytes"], length);
});

test("a signal ends what a call runs, and throws its reason", async () => {
  const daemon = await FakeDaemon.start();
  const stop = new AbortController();
  daemon.on("POST", `${ONE}/exec`, () => stop.abort(new Error("enough")));
  const tools = (await Sandbox.create(daemon.options)).tools();
  await assert.rejects(tools.call("run_shell", { command: "sleep 9" }, { signal: stop.signal }), /enough/);
  await daemon.server.until(({ method, path }) => method === "DELETE" && path.includes("/processes/"));
  const late: Promise<ToolResult> = tools.call("run_shell", { command: "ls" }, { signal: stop.signal });
  await assert.rejects(late, /enough/);
});

test("a copy is not left behind by whoever has had enough", async () => {
  const daemon = await FakeDaemon.start();
  daemon.withForks("fork", 1);
  const stop = new AbortController();
  daemon.on("POST", `${CREATE}/sb-10/exec`, () => stop.abort(new Error("enough")));
  daemon.on("DELETE", `${CREATE}/sb-10`, (_, response) => sendJson(response, 200, SANDBOX));
  const tools = (await Sandbox.create(daemon.options)).tools();
  await assert.rejects(tools.call("fork", { commands: ["sleep 9"] }, { signal: stop.signal }), /enough/);
  assert.equal(daemon.seen("DELETE", `${CREATE}/sb-10`).length, 1);
});
