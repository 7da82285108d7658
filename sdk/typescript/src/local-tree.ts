/** Directories of this computer, as archives and out of them. */

import { InvalidSettings } from "./failures.js";
import { requireBuiltIn } from "./runtime.js";
import { headerOf, padding, type TarEntry } from "./tar-header.js";
import { TarReader } from "./tar-reader.js";

type Modules = { fs: typeof import("node:fs/promises"); path: typeof import("node:path") };

async function modules(): Promise<Modules> {
  const what = "a local directory";
  return { fs: await requireBuiltIn("node:fs/promises", what), path: await requireBuiltIn("node:path", what) };
}

/** A directory as a tar archive, read while it is sent. */
export async function* packDirectory(root: string): AsyncGenerator<Uint8Array, void, undefined> {
  const { fs, path } = await modules();
  const waiting = ["."];
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const place = path.join(root, name);
    // The root itself may be a link to the directory that is meant.
    const found = name === "." ? await fs.stat(place) : await fs.lstat(place);
    const entry = { path: name, mode: found.mode & 0o777, size: 0, target: "" };
    if (found.isDirectory()) {
      yield* headerOf({ ...entry, path: `${name}/`, kind: "directory" });
      const names = (await fs.readdir(place)).sort();
      waiting.push(...names.map((below) => (name === "." ? `./${below}` : `${name}/${below}`)));
    } else if (found.isSymbolicLink()) {
      yield* headerOf({ ...entry, kind: "symlink", target: await fs.readlink(place) });
    } else if (found.isFile()) {
      yield* packFile(fs, place, { ...entry, kind: "file", size: found.size });
    } else {
      throw new InvalidSettings(`${place} is no file, directory or link, and cannot be uploaded`);
    }
  }
  yield new Uint8Array(1024);
}

async function* packFile(fs: Modules["fs"], place: string, entry: TarEntry): AsyncGenerator<Uint8Array, void, undefined> {
  yield* headerOf(entry);
  const file = await fs.open(place, "r");
  try {
    let left = entry.size;
    while (left > 0) {
      const { bytesRead, buffer } = await file.read(new Uint8Array(Math.min(left, 1 << 16)));
      if (bytesRead === 0) throw new InvalidSettings(`${place} became shorter while it was read`);
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
  yield padding(entry.size);
}

/** Unpacks an archive. Whoever wrote it is not trusted: nothing in it may leave the directory. */
export async function unpackDirectory(source: AsyncIterable<Uint8Array>, root: string): Promise<void> {
  const { fs, path } = await modules();
  await fs.mkdir(root, { recursive: true });
  const realRoot = await fs.realpath(root);
  const reader = new TarReader(source);
  try {
    for (let entry = await reader.next(); entry !== undefined; entry = await reader.next()) {
      const place = path.resolve(realRoot, entry.path);
      checkInside(path, realRoot, place, entry.path);
      if (place === realRoot) continue;
      const parent = path.dirname(place);
      await fs.mkdir(parent, { recursive: true });
      // A link that an earlier entry made must not lead this one outside.
      checkInside(path, realRoot, await fs.realpath(parent), entry.path);
      await unpackEntry({ fs, path }, reader, entry, place, realRoot);
    }
  } finally {
    await reader.close();
  }
}

async function unpackEntry(
  { fs, path }: Modules,
  reader: TarReader,
  entry: TarEntry,
  place: string,
  root: string,
): Promise<void> {
  const there = await fs.lstat(place).catch(() => undefined);
  if (entry.kind === "directory") {
    if (there?.isDirectory() === true) return;
    if (there !== undefined) await fs.rm(place);
    return void (await fs.mkdir(place));
  }
  // What is there is replaced, never written through.
  if (there !== undefined) await fs.rm(place);
  if (entry.kind === "file") {
    // As a program would make it: not for others to write, and never with another user's rights.
    const file = await fs.open(place, "wx", (entry.mode & 0o755) | 0o600);
    try {
      for await (const piece of reader.content()) await file.writeFile(piece);
    } finally {
      await file.close();
    }
    return;
  }
  const target = path.resolve(entry.kind === "hardlink" ? root : path.dirname(place), entry.target);
  if (path.isAbsolute(entry.target)) throw outside(entry.path);
  checkInside(path, root, target, entry.path);
  if (entry.kind === "symlink") return void (await fs.symlink(entry.target, place));
  checkInside(path, root, await fs.realpath(target), entry.path);
  await fs.link(target, place);
}

function checkInside(path: Modules["path"], root: string, place: string, name: string): void {
  const way = path.relative(root, place);
  if (way === ".." || way.startsWith(`..${path.sep}`) || path.isAbsolute(way)) throw outside(name);
}

function outside(name: string): InvalidSettings {
  return new InvalidSettings(`${JSON.stringify(name)} in the downloaded directory leads out of it, and was not written`);
}
