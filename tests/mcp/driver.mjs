// Drives `dayfly mcp` and `/mcp` with the published TypeScript client. Every case prints one line of
// JSON. Needs DAYFLY_API_URL, DAYFLY_API_KEY, DAYFLY (the program) and MCP_NODE (where the package is).

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { DAYFLY_API_URL: url, DAYFLY_API_KEY: key, DAYFLY: program, MCP_NODE: place } = process.env;
const require = createRequire(join(place, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${name}`)));
const { Client } = await load("index.js");
const { StdioClientTransport } = await load("stdio.js");
const { StreamableHTTPClientTransport } = await load("streamableHttp.js");
const { steps } = JSON.parse(readFileSync(new URL("steps.json", import.meta.url), "utf8"));
const patience = { timeout: 600_000 };

async function api(method, path) {
  const response = await fetch(url + path, { method, headers: { authorization: `Bearer ${key}` } });
  const text = await response.text();
  return text === "" ? undefined : JSON.parse(text);
}

async function ownSandboxes() {
  const { items } = await api("GET", "/v1/sandboxes?limit=500");
  return items.filter((item) => item.metadata.client === "mcp").map((item) => item.id);
}

async function goneAgain(before) {
  const end = Date.now() + 60_000;
  for (;;) {
    const left = (await ownSandboxes()).filter((id) => !before.includes(id));
    if (left.length === 0) return;
    if (Date.now() > end) throw new Error(`left: ${left}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function check(holds, where) {
  if (!holds) throw new Error(where);
}

function filled(value, kept) {
  if (typeof value === "string" && value.startsWith("$")) return kept[value.slice(1)];
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, kept)]));
  }
  return value;
}

async function connected(transport, work) {
  const client = new Client({ name: "driver", version: "1" });
  await client.connect(transport);
  try {
    return await work(client);
  } finally {
    await transport.terminateSession?.();
    await client.close();
  }
}

async function walk(client) {
  const before = await ownSandboxes();
  check((await client.listTools()).tools.length === 15, "fifteen tools");
  await client.callTool({ name: "list_files", arguments: {} }, undefined, patience);
  const kept = { sandbox: (await ownSandboxes()).find((id) => !before.includes(id)) };
  for (const [number, step] of steps.entries()) await oneStep(client, number, step, kept);
}

async function oneStep(client, number, step, kept) {
  const request = { name: step.tool, arguments: filled(step.arguments, kept) };
  const result = await client.callTool(request, undefined, patience);
  const text = result.content.find((block) => block.type === "text").text;
  const where = `step ${number}, ${step.tool}: ${JSON.stringify(text.slice(0, 300))}`;
  check(new RegExp(step.text.replaceAll("\\$sandbox", kept.sandbox)).test(text), where);
  check((result.isError ?? false) === (step.is_error ?? false), where);
  for (const [kind, count] of Object.entries(step.blocks ?? {})) {
    check(result.content.filter((block) => block.type === kind).length === count, where);
  }
  if (step.read_link !== undefined) {
    const link = result.content.find((block) => block.type === "resource_link");
    const read = await client.readResource({ uri: link.uri });
    check(new RegExp(step.read_link).test(read.contents[0].text), where);
  }
  for (const [name, member] of Object.entries(step.keep ?? {})) {
    kept[name] = result.structuredContent[member];
    if (name === "url") check((await (await fetch(kept[name])).text()).includes("hello.py"), where);
  }
}

const stdio = () =>
  new StdioClientTransport({
    command: program,
    args: ["mcp"],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DAYFLY_API_URL: url, DAYFLY_API_KEY: key },
  });
const http = (bearer = key) =>
  new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${bearer}` } },
  });

async function everyTool(transport) {
  const before = await ownSandboxes();
  await connected(transport, walk);
  await goneAgain(before);
}

async function aWrongKeyIsRefused() {
  let refused = false;
  await connected(http("df_nobody"), async () => {}).catch(() => {
    refused = true;
  });
  check(refused, "a wrong key connected");
}

const cases = [
  ["every tool over stdio", () => everyTool(stdio())],
  ["every tool over HTTP in a session", () => everyTool(http())],
  ["a wrong key is refused", aWrongKeyIsRefused],
];

const wanted = process.argv.slice(2);
let failures = 0;
for (const [name, run] of cases) {
  if (wanted.length > 0 && !wanted.some((word) => `typescript: ${name}`.includes(word))) continue;
  const began = Date.now();
  let outcome = { passed: true };
  try {
    await run();
  } catch (error) {
    failures += 1;
    outcome = { passed: false, error: String(error) };
  }
  const seconds = Math.round((Date.now() - began) / 100) / 10;
  console.log(JSON.stringify({ client: "typescript", case: name, seconds, ...outcome }));
}
process.exit(failures === 0 ? 0 : 1);
