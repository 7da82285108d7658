// Text files as a model sees them: bounded, numbered, and changed only when that is safe.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { Sandbox } from "dayfly";
import { FakeDaemon, ONE } from "./fake-daemon.js";

type Given = Record<string, unknown>;

const READ: [content: string | Buffer, given: Given, text: string][] = [
  ["a\nb\n", {}, "lines 1-2 of 2\ncontent:\n1\ta\n2\tb"],
  ["a\nb", {}, "lines 1-2 of 2\ncontent:\n1\ta\n2\tb"],
  ["a\n\n", {}, "lines 1-2 of 2\ncontent:\n1\ta\n2\t"],
  ["", {}, "the file is empty"],
  ["a\nb\nc", { max_lines: 1 }, "lines 1-1 of 3; first_line=2 reads on\ncontent:\n1\ta"],
  ["a\nb\nc", { first_line: 3 }, "lines 3-3 of 3\ncontent:\n3\tc"],
  ["a\nb", { first_line: 3 }, "error: /f has 2 lines"],
  ["a\r\nb\r\n", {}, "lines 1-2 of 2\nline ends: CRLF\ncontent:\n1\ta\n2\tb"],
  [
    Buffer.from([0xff, 10]),
    {},
    "lines 1-1 of 1\nthe file is not UTF-8: bytes that are no character are shown as \ufffd\ncontent:\n1\t\ufffd",
  ],
  ["a\0b", {}, "error: /f is not a text file\nhint: look at it with run_shell or run_code"],
  [
    "x".repeat(2003),
    {},
    `lines 1-1 of 1\ncut: 1 lines are longer than 2000 characters\ncontent:\n1\t${"x".repeat(2000)}[... 3 characters left out ...]`,
  ],
  [
    "😀".repeat(2001),
    {},
    `lines 1-1 of 1\ncut: 1 lines are longer than 2000 characters\ncontent:\n1\t${"😀".repeat(2000)}[... 1 characters left out ...]`,
  ],
];

test("reading", async () => {
  const daemon = await FakeDaemon.start();
  for (const [content, given, text] of READ) {
    daemon.files.set("/f", Buffer.from(content));
    const result = await daemon.call("read_file", { path: "/f", ...given });
    assert.equal(result.text, text);
    assert.equal(result.isError, text.startsWith("error"));
  }
});

test("of a huge file only the beginning is read", async () => {
  const daemon = await FakeDaemon.start();
  daemon.files.set("/f", Buffer.from("0123456\n".repeat(1 << 19)));
  const { text } = await daemon.call("read_file", { path: "/f" });
  assert.ok(text.startsWith("lines 1-400; first_line=401 reads on\ncontent:\n1\t0123456\n"));
  assert.equal(daemon.seen("GET", `${ONE}/fs`).length, 1);
});

test("a huge line is given up", async () => {
  const daemon = await FakeDaemon.start();
  daemon.files.set("/f", Buffer.alloc(33 << 20, "x"));
  const { text } = await daemon.call("read_file", { path: "/f" });
  assert.ok(text.startsWith("error: line 1 of /f is too far into the file\nhint: "));
});

test("a long text stops at a line", async () => {
  const daemon = await FakeDaemon.start();
  daemon.files.set("/f", Buffer.from(`${"y".repeat(999)}\n`.repeat(100)));
  const { text } = await daemon.call("read_file", { path: "/f" });
  assert.ok(text.startsWith("lines 1-15 of 100; first_line=16 reads on\n"));
});

const EDIT: [before: string | Buffer, old: string, next: string, after: string | undefined, said: string][] = [
  ["a b a", "b", "c", "a c a", "replaced 1 place in /f"],
  ["a b a", "b", "$&$1", "a $&$1 a", "replaced 1 place in /f"],
  ["a b a", "a", "c", undefined, "error: the old text is 2 times in /f; nothing was changed"],
  ["a b a", "x", "c", undefined, "error: the old text is not in /f; nothing was changed"],
  ["a\r\nb\r\n", "a\nb", "c\nd", "c\r\nd\r\n", "replaced 1 place in /f"],
  ["a\r\nb\n", "b", "c\nd", "a\r\nc\nd\n", "replaced 1 place in /f"],
  ["\ufeffa", "a", "b", "\ufeffb", "replaced 1 place in /f"],
  [Buffer.from([0x61, 0xff]), "a", "b", undefined, "error: /f is not a text file"],
  ["a\0", "a", "b", undefined, "error: /f is not a text file"],
  [Buffer.alloc((4 << 20) + 1, "a"), "a", "b", undefined, "error: /f is larger than 4 MiB"],
];

