/**
 * Tools that read and change text files. A guest's files are hostile: they may be huge, of one line, no
 * text at all. Every read is bounded, and what cannot be shown or changed safely is refused in words.
 */

import { InvalidRequest } from "../errors.js";
import { byteLength, headOf, MODEL_BYTES_DEFAULT, named } from "../model-text.js";
import { failed, given, type ToolResult, type ToolTarget } from "./result.js";

const CHUNK_BYTES = 1 << 20;
/** How far into a file its lines are looked for. */
const READ_BYTES_MAX = 32 << 20;
const EDIT_BYTES_MAX = 4 << 20;
const LINE_CHARACTERS_MAX = 2000;
const USE_SHELL = "look at it with run_shell or run_code";
const EDIT_SIZE = `${EDIT_BYTES_MAX >> 20} MiB`;
const BY_PROGRAM = "change it with run_shell or run_code";

export async function readFile(
  target: ToolTarget,
  { path, first_line: first, max_lines: most }: { path: string; first_line: number; max_lines: number },
): Promise<ToolResult> {
  const found = await linesOf(target, path, first + most);
  if (found === undefined) return notText(path);
  const { lines, isOver } = found;
  if (isOver && lines.length === 0) return given("the file is empty", { content: "", lines: 0 });
  if (lines.length < first) {
    if (isOver) return failed(`${named(path)} has ${lines.length} lines`);
    return failed(`line ${first} of ${named(path)} is too far into the file`, USE_SHELL);
  }
  return numbered(found, first, lines.slice(first - 1, first - 1 + most));
}

/** The first lines of a file. `isOver`: there are no more. */
interface Lines {
  lines: string[];
  isOver: boolean;
  isDamaged: boolean;
  hasCrlf: boolean;
}

/** At least as many lines as wanted, one more if there is one, or all that there are; nothing of what is no text. */
async function linesOf(target: ToolTarget, path: string, wanted: number): Promise<Lines | undefined> {
  const pieces: Uint8Array[] = [];
  let [length, ends, isOver] = [0, 0, false];
  while (!isOver && ends < wanted && length < READ_BYTES_MAX) {
    const piece = await pieceOf(target, path, length, CHUNK_BYTES);
    if (piece.includes(0)) return undefined;
    for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) ends += 1;
    pieces.push(piece);
    length += piece.length;
    isOver = piece.length < CHUNK_BYTES;
  }
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const text = pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
  const lines = text.split("\n");
  // Behind the last line end there is no line; and one that was cut is none yet.
  if (lines.at(-1) === "" || !isOver) lines.pop();
  const whole = lines.length > 1 ? lines.slice(0, -1) : lines;
  return {
    lines: lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)),
    isOver,
    isDamaged: text.includes("\ufffd"),
    hasCrlf: lines.length > 0 && whole.every((line) => line.endsWith("\r")),
  };
}

async function pieceOf(target: ToolTarget, path: string, offset: number, length: number): Promise<Uint8Array> {
  try {
    return await target.sandbox.files.read(path, { offset, length, signal: target.signal });
  } catch (error) {
    // Behind its end, or of an empty one.
    if (error instanceof InvalidRequest && error.code === "range_not_satisfiable") return new Uint8Array();
    throw error;
  }
}

function numbered(found: Lines, first: number, lines: readonly string[]): ToolResult {
  const shown: string[] = [];
  let [room, cut] = [MODEL_BYTES_DEFAULT, 0];
  for (const [index, line] of lines.entries()) {
    const head = headOf(line, LINE_CHARACTERS_MAX);
    const over = characterCount(line.slice(head.length));
    const text = `${first + index}\t${head}${over === 0 ? "" : `[... ${over} characters left out ...]`}`;
    room -= byteLength(text) + 1;
    if (over > 0) cut += 1;
    if (room < 0 && shown.length > 0) break;
    shown.push(text);
  }
  const last = first + shown.length - 1;
  const of = found.isOver ? ` of ${found.lines.length}` : "";
  const more = !found.isOver || last < found.lines.length ? `; first_line=${last + 1} reads on` : "";
  const said = [`lines ${first}-${last}${of}${more}`];
  if (cut > 0) said.push(`cut: ${cut} lines are longer than ${LINE_CHARACTERS_MAX} characters`);
  if (found.hasCrlf) said.push("line ends: CRLF");
  if (found.isDamaged) said.push("the file is not UTF-8: bytes that are no character are shown as \ufffd");
  return given([...said, "content:", ...shown].join("\n"), { first_line: first, last_line: last });
}

