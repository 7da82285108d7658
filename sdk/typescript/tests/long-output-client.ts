// Listens to a long command, and says what that added to its memory. A program, so that its memory is that of a client alone.

import { Sandbox } from "dayfly";

/** What came of it. */
export interface Heard {
  /** How many characters the listener was given. */
  characters: number;
  omittedBytes: number;
  /** The most that was resident at any time, over what it was in short commands before. */
  addedMib: number;
}

const PIECES_BETWEEN_LOOKS = 128;

/** What is resident when all that nobody needs any more is gone: when V8 collects by itself is its own affair. */
function residentBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

async function listen(sandbox: Sandbox, command: string): Promise<Omit<Heard, "addedMib"> & { mostBytes: number }> {
  let [characters, pieces, mostBytes] = [0, 0, 0];
  const onStdout = (text: string): void => {
    characters += text.length;
    pieces += 1;
    if (pieces % PIECES_BETWEEN_LOOKS === 0) mostBytes = Math.max(mostBytes, residentBytes());
  };
  const result = await sandbox.exec(command, { onStdout });
  mostBytes = Math.max(mostBytes, residentBytes());
  return { characters, omittedBytes: result.omitted[0]?.bytes ?? 0, mostBytes };
}

if (globalThis.gc === undefined) throw new Error("run it with --expose-gc");
const sandbox = await Sandbox.connect("sb-1", { apiUrl: process.argv[2] ?? "", apiKey: "df_test" });
// Twice: a heap grows to what its work asks for, and the result of the first is still there in the second.
await listen(sandbox, "short");
const warm = await listen(sandbox, "short");
const { mostBytes, ...heard } = await listen(sandbox, "long");
console.log(JSON.stringify({ ...heard, addedMib: (mostBytes - warm.mostBytes) / (1 << 20) } satisfies Heard));
