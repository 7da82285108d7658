/** The files that a build takes along, and the form that brings them to the server. */

import { toStream } from "./content.js";
import { InvalidSettings } from "./failures.js";
import { freshKey } from "./ids.js";
import { IgnoreRules } from "./ignore-rules.js";
import { CONTEXT_BYTES_MAX, CONTEXT_FILES_MAX, UPLOAD_WHOLE_BYTES_MAX } from "./limits.js";
import { requireBuiltIn } from "./runtime.js";

const IGNORE_FILE = ".dockerignore";
const MODES_FIELD = "context.modes";
const MODE_DEFAULT = 0o644;
/** In the header of a part, they would be read as something else. */
const UNSENT = /["\\\u0000-\u001f\u007f]/;

/** A file, and its path below the build context, with slashes. @internal */
export interface ContextFile {
  path: string;
  local: string;
  size: number;
  mode: number;
}

/** A body, and its type. @internal */
export interface Form {
  content: Uint8Array | ReadableStream<Uint8Array>;
  length: number;
  type: string;
}

/** A source of `copy` as a path below the build context; that itself is `.`. @internal */
export function relativeSource(context: string, source: string): string {
  const isWindows = typeof process !== "undefined" && process.platform === "win32";
  const slashed = (text: string): string => (isWindows ? text.replaceAll("\\", "/") : text);
  const root = slashed(context).replace(/\/+$/, "");
  const path = slashed(source);
  const isAbsolute = path.startsWith("/") || (isWindows && /^[A-Za-z]:/.test(path));
  const inside = isAbsolute && (path === root || path.startsWith(`${root}/`)) ? path.slice(root.length + 1) : path;
  const found: string[] = [];
  let isOutside = inside.startsWith("/") || (isAbsolute && inside === path);
  for (const part of inside.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") found.push(part);
    else if (found.pop() === undefined) isOutside = true;
  }
  if (isOutside) {
    throw new InvalidSettings(`${JSON.stringify(source)} is outside of ${context}; context names what is copied from`);
  }
  return found.join("/") || ".";
}

/**
 * The files of sources that `.dockerignore` does not hide, by path. Links are followed, and must not lead out of
 * the build context. @internal
 */
export async function contextFiles(context: string, sources: readonly string[]): Promise<ContextFile[]> {
  if (sources.length === 0) return [];
  const fs = await requireBuiltIn("node:fs/promises", "a build context");
  const path = await requireBuiltIn("node:path", "a build context");
  const gathering = new Gathering(fs, path, context, await fs.realpath(context));
  await gathering.readIgnoreFile();
  for (const source of sources) await gathering.add(source);
  return gathering.files;
}

class Gathering {
  readonly #fs: typeof import("node:fs/promises");
  readonly #path: typeof import("node:path");
  readonly #context: string;
  readonly #root: string;
  readonly #found = new Map<string, ContextFile>();
  #rules = new IgnoreRules("");
  #bytes = 0;

  constructor(
    fs: typeof import("node:fs/promises"),
    path: typeof import("node:path"),
    context: string,
    root: string,
  ) {
    this.#fs = fs;
    this.#path = path;
    this.#context = context;
    this.#root = root;
  }

  get files(): ContextFile[] {
    return [...this.#found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async readIgnoreFile(): Promise<void> {
    const local = this.#path.join(this.#context, IGNORE_FILE);
    const text = await this.#fs.readFile(local, "utf8").catch((error: { code?: string }) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (text === undefined) return;
    this.#rules = new IgnoreRules(text);
    // The server reads it as well, and knows all of its rules.
    await this.#take(IGNORE_FILE, local);
  }

  async add(source: string): Promise<void> {
    const path = source === "." ? "" : source;
    const local = this.#path.join(this.#context, source);
    if ((await this.#fs.lstat(local).catch(() => undefined)) === undefined) {
      throw new InvalidSettings(`${JSON.stringify(source)} is not in ${this.#path.resolve(this.#context)}`);
    }
    await this.#walk(path, local, []);
    const isSome = [...this.#found.keys()].some((one) => path === "" || `${one}/`.startsWith(`${path}/`));
    if (!isSome) {
      throw new InvalidSettings(`${JSON.stringify(source)} has no files, or ${IGNORE_FILE} hides all of them`);
    }
  }

  async #walk(path: string, local: string, above: readonly string[]): Promise<void> {
    const isHidden = path !== "" && this.#rules.hides(path);
    if (isHidden && !this.#rules.showsAny) return;
    const real = await this.#inside(path, local);
    if (!(await this.#fs.stat(real)).isDirectory()) {
      if (!isHidden) await this.#take(path, local);
      return;
    }
    if (above.includes(real)) throw refused(`the link ${JSON.stringify(path)} leads to a directory that it is in`);
    for (const name of (await this.#fs.readdir(real)).sort()) {
      await this.#walk(path === "" ? name : `${path}/${name}`, this.#path.join(local, name), [...above, real]);
    }
  }

  async #inside(path: string, local: string): Promise<string> {
    const real = await this.#fs.realpath(local).catch(() => undefined);
    if (real === undefined) throw refused(`the link ${JSON.stringify(path)} leads nowhere`);
    const way = this.#path.relative(this.#root, real);
    if (way === ".." || way.startsWith(`..${this.#path.sep}`) || this.#path.isAbsolute(way)) {
      throw refused(`the link ${JSON.stringify(path)} leads out of the build context, to ${real}`);
    }
    return real;
  }

  async #take(path: string, local: string): Promise<void> {
    if (this.#found.has(path)) return;
    const details = await this.#fs.stat(local);
    if (!details.isFile()) throw refused(`${JSON.stringify(path)} is neither a file nor a directory`);
    if (UNSENT.test(path) || path === MODES_FIELD) throw refused(`${JSON.stringify(path)} has a name that cannot be sent`);
    const mode = process.platform === "win32" ? MODE_DEFAULT : details.mode & 0o7777;
    this.#found.set(path, { path, local, size: details.size, mode });
    this.#bytes += details.size;
    const instead = `copy less, or leave some out by ${IGNORE_FILE}`;
    if (this.#found.size > CONTEXT_FILES_MAX) {
      throw refused(`the build would send more than ${CONTEXT_FILES_MAX} files; ${instead}`);
    }
    if (this.#bytes > CONTEXT_BYTES_MAX) {
      throw refused(`the build would send more than ${CONTEXT_BYTES_MAX >> 20} MiB; ${instead}`);
    }
  }
}

/** A form as `multipart/form-data`. A large one is read while it is sent. @internal */
export async function packForm(fields: Readonly<Record<string, string>>, files: readonly ContextFile[]): Promise<Form> {
  const modes = files.filter(({ mode }) => mode !== MODE_DEFAULT).map(({ path, mode }) => [path, mode.toString(8)]);
  const texts = modes.length === 0 ? fields : { ...fields, [MODES_FIELD]: JSON.stringify(Object.fromEntries(modes)) };
  // So long that no file has it in it.
  const boundary = `dayfly-${freshKey()}${freshKey()}`;
  const length = files.reduce((sum, { size }) => sum + size, 0);
  const parts = partsOf(boundary, texts, files);
  const type = `multipart/form-data; boundary=${boundary}`;
  if (length > UPLOAD_WHOLE_BYTES_MAX) return { content: toStream(parts), length, type };
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of parts) pieces.push(new Uint8Array(piece));
  return { content: new Uint8Array(await new Blob(pieces).arrayBuffer()), length, type };
}

async function* partsOf(
  boundary: string,
  texts: Readonly<Record<string, string>>,
  files: readonly ContextFile[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  const head = (names: string, type = ""): string =>
    `--${boundary}\r\nContent-Disposition: form-data; ${names}\r\n${type}\r\n`;
  for (const [name, text] of Object.entries(texts)) yield encoder.encode(`${head(`name="${name}"`)}${text}\r\n`);
  for (const { path, local } of files) {
    const { open } = await requireBuiltIn("node:fs/promises", "a build context");
    yield encoder.encode(head(`name="${path}"; filename="${path}"`, "Content-Type: application/octet-stream\r\n"));
    const file = await open(local, "r");
    try {
      for await (const piece of file.createReadStream({ autoClose: false })) yield piece as Uint8Array;
    } finally {
      await file.close();
    }
    yield encoder.encode("\r\n");
  }
  yield encoder.encode(`--${boundary}--\r\n`);
}

function refused(message: string): InvalidSettings {
  return new InvalidSettings(message);
}