/** Pairs of surrogates are one character each. */
function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

function notText(path: string): ToolResult {
  return failed(`${named(path)} is not a text file`, USE_SHELL);
}

export async function writeFile(
  { sandbox, signal }: ToolTarget,
  { path, content }: { path: string; content: string },
): Promise<ToolResult> {
  const { bytes } = await sandbox.files.write(path, content, { signal });
  return given(`wrote ${bytes} bytes to ${named(path)}`, { bytes });
}

export async function editFile(
  target: ToolTarget,
  wish: { path: string; old_text: string; new_text: string; replace_all: boolean },
): Promise<ToolResult> {
  const { path } = wish;
  const content = await wholeOf(target, path);
  if (typeof content !== "string") return content;
  let { old_text: old, new_text: next } = wish;
  if (content.includes("\r\n") && !old.includes("\r") && !content.replaceAll("\r\n", "").includes("\n")) {
    // A model writes plain line ends; the file keeps its own.
    old = old.replaceAll("\n", "\r\n");
    next = next.replaceAll("\r\n", "\n").replaceAll("\n", "\r\n");
  }
  const count = countOf(content, old);
  if (count === 0) {
    const hint = "read_file shows the file; the numbers of lines are not part of it";
    return failed(`the old text is not in ${named(path)}; nothing was changed`, hint);
  }
  if (count > 1 && !wish.replace_all) {
    const hint = "take more of the text around it, or set replace_all";
    return failed(`the old text is ${count} times in ${named(path)}; nothing was changed`, hint);
  }
  if (byteLength(content) + count * (byteLength(next) - byteLength(old)) > EDIT_BYTES_MAX) {
    // Before it is made: a few bytes that are replaced everywhere can become more than there is.
    return failed(`${named(path)} would be larger than ${EDIT_SIZE}; nothing was changed`, BY_PROGRAM);
  }
  await target.sandbox.files.write(path, content.replaceAll(old, () => next), { signal: target.signal });
  const places = count === 1 ? "1 place" : `${count} places`;
  return given(`replaced ${places} in ${named(path)}`, { replaced: count });
}

/** Puts a text behind a line; behind line 0 is the beginning. */
export async function insertText(target: ToolTarget, path: string, line: number, text: string): Promise<ToolResult> {
  const content = await wholeOf(target, path);
  if (typeof content !== "string") return content;
  const lines = content.split(/(?<=\n)/).filter((one) => one !== "");
  if (line < 0 || line > lines.length) {
    return failed(`${named(path)} has ${lines.length} lines; insert_line is 0 to ${lines.length}`);
  }
  const end = content.includes("\r\n") ? "\r\n" : "\n";
  const before = lines[line - 1];
  if (before !== undefined && !before.endsWith("\n")) lines[line - 1] = before + end;
  const whole = text.endsWith("\n") ? text : `${text}\n`;
  lines.splice(line, 0, whole.replaceAll("\r\n", "\n").replaceAll("\n", end));
  await target.sandbox.files.write(path, lines.join(""), { signal: target.signal });
  return given(`inserted behind line ${line} of ${named(path)}`);
}

/** All of a text file that may be changed, or why it may not. */
async function wholeOf(target: ToolTarget, path: string): Promise<string | ToolResult> {
  const content = await pieceOf(target, path, 0, EDIT_BYTES_MAX + 1);
  if (content.length > EDIT_BYTES_MAX) {
    return failed(`${named(path)} is larger than ${EDIT_SIZE}`, BY_PROGRAM);
  }
  if (content.includes(0)) return notText(path);
  try {
    return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(content);
  } catch {
    // Writing it back would destroy what was not understood.
    return notText(path);
  }
}
