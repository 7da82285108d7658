/**
 * A conversation that can be stored, resumed and replayed, here or in Python. The format is JSON with a
 * version. What this program does not know in it is refused, rather than left out of a conversation that
 * goes on. Who can write a stored conversation can have the model believe anything.
 */

import { requireBuiltIn } from "../runtime.js";
import { failedCall, type Message, type Turn } from "./conversation.js";
import { TranscriptRefused } from "./errors.js";
import type { ModelFunction } from "./model.js";
import { fieldsOf, listOf, messageFromJson, messageToJson, stringOf } from "./transcript-json.js";

const FORMAT = "dayfly-transcript";
const VERSION = 1;
/** Of a call that has no result. @internal */
export const INTERRUPTED = "error: whether this call was carried out is not known: the run was interrupted";

/**
 * All that was said. `stop` is why the last run ended, if it has: a `StopReason`, or `cancelled`.
 *
 * @example
 * ```ts
 * await result.transcript.save("run.json");
 * await agent.run("go on", { transcript: await Transcript.load("run.json") });
 * ```
 */
export class Transcript {
  readonly messages: Message[];
  stop: string | undefined;

  constructor(messages: readonly Message[] = [], stop?: string) {
    this.messages = [...messages];
    this.stop = stop;
  }

  /** It as plain data, which is also what `JSON.stringify` makes of it. */
  toJSON(): Record<string, unknown> {
    return { format: FORMAT, version: VERSION, stop: this.stop ?? null, messages: this.messages.map(messageToJson) };
  }

  /** From what `toJSON` gave. `TranscriptRefused` if anything in it is not known. */
  static fromJSON(data: unknown): Transcript {
    const { format, version } = (data ?? {}) as Record<string, unknown>;
    if (format !== FORMAT || version !== VERSION) {
      throw new TranscriptRefused(`this is not a transcript of version ${VERSION}`);
    }
    const found = fieldsOf("a transcript", data, ["format", "version", "stop", "messages"]);
    const messages = listOf("messages", found["messages"]).map(messageFromJson);
    const stop = found["stop"] ?? undefined;
    return new Transcript(messages, stop === undefined ? undefined : stringOf("stop", stop));
  }

  /** Writes it to a file for its owner alone, as a whole or not at all. Needs Node, Bun or Deno. */
  async save(path: string): Promise<void> {
    const { rename, rm, writeFile } = await requireBuiltIn("node:fs/promises", "save");
    const { basename, dirname, join } = await requireBuiltIn("node:path", "save");
    // A new file under a name that nobody can guess, for its owner alone: tools print secrets.
    const part = join(dirname(path), `.${basename(path)}.${crypto.randomUUID()}`);
    try {
      await writeFile(part, JSON.stringify(this), { flag: "wx", mode: 0o600 });
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** Reads what `save` wrote. */
  static async load(path: string): Promise<Transcript> {
    const { readFile } = await requireBuiltIn("node:fs/promises", "load");
    const text = await readFile(path, "utf8");
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      throw new TranscriptRefused("this is not JSON");
    }
    return Transcript.fromJSON(data);
  }

  copy(): Transcript {
    return new Transcript(this.messages, this.stop);
  }

  /** What the model said, turn by turn. */
  turns(): Turn[] {
    return this.messages.filter((message) => message.kind === "turn");
  }

  /** A model that says again what was said: its calls are carried out anew. */
  replay(): ModelFunction {
    const turns = this.turns().values();
    return () => {
      const { value } = turns.next();
      if (value === undefined) throw new RangeError("the transcript has no further turn to replay");
      return value;
    };
  }

  /** Gives calls without a result one that says so: providers refuse them otherwise. @internal */
  closeCalls(): void {
    const last = this.messages.at(-1);
    if (last?.kind !== "turn" || last.calls.length === 0) return;
    this.messages.push({ kind: "results", results: last.calls.map((call) => failedCall(call, INTERRUPTED)) });
  }
}
