/** The blocks of a tar archive: ustar, with the extensions of pax and GNU for what does not fit. */

import { ProtocolError } from "./failures.js";

export const BLOCK_BYTES = 512;

export type TarKind = "file" | "directory" | "symlink" | "hardlink";

/** One entry, without its content. */
export interface TarEntry {
  path: string;
  kind: TarKind;
  mode: number;
  /** Of the content; 0 unless it is a file. */
  size: number;
  /** Where a link goes. */
  target: string;
}

const FLAG_BY_KIND: Readonly<Record<TarKind, string>> = { file: "0", hardlink: "1", symlink: "2", directory: "5" };
const KIND_BY_FLAG: Readonly<Record<string, TarKind>> = {
  ...{ "0": "file", "\0": "file", "7": "file", "1": "hardlink", "2": "symlink", "5": "directory" },
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The blocks before the content of an entry. */
export function headerOf(entry: TarEntry): Uint8Array[] {
  const records: string[] = [];
  if (!fits(entry.path)) records.push(record("path", entry.path));
  if (!fits(entry.target)) records.push(record("linkpath", entry.target));
  if (entry.size > 0o77777777777) records.push(record("size", String(entry.size)));
  const own = block(entry.path, FLAG_BY_KIND[entry.kind], entry);
  if (records.length === 0) return [own];
  const content = encoder.encode(records.join(""));
  const extension = block("pax", "x", { mode: 0o644, size: content.length, target: "" });
  return [extension, content, padding(content.length), own];
}

/** What fills the last block of a content. */
export function padding(length: number): Uint8Array {
  return new Uint8Array((BLOCK_BYTES - (length % BLOCK_BYTES)) % BLOCK_BYTES);
}

function fits(text: string): boolean {
  return encoder.encode(text).length <= 100;
}

/** A record of pax counts itself, its own length included. */
function record(name: string, value: string): string {
  const rest = ` ${name}=${value}\n`;
  const restBytes = encoder.encode(rest).length;
  let length = restBytes + 1;
  while (String(length).length + restBytes !== length) length += 1;
  return `${length}${rest}`;
}

function block(path: string, flag: string, entry: { mode: number; size: number; target: string }): Uint8Array {
  const bytes = new Uint8Array(BLOCK_BYTES);
  const put = (offset: number, length: number, text: string): void => {
    bytes.set(encoder.encode(text).subarray(0, length), offset);
  };
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;
  put(0, 100, path);
  put(100, 8, octal(entry.mode & 0o7777, 7));
  put(108, 8, octal(0, 7));
  put(116, 8, octal(0, 7));
  put(124, 12, octal(Math.min(entry.size, 0o77777777777), 11));
  put(136, 12, octal(0, 11));
  put(156, 1, flag);
  put(157, 100, entry.target);
  put(257, 8, "ustar\x0000");
  put(148, 8, `${octal(checksum(bytes), 6)} `);
  return bytes;
}

/** All bytes of a header added up, with spaces in place of the sum itself. */
function checksum(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 32 : byte), 0);
}

/** A header as it stands: an entry, or an extension whose content is about the next one. */
export interface RawHeader {
  flag: string;
  path: string;
  mode: number;
  size: number;
  target: string;
}

/** Reads a header; `undefined` for a block of zeros, which ends an archive. */
export function readHeader(bytes: Uint8Array): RawHeader | undefined {
  if (bytes.every((byte) => byte === 0)) return undefined;
  if (Number.parseInt(textAt(bytes, 148, 8), 8) !== checksum(bytes)) throw new ProtocolError("an archive is damaged");
  const prefix = textAt(bytes, 257, 6) === "ustar" ? textAt(bytes, 345, 155) : "";
  const name = textAt(bytes, 0, 100);
  return {
    flag: String.fromCharCode(bytes[156] ?? 0),
    path: prefix === "" ? name : `${prefix}/${name}`,
    mode: Number.parseInt(textAt(bytes, 100, 8), 8) || 0,
    size: sizeAt(bytes),
    target: textAt(bytes, 157, 100),
  };
}

export function kindOf(flag: string): TarKind {
  const kind = KIND_BY_FLAG[flag];
  if (kind === undefined) throw new ProtocolError("an archive has something that is no file, directory or link");
  return kind;
}

/** The records of a pax extension. */
export function readRecords(content: Uint8Array): Map<string, string> {
  const records = new Map<string, string>();
  for (let offset = 0; offset < content.length; ) {
    const length = Number.parseInt(decoder.decode(content.subarray(offset, offset + 20)), 10);
    if (!(length > 0)) throw new ProtocolError("an archive is damaged");
    const line = decoder.decode(content.subarray(offset, offset + length - 1));
    const [, name, value] = /^\d+ ([^=]+)=([^]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new ProtocolError("an archive is damaged");
    records.set(name, value);
    offset += length;
  }
  return records;
}

function textAt(bytes: Uint8Array, offset: number, length: number): string {
  const field = bytes.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return decoder.decode(end === -1 ? field : field.subarray(0, end));
}

/** Octal digits, or for large files a number in base 256. */
function sizeAt(bytes: Uint8Array): number {
  if (((bytes[124] ?? 0) & 0x80) === 0) return Number.parseInt(textAt(bytes, 124, 12), 8) || 0;
  return bytes.subarray(125, 136).reduce((sum, byte) => sum * 256 + byte, 0);
}
