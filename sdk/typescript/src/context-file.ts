/**
 * What `dayfly login` has written down, and what a daemon on this host has written for its group. The
 * same files that the command line reads, with the same checks.
 */

import { InvalidSettings } from "./failures.js";
import { builtIn, variable } from "./runtime.js";
import { parseToml, type TomlTable, type TomlValue } from "./toml.js";

/** A server, and its key if it is known. */
export interface FoundServer {
  url: string;
  key: string | undefined;
}

/** Where a daemon of this host writes how its group reaches it. */
const LOCAL_ACCESS = "/run/dayfly/local.json";
/** Permission bits of everybody but the owner. */
const OTHERS = 0o077;

/** The current context, or `undefined` when there is none. */
export async function currentContext(): Promise<FoundServer | undefined> {
  const path = await contextPath();
  const file = path === undefined ? undefined : await readFile(path, variable("DAYFLY_CONFIG") !== undefined);
  if (path === undefined || file === undefined) return undefined;
  const content = parse(path, file.text);
  const { current } = content;
  if (typeof current !== "string") return undefined;
  const contexts = table(content["contexts"]);
  const context = table(contexts[current]);
  const { url, key } = context;
  if (typeof url !== "string") throw new InvalidSettings(`no context ${JSON.stringify(current)} in ${path}`);
  if (Object.values(contexts).some((one) => table(one)["key"] !== undefined)) checkMode(path, file.mode);
  return { url, key: typeof key === "string" ? key : await keyOfFile(context["key_file"], path) };
}

/** What a daemon on this host offers to this user, or `undefined`. */
export async function localAccess(path = LOCAL_ACCESS): Promise<FoundServer | undefined> {
  const files = await builtIn("node:fs/promises");
  let text: string;
  try {
    if (files === undefined) return undefined;
    text = await files.readFile(path, "utf8");
  } catch (error) {
    // Not there, or not for this user: neither is a mistake.
    if (["ENOENT", "EACCES", "ENOTDIR"].includes(codeOf(error))) return undefined;
    throw new InvalidSettings(`cannot read ${path} (${codeOf(error)})`);
  }
  const { url, key } = parseJson(text);
  if (typeof url === "string" && typeof key === "string") return { url, key };
  throw new InvalidSettings(`${path} is not what a dayflyd of this version writes`);
}

async function contextPath(): Promise<string | undefined> {
  const chosen = variable("DAYFLY_CONFIG");
  if (chosen !== undefined) return chosen;
  const home = variable("HOME");
  const directory = variable("XDG_CONFIG_HOME") ?? (home === undefined ? undefined : `${home}/.config`);
  return directory === undefined ? undefined : `${directory}/dayfly/config.toml`;
}

/** A key of its own file, which is named relative to the directory of the context file. */
async function keyOfFile(name: TomlValue | undefined, contextFile: string): Promise<string | undefined> {
  if (typeof name !== "string") return undefined;
  const home = variable("HOME");
  const path = await builtIn("node:path");
  const isOfHome = name.startsWith("~/") && home !== undefined;
  const target = isOfHome ? `${home}/${name.slice(2)}` : (path?.resolve(contextFile, "..", name) ?? name);
  const file = await readFile(target, true);
  if (file === undefined) return undefined;
  checkMode(target, file.mode);
  return file.text.trim();
}

/** The text and the mode of the same open file, so that neither can be swapped in between. */
async function readFile(path: string, isNeeded: boolean): Promise<{ text: string; mode: number } | undefined> {
  const files = await builtIn("node:fs/promises");
  if (files === undefined) return undefined;
  try {
    const file = await files.open(path, "r");
    try {
      const { mode } = await file.stat();
      return { text: await file.readFile("utf8"), mode };
    } finally {
      await file.close();
    }
  } catch (error) {
    const isAbsent = ["ENOENT", "ENOTDIR"].includes(codeOf(error));
    if (isAbsent && !isNeeded) return undefined;
    throw new InvalidSettings(isAbsent ? `${path} does not exist` : `cannot read ${path} (${codeOf(error)})`);
  }
}

function checkMode(path: string, mode: number): void {
  // On Windows the bits say nothing about who can read.
  if (process.platform === "win32" || (mode & OTHERS) === 0) return;
  throw new InvalidSettings(`${path} holds a key and others can read it`, `chmod 600 ${path}`);
}

function parse(path: string, text: string): TomlTable {
  try {
    return parseToml(text);
  } catch (error) {
    throw new InvalidSettings(`${path} is not a context file: ${(error as Error).message}`);
  }
}

function parseJson(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    // The parser's words are kept out: they may quote the key.
    return {};
  }
}

function table(value: TomlValue | undefined): TomlTable {
  return typeof value === "object" ? value : {};
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "unreadable";
}