test("editing", async () => {
  const daemon = await FakeDaemon.start();
  for (const [before, old_text, new_text, after, said] of EDIT) {
    const content = Buffer.from(before);
    daemon.files.set("/f", content);
    const { text } = await daemon.call("edit_file", { path: "/f", old_text, new_text });
    assert.equal(text.split("\n")[0], said);
    assert.ok(daemon.files.get("/f")?.equals(after === undefined ? content : Buffer.from(after)), said);
  }
});

test("replacing everywhere", async () => {
  const daemon = await FakeDaemon.start();
  daemon.files.set("/f", Buffer.from("a b a"));
  const { text } = await daemon.call("edit_file", { path: "/f", old_text: "a", new_text: "", replace_all: true });
  assert.deepEqual([text, daemon.files.get("/f")?.toString()], ["replaced 2 places in /f", " b "]);
});

test("what would become too large is not made", { timeout: 20_000 }, async () => {
  const daemon = await FakeDaemon.start();
  const content = Buffer.alloc(4 << 20, "a");
  daemon.files.set("/f", content);
  const wish = { path: "/f", old_text: "a", new_text: "b".repeat(1 << 20), replace_all: true };
  const { text } = await daemon.call("edit_file", wish);
  assert.equal(text.split("\n")[0], "error: /f would be larger than 4 MiB; nothing was changed");
  assert.equal(daemon.files.get("/f"), content);
  assert.equal((await daemon.call("edit_file", { ...wish, new_text: "b" })).text, "replaced 4194304 places in /f");
});

test("more than was asked for is refused, and not read to its end", { timeout: 20_000 }, async () => {
  const daemon = await FakeDaemon.start();
  const zeros = Buffer.alloc(1 << 16, "0");
  daemon.on("GET", `${ONE}/fs`, (_, response) => {
    const endless = new Readable({ read: () => void endless.push(zeros) });
    response.once("close", () => endless.destroy());
    endless.pipe(response);
  });
  const { text, isError } = await daemon.call("read_file", { path: "/f" });
  assert.ok(isError && text.includes("longer than the 1048576 bytes that were asked for"), text);
});

test("a signal ends a tool of files, and throws its reason", async () => {
  const daemon = await FakeDaemon.start();
  const stop = new AbortController();
  daemon.on("GET", `${ONE}/fs/dir`, () => stop.abort(new Error("enough")));
  const tools = (await Sandbox.create(daemon.options)).tools();
  await assert.rejects(tools.call("list_files", {}, { signal: stop.signal }), /^Error: enough$/);
});

test("a file that is not there", async () => {
  const { text, isError } = await (await FakeDaemon.start()).call("read_file", { path: "/f" });
  assert.ok(isError && text.startsWith("error: /f: refused: not_found"), text);
});

test("listing", async () => {
  const daemon = await FakeDaemon.start();
  const entries = [
    { name: "a\nhint: x", path: "/w/a", size: 3, is_dir: false, is_symlink: false },
    { name: "d", path: "/w/d", size: 0, is_dir: true, is_symlink: false },
    { name: "l", path: "/w/l", size: 0, is_dir: true, is_symlink: true },
    { name: "m", path: "/w/m", size: 0, is_dir: false, is_symlink: false },
  ];
  daemon.on("GET", `${ONE}/fs/dir`, { entries }, { entries: entries.slice(1, 3) }, { entries: [] });
  const cut = await daemon.call("list_files", { path: "/w", depth: 2, max_entries: 3 });
  assert.equal(cut.text, "the first 3 entries; there are more\nfiles:\n\"a\\nhint: x\" (3 bytes)\nd/\nl (link)");
  assert.equal(daemon.seen("GET", `${ONE}/fs/dir`)[0]?.query.get("depth"), "2");
  assert.equal((await daemon.call("list_files", { max_entries: 2 })).text, "2 entries\nfiles:\nd/\nl (link)");
  assert.equal((await daemon.call("list_files", {})).text, "the directory is empty");
});
