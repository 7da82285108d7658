/** Tools that look for files, and for text in them. */

import { SandboxTimeout } from "../errors.js";
import type { ExecResult } from "../exec-result.js";
import { byteLength, headOf, MODEL_BYTES_DEFAULT, named, NOTHING, shaped, stream } from "../model-text.js";
import type { FileEntry } from "../wire.js";
import { failed, given, secondsOf, type ToolResult, type ToolTarget } from "./result.js";

const SEARCH_SECONDS = 60;
const SEARCH_BYTES_MAX = 512 << 10;
const LINE_CHARACTERS_MAX = 400;
/** A name in a list is there to be called with, so more of it is shown than elsewhere. */
const PATH_CHARACTERS_MAX = 1000;
/** What is behind the name of a file and a zero byte: the number of the line, and the line. */
const BEHIND_NAME = /(\d{1,9}):([^\n]*)\n?/y;
/**
 * Nothing that a model wrote is read by the shell: it is handed on as arguments. Bytes are counted, not
 * lines: a name with line ends would be taken for several matches.
 */
const SEARCH = 'most=$1; shift; grep "$@" | head -c "$most"';

export async function listFiles(
  { sandbox, signal }: ToolTarget,
  { path, depth, max_entries: most }: { path: string; depth: number; max_entries: number },
): Promise<ToolResult> {
  const entries: FileEntry[] = [];
  // One more than is shown says that there are more.
  for await (const entry of sandbox.files.list(path, depth > 1 ? { depth, signal } : { signal })) {
    entries.push(entry);
    if (entries.length > most) break;
  }
  if (entries.length === 0) return given("the directory is empty", { entries: [] });
  const lines = fitting(entries.slice(0, most).map(entryLine));
  const isAll = lines.length === entries.length;
  const said = isAll ? `${lines.length} entries` : `the first ${lines.length} entries; there are more`;
  const names = entries.slice(0, lines.length).map(({ name }) => name);
  return given([said, "files:", ...lines].join("\n"), { entries: names });
}

function entryLine({ name, isSymlink, isDir, size }: FileEntry): string {
  const shown = named(name, PATH_CHARACTERS_MAX);
  if (isSymlink) return `${shown} (link)`;
  return isDir ? `${shown}/` : `${shown} (${size} bytes)`;
}

interface SearchWish {
  pattern: string;
  path: string;
  name: string | undefined;
  ignore_case: boolean;
  max_matches: number;
}

export async function searchFiles(target: ToolTarget, wish: SearchWish): Promise<ToolResult> {
  const timeoutSeconds = secondsOf(target, SEARCH_SECONDS);
  const most = wish.max_matches;
  const env = { LC_ALL: "C.UTF-8" };
  const command = ["sh", "-c", SEARCH, "sh", String(SEARCH_BYTES_MAX), ...grepArguments(wish)];
  let result: ExecResult;
  try {
    const how = { timeoutSeconds, env, maxOutputBytes: SEARCH_BYTES_MAX, signal: target.signal };
    result = await target.sandbox.exec(command, how);
  } catch (error) {
    if (!(error instanceof SandboxTimeout)) throw error;
    return failed(`the search took longer than ${timeoutSeconds} s`, "narrow path or name");
  }
  const matches = matchesOf(result.stdout, most + 1);
  if (matches.length === 0) {
    if (result.stderr.trim() === "") return given("no matches", { matches: [] });
    // Of a pattern that is wrong, or a path that is not there; in words of the guest's.
    const text = shaped(["error: the search failed"], [stream("stderr", result.stderr)], NOTHING);
    return given(text, undefined, true);
  }
  const lines = fitting(matches.slice(0, most).map(matchLine));
  const isAll = lines.length === matches.length && byteLength(result.stdout) < SEARCH_BYTES_MAX;
  const said = isAll ? `${lines.length} matches` : `the first ${lines.length} matches; there are more`;
  const found = matches.slice(0, lines.length).map(({ path, line }) => ({ path, line }));
  return given([said, "matches:", ...lines].join("\n"), { matches: found });
}

function grepArguments(wish: SearchWish): string[] {
  const options = ["-rnEIZH", "--color=never"];
  if (wish.ignore_case) options.push("-i");
  if (wish.name !== undefined) options.push(`--include=${wish.name}`);
  return [...options, "-e", wish.pattern, "--", wish.path];
}

interface Match {
  path: string;
  line: number;
  text: string;
}

/**
 * The first matches, in one pass: the guest may print whatever it likes. A name may have line ends, so it
 * goes up to the zero byte. What reads otherwise ends the list.
 */
function matchesOf(output: string, most: number): Match[] {
  const found: Match[] = [];
  let place = 0;
  while (found.length < most) {
    const end = output.indexOf("\0", place);
    if (end === -1) break;
    BEHIND_NAME.lastIndex = end + 1;
    const behind = BEHIND_NAME.exec(output);
    if (behind === null) break;
    const [, line, text = ""] = behind;
    found.push({ path: output.slice(place, end), line: Number(line), text });
    place = BEHIND_NAME.lastIndex;
  }
  return found;
}

function matchLine({ path, line, text }: Match): string {
  const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
  const head = headOf(whole, LINE_CHARACTERS_MAX);
  const shown = named(path.replace(/^\.\//, ""), PATH_CHARACTERS_MAX);
  return `${shown}:${line}:${head}${head.length < whole.length ? "[...]" : ""}`;
}

/** As many lines as a model is shown. */
function fitting(lines: readonly string[]): readonly string[] {
  let room = MODEL_BYTES_DEFAULT;
  const over = lines.findIndex((line) => (room -= byteLength(line) + 1) < 0);
  return over === -1 ? lines : lines.slice(0, over);
}
