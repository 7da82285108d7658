/** Copies between this computer and a sandbox. */

import { toStream } from "./content.js";
import type { Files, UserOption } from "./files.js";
import { UPLOAD_WHOLE_BYTES_MAX } from "./limits.js";
import { packDirectory, unpackDirectory } from "./local-tree.js";
import { requireBuiltIn } from "./runtime.js";

/** A path of this computer. */
export type LocalPath = string | URL;

async function localPath(local: LocalPath): Promise<string> {
  if (typeof local === "string") return local;
  return (await requireBuiltIn("node:url", "a local file")).fileURLToPath(local);
}

/** Copies a file or a directory into a sandbox. @internal */
export async function upload(files: Files, local: LocalPath, remote: string, options: UserOption): Promise<number> {
  const { open, stat } = await requireBuiltIn("node:fs/promises", "files.upload");
  const path = await requireBuiltIn("node:path", "files.upload");
  const source = await localPath(local);
  // As `cp` does: into a directory under the same name; that of "." is the name of where it is.
  const target = remote.endsWith("/") ? `${remote}${path.basename(path.resolve(source))}` : remote;
  if ((await stat(source)).isDirectory()) {
    return (await files.uploadArchive(target, toStream(packDirectory(source)), options)).bytes;
  }
  const file = await open(source, "r");
  try {
    const mode = process.platform === "win32" ? undefined : ((await file.stat()).mode & 0o777).toString(8).padStart(4, "0");
    // What is held as a whole can be sent again after a lost connection.
    const isSmall = (await file.stat()).size <= UPLOAD_WHOLE_BYTES_MAX;
    const data = isSmall ? await file.readFile() : toStream(file.createReadStream({ autoClose: false }));
    return (await files.write(target, data, { ...options, mode })).bytes;
  } finally {
    await file.close();
  }
}

/** Copies a file or a directory out of a sandbox and gives its local path. @internal */
export async function download(files: Files, remote: string, local: LocalPath, options: UserOption): Promise<string> {
  const fs = await requireBuiltIn("node:fs/promises", "files.download");
  const path = await requireBuiltIn("node:path", "files.download");
  const wanted = await localPath(local);
  const entry = await files.stat(remote, options);
  const isSlashed = wanted.endsWith("/") || wanted.endsWith(path.sep);
  const isThere = (await fs.stat(wanted).catch(() => undefined))?.isDirectory() === true;
  const name = path.posix.basename(path.posix.resolve("/workspace", remote));
  // A file cannot take the place of a directory either.
  const target = isSlashed || (isThere && !entry.isDir) ? path.join(wanted, name) : wanted;
  if (entry.isDir) {
    await unpackDirectory(piecesOf(await files.downloadArchive(remote, options)), target);
    return target;
  }
  await fs.mkdir(path.dirname(target), { recursive: true });
  // Under another name until it is whole: a broken transfer must not look like the file.
  const part = path.join(path.dirname(target), `.${path.basename(target)}.part`);
  try {
    await fs.writeFile(part, piecesOf(await files.readStream(remote, options)));
    await fs.rename(part, target);
  } finally {
    await fs.rm(part, { force: true });
  }
  return target;
}

/** A body as what can be iterated; not every platform's streams can. */
async function* piecesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
