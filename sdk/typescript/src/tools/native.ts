/** Anthropic's own tool types, `bash` and the text editor: models know them without a schema. */

import { type Arguments, ArgumentsRefused, fitted } from "./arguments.js";
import type { AnthropicTool, ArgumentRule, ArgumentsSchema } from "./definition.js";
import type { ToolResult, ToolTarget } from "./result.js";
import { runBash } from "./runs.js";
import { listFiles } from "./search.js";
import { editFile, insertText, readFile, writeFile } from "./text-files.js";

/** Anthropic's own tools, by our names. */
export type NativeToolName = "bash" | "text_editor";

/** Each has the name under which a model calls it. */
export const NATIVE_SHAPES: Readonly<Record<NativeToolName, AnthropicTool>> = {
  bash: { type: "bash_20250124", name: "bash" },
  text_editor: { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
};

const VIEW_LINES = 2000;
const VIEW_ENTRIES = 400;
const TEXT: ArgumentRule = { type: "string" };
const RANGE: ArgumentRule = { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 2 };

type Fields = Pick<ArgumentsSchema, "properties" | "required">;

const BASH_INPUT: Fields = {
  properties: { command: TEXT, restart: { type: "boolean", default: false } },
  required: [],
};
const EDITOR_INPUTS: ReadonlyMap<unknown, Fields> = new Map<unknown, Fields>([
  ["view", { properties: { path: TEXT, view_range: RANGE }, required: ["path"] }],
  ["create", { properties: { path: TEXT, file_text: TEXT }, required: ["path", "file_text"] }],
  [
    "str_replace",
    {
      properties: { path: TEXT, old_str: { type: "string", minLength: 1 }, new_str: { type: "string", default: "" } },
      required: ["path", "old_str"],
    },
  ],
  [
    "insert",
    {
      properties: { path: TEXT, insert_line: { type: "integer", minimum: 0 }, insert_text: TEXT },
      required: ["path", "insert_line", "insert_text"],
    },
  ],
]);

/** Whether a call of the editor changes nothing. */
export function isView({ command }: Arguments): boolean {
  return command === "view";
}

export async function callBash(target: ToolTarget, given: Arguments): Promise<ToolResult> {
  const { command, restart } = fitted(BASH_INPUT, given) as { command: string | undefined; restart: boolean };
  if (command === undefined && !restart) throw new ArgumentsRefused("command is missing");
  return await runBash(target, { command, restart });
}

/** What the commands of the editor take, all of them together. */
interface EditorCall {
  path: string;
  view_range: number[] | undefined;
  file_text: string;
  old_str: string;
  new_str: string;
  insert_line: number;
  insert_text: string;
}

export async function callEditor(target: ToolTarget, given: Arguments): Promise<ToolResult> {
  const { command, ...rest } = given;
  const fields = EDITOR_INPUTS.get(command);
  if (fields === undefined) {
    throw new ArgumentsRefused(`command must be one of ${[...EDITOR_INPUTS.keys()].join(", ")}`);
  }
  const call = fitted(fields, command === "insert" ? renamed(rest) : rest) as unknown as EditorCall;
  const { path } = call;
  if (command === "view") return await view(target, path, call.view_range);
  if (command === "create") return await writeFile(target, { path, content: call.file_text });
  if (command === "insert") return await insertText(target, path, call.insert_line, call.insert_text);
  return await editFile(target, { path, old_text: call.old_str, new_text: call.new_str, replace_all: false });
}

/** As earlier versions of the tool had it. */
function renamed(given: Arguments): Arguments {
  if (!Object.hasOwn(given, "new_str")) return given;
  const { new_str, ...rest } = given;
  return { insert_text: new_str, ...rest };
}

async function view(target: ToolTarget, path: string, span: number[] | undefined): Promise<ToolResult> {
  if (span === undefined) {
    if ((await target.sandbox.files.stat(path, { signal: target.signal })).isDir) {
      return await listFiles(target, { path, depth: 2, max_entries: VIEW_ENTRIES });
    }
    return await readFile(target, { path, first_line: 1, max_lines: VIEW_LINES });
  }
  const [first = 1, last = -1] = span;
  if (first < 1 || (last !== -1 && last < first)) {
    throw new ArgumentsRefused("view_range is the first and the last line, counted from 1");
  }
  return await readFile(target, { path, first_line: first, max_lines: last === -1 ? VIEW_LINES : last - first + 1 });
}
