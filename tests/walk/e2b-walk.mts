// The walk of docs/walk.md with E2B: compiled against its package by .ci/lines.py, not run.
import { writeFile } from "node:fs/promises";
import { Sandbox } from "@e2b/code-interpreter";

const sandbox = await Sandbox.create();
// A chart
const chart = await sandbox.runCode("import matplotlib.pyplot as plt; plt.plot([1, 4, 2]); plt.show()");
await writeFile("chart.png", Buffer.from(chart.results[0]?.png ?? "", "base64"));
// A session that remembers
await sandbox.runCode("total = 40");
console.log((await sandbox.runCode("total + 2")).text);
// A fork: two ways on from here
const [left, right] = await sandbox.fork({ count: 2 });
if (!(left instanceof Sandbox)) throw left;
if (!(right instanceof Sandbox)) throw right;
console.log((await left.runCode("total * 2")).text);
console.log((await right.runCode("total - 1")).text);
await Promise.all([left.kill(), right.kill()]);
// An undo
const before = await sandbox.createSnapshot();
await sandbox.runCode("del total");
await sandbox.kill();
const restored = await Sandbox.create(before.snapshotId);
console.log((await restored.runCode("total")).text);
// A preview
await restored.commands.run("python3 -m http.server 8000", { background: true });
let page = await fetch(`https://${restored.getHost(8000)}`);
while (!page.ok) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  page = await fetch(`https://${restored.getHost(8000)}`);
}
console.log(page.status);
await restored.kill();
