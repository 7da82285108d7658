// The time of a step, and of a run, ends tools that read and change files, whatever the other side does.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolName } from "dayfly";
import { calling, DONE, Script, world } from "./agent-world.js";
import { ONE, type Reply } from "./fake-daemon.js";
import { refuse } from "./fake-server.js";

const EDITOR = "str_replace_based_edit_tool";
const SLOW: [name: string, given: Record<string, unknown>, tool: ToolName][] = [
  ["read_file", { path: "/f" }, "read_file"],
  ["write_file", { path: "/f", content: "x" }, "write_file"],
  ["edit_file", { path: "/f", old_text: "a", new_text: "b" }, "edit_file"],
  ["list_files", {}, "list_files"],
  [EDITOR, { command: "view", path: "/f" }, "text_editor"],
  [EDITOR, { command: "insert", path: "/f", insert_line: 0, insert_text: "x" }, "text_editor"],
];

const HANGING: Record<string, Reply> = {
  "says nothing": () => undefined,
  "sends piece by piece": (_, response) => {
    const timer = setInterval(() => response.write(" "), 10);
    response.once("close", () => clearInterval(timer));
  },
  "asks for a pause": (_, response) => {
    response.setHeader("retry-after", "10");
    refuse(response, 503, "node_unavailable");
  },
};

for (const [name, given, tool] of SLOW) {
  test(`${name} of ${JSON.stringify(given)} ends with the time of its call`, { timeout: 20_000 }, async () => {
    const { daemon, make } = await world();
    for (const [how, reply] of Object.entries(HANGING)) {
      for (const [method, path] of [["GET", "fs"], ["PUT", "fs"], ["GET", "fs/dir"], ["GET", "fs/stat"]]) {
        daemon.on(method ?? "", `${ONE}/${path}`, reply);
      }
      const model = new Script(calling({ id: "c", name, arguments: given }), DONE);
      const step = await make(model, { tools: [tool], stepTimeoutSeconds: 0.1 }).run("do it");
      assert.equal(step.reason, "done");
      assert.match(model.results()[0]?.text ?? "", /^error: the call took longer than 0\.1 s/, how);
    }
    const endless = new Script(calling({ id: "c", name, arguments: given }));
    const whole = await make(endless, { tools: [tool], budget: { seconds: 0.2 } }).run("do it");
    assert.equal(whole.reason, "seconds");
    assert.ok(daemon.isDeleted);
  });
}
