/** Files of a sandbox. */

import type { Connection, QueryValue } from "./connection.js";
import { type FileData, toContent } from "./content.js";
import { NotFound } from "./errors.js";
import { checkedName } from "./ids.js";
import { CALL_DEADLINE_MS, LISTING_DEPTH_MAX, LISTING_PAGE_LENGTH, UPLOAD_BYTES_PER_MS_MIN } from "./limits.js";
import { Listing } from "./listing.js";
import { refuseUnknown, toCamel, toSnake } from "./names.js";
import { about } from "./path-error.js";
import { download, type LocalPath, upload } from "./transfer.js";
import { FileWatch } from "./watch.js";
import type { ChangeList, FileEntry, FileLink, FileWritten, Wire } from "./wire.js";

/** Whose permissions count. Default `agent`. */
export interface UserOption {
  user?: string | undefined;
}

/** Whose permissions count, and who may end the call. */
export interface LookOptions extends UserOption {
  signal?: AbortSignal | undefined;
}

/** What of a directory to list. */
export interface FileListOptions extends LookOptions {
  /** Also what is below, so deep. */
  depth?: number | undefined;
}

/** Which part of a file to read. */
export interface ReadOptions extends LookOptions {
  offset?: number | undefined;
  /** All of the rest when absent. A response that is longer is refused. */
  length?: number | undefined;
}

const READ_OPTIONS = ["user", "offset", "length", "signal"];

/** How to write a file. Without `append` and `offset` it is replaced as a whole, in one step. */
export interface WriteOptions extends UserOption {
  /** Adds to the file in place. */
  append?: boolean | undefined;
  /** Writes into the file in place, from this byte on. */
  offset?: number | undefined;
  /** Permission bits in octal, such as `0755`. */
  mode?: string | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * The files of one sandbox. A relative path starts at `/workspace`.
 *
 * @example
 * ```ts
 * await sandbox.files.write("notes/today.txt", "hello");
 * console.log(await sandbox.files.readText("notes/today.txt"));
 * ```
 */
export class Files {
  readonly #connection: Connection;
  readonly #sandboxId: string;

  /** @internal */
  constructor(connection: Connection, sandboxId: string) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
  }

  /** Reads a file, or a part of it. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    refuseUnknown("files.read", options, READ_OPTIONS);
    const headers = rangeHeader(options);
    const query = { path, user: options.user };
    const { length: bytesMax, signal } = options;
    const call = { method: "GET", path: this.#path(), query, headers, bytesMax, signal } as const;
    return (await about(path, this.#connection.content(call))).bytes;
  }

  /** Reads a file as UTF-8. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /** Reads a file piece by piece, for one that is large. */
  async readStream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    refuseUnknown("files.readStream", options, READ_OPTIONS);
    const headers = rangeHeader(options);
    const query = { path, user: options.user };
    const call = { method: "GET", path: this.#path(), query, headers, signal: options.signal } as const;
    return (await about(path, this.#connection.open(call))).body;
  }

  /**
   * Writes a file and makes the directories above it. A stream, also one of Node, is sent while it is
   * read; for a file of this computer see `upload`.
   */
  async write(path: string, data: FileData, options: WriteOptions = {}): Promise<FileWritten> {
    refuseUnknown("files.write", options, ["user", "append", "offset", "mode", "signal"]);
    const { signal, ...how } = options;
    const content = await toContent(data);
    const isStream = content instanceof ReadableStream;
    const write = this.#connection.json<Wire["FileWritten"]>({
      method: "PUT",
      path: this.#path(),
      query: { path, ...how },
      content,
      // What was appended once must not be appended again.
      isRepeatable: options.append !== true,
      deadlineMs: isStream ? Number.MAX_SAFE_INTEGER : uploadDeadlineMs(content.length),
      signal,
    });
    return toCamel(await about(path, write));
  }

  /**
   * Lists a directory. With `depth` also what is below, names relative to it. Awaited, the whole list;
   * in a `for await`, page by page.
   */
  list(path = "/workspace", options: FileListOptions = {}): Listing<FileEntry> {
    refuseUnknown("files.list", options, ["user", "depth", "signal"]);
    return new Listing(() => this.#pages(path, options));
  }

  /** Everything below a directory, a directory right before what is in it. */
  walk(path = "/workspace", options: FileListOptions = {}): AsyncGenerator<FileEntry, void, undefined> {
    return this.list(path, { depth: LISTING_DEPTH_MAX, ...options })[Symbol.asyncIterator]();
  }

  /** What a path is, without following a link. */
  async stat(path: string, options: LookOptions = {}): Promise<FileEntry> {
    refuseUnknown("files.stat", options, ["user", "signal"]);
    const { user, signal } = options;
    return toCamel(await this.#get<Wire["FileEntry"]>("stat", { path, user }, signal));
  }

  /** Whether there is something at a path. */
  async exists(path: string, options: UserOption = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
    // The same code says that the sandbox is gone, which is no answer to the question.
    await this.#connection.done({ method: "GET", path: ["sandboxes", this.#sandboxId] });
    return false;
  }

  /** Removes a file, an empty directory, or with `recursive` a whole one. */
  async remove(path: string, options: UserOption & { recursive?: boolean } = {}): Promise<void> {
    refuseUnknown("files.remove", options, ["user", "recursive"]);
    const call = { method: "DELETE", path: this.#path(), query: { path, ...options } } as const;
    await about(path, this.#connection.done(call));
  }

  /** Makes a directory, with those above it. One that is there is a success. */
  async mkdir(path: string, options: UserOption & { mode?: string; parents?: boolean } = {}): Promise<void> {
    refuseUnknown("files.mkdir", options, ["user", "mode", "parents"]);
    await this.#post("mkdir", path, { path, parents: true, ...options }, true);
  }

  /** Gives a file or a directory another path. */
  async move(from: string, to: string, options: UserOption & { replace?: boolean } = {}): Promise<void> {
    refuseUnknown("files.move", options, ["user", "replace"]);
    // Not repeated: the second one would find nothing at the old path.
    await this.#post("move", from, { from, to, ...options }, false);
  }

  /** Changes permission bits, in octal such as `0755`. Never follows a link. */
  async chmod(path: string, mode: string, options: UserOption = {}): Promise<void> {
    refuseUnknown("files.chmod", options, ["user"]);
    await this.#post("chmod", path, { path, mode, ...options }, true);
  }

  /** An address by which whoever has it reads this file (`GET`), for an hour unless `ttlSeconds` says otherwise. */
  downloadLink(path: string, options: { ttlSeconds?: number } = {}): Promise<FileLink> {
    refuseUnknown("files.downloadLink", options, ["ttlSeconds"]);
    return this.#link(path, "download", options);
  }

  /** An address by which whoever has it writes this file (`PUT`, the content as the body), as long as the other. */
  uploadLink(path: string, options: { ttlSeconds?: number } = {}): Promise<FileLink> {
    refuseUnknown("files.uploadLink", options, ["ttlSeconds"]);
    return this.#link(path, "upload", options);
  }

  /** Ends a link that this key made, at once. */
  async revokeLink(link: Pick<FileLink, "id">): Promise<void> {
    await this.#connection.done({ method: "DELETE", path: this.#path("links", checkedName("link id", link.id)) });
  }

  async #link(path: string, operation: "download" | "upload", options: { ttlSeconds?: number }): Promise<FileLink> {
    // Not repeated: a second link would stay that nobody knows of.
    const call = { method: "POST", path: this.#path("links"), json: toSnake({ path, operation, ...options }) } as const;
    const { address, ...link } = toCamel(await about(path, this.#connection.json<Wire["FileLink"]>(call)));
    return { ...link, url: this.#connection.apiUrl + address };
  }

  /** Watches a directory. */
  watch(path: string, options: UserOption & { recursive?: boolean } = {}): FileWatch {
    refuseUnknown("files.watch", options, ["user", "recursive"]);
    const call = { method: "GET", path: this.#path("watch"), query: { path, ...options } } as const;
    return new FileWatch(this.#connection, call, path);
  }

  /**
   * Copies a file or a directory of this computer into the sandbox and gives the number of bytes. A
   * `remote` that ends with a slash is the directory to put it into, which is made. Needs Node, Bun or
   * Deno.
   *
   * @example
   * ```ts
   * await sandbox.files.upload("data.csv", "/workspace/");
   * await sandbox.files.upload("src", "/workspace/"); // /workspace/src
   * ```
   */
  async upload(local: LocalPath, remote: string, options: UserOption = {}): Promise<number> {
    refuseUnknown("files.upload", options, ["user"]);
    return await upload(this, local, remote, options);
  }

  /**
   * Copies a file or a directory out of the sandbox and gives its local path. A `local` that ends with
   * a slash is the directory to put it into, which is made; a file also goes into one that is there.
   * Needs Node, Bun or Deno.
   */
  async download(remote: string, local: LocalPath, options: UserOption = {}): Promise<string> {
    refuseUnknown("files.download", options, ["user"]);
    return await download(this, remote, local, options);
  }

  /** A tree as a tar archive. */
  async downloadArchive(path: string, options: UserOption = {}): Promise<ReadableStream<Uint8Array>> {
    refuseUnknown("files.downloadArchive", options, ["user"]);
    const query = { path, user: options.user };
    return (await about(path, this.#connection.open({ method: "GET", path: this.#path("tar"), query }))).body;
  }

  /** Unpacks a tar archive below a directory, which is made. */
  async uploadArchive(path: string, archive: FileData, options: UserOption = {}): Promise<FileWritten> {
    refuseUnknown("files.uploadArchive", options, ["user"]);
    const content = await toContent(archive);
    const isStream = content instanceof ReadableStream;
    const write = this.#connection.json<Wire["FileWritten"]>({
      method: "PUT",
      path: this.#path("tar"),
      query: { path, user: options.user },
      headers: { "content-type": "application/x-tar" },
      content,
      deadlineMs: isStream ? Number.MAX_SAFE_INTEGER : uploadDeadlineMs(content.length),
    });
    return toCamel(await about(path, write));
  }

  /** What differs on the sandbox's own disk since its beginning, or since a snapshot of it. */
  async changes(path = "/", options: { since?: string } = {}): Promise<ChangeList> {
    refuseUnknown("files.changes", options, ["since"]);
    return toCamel(await this.#get<Wire["ChangeList"]>("changes", { path, since: options.since }));
  }

  async *#pages(path: string, options: FileListOptions): AsyncGenerator<FileEntry[], void, undefined> {
    const { signal, ...how } = options;
    let after: string | undefined;
    do {
      const query = { path, ...how, limit: LISTING_PAGE_LENGTH, after };
      const page: Wire["DirectoryListing"] = await this.#get("dir", query, signal);
      yield page.entries.map(toCamel);
      after = page.has_more === true ? (page.next_after ?? undefined) : undefined;
    } while (after !== undefined);
  }

  #path(...rest: string[]): string[] {
    return ["sandboxes", this.#sandboxId, "fs", ...rest];
  }

  #get<T>(what: string, query: Record<string, QueryValue> & { path: string }, signal?: AbortSignal): Promise<T> {
    return about(query.path, this.#connection.json<T>({ method: "GET", path: this.#path(what), query, signal }));
  }

  #post(what: string, path: string, json: object, isRepeatable: boolean): Promise<void> {
    return about(path, this.#connection.done({ method: "POST", path: this.#path(what), json, isRepeatable }));
  }
}

function rangeHeader(options: ReadOptions): Record<string, string> {
  const { offset = 0, length } = options;
  if (offset === 0 && length === undefined) return {};
  if (length !== undefined && length <= 0) throw new RangeError("a range of no bytes cannot be asked for");
  return { range: `bytes=${offset}-${length === undefined ? "" : offset + length - 1}` };
}

function uploadDeadlineMs(length: number): number {
  return CALL_DEADLINE_MS + length / UPLOAD_BYTES_PER_MS_MIN;
}
