/** Tools about the sandbox as a whole: moments that are kept, and ports. */

import { headOf, named } from "../model-text.js";
import { given, secondsOf, type ToolResult, type ToolTarget } from "./result.js";

const LABEL_CHARACTERS_MAX = 100;

/**
 * What a model calls a snapshot, as a label for people. A plain word would be a name, and unique within the
 * project: the second model that takes a snapshot called "before" would be refused, and would read the id
 * of somebody else's.
 */
function labelOf(name: string): string {
  return `by a tool: ${headOf(name, LABEL_CHARACTERS_MAX)}`;
}

export async function snapshot(target: ToolTarget, { name = "" }: { name?: string | undefined }): Promise<ToolResult> {
  const { sandbox, snapshotSeconds, onSnapshot } = target;
  const taken = await sandbox.snapshot({
    ...(name === "" ? {} : { name: labelOf(name) }),
    ...(snapshotSeconds === undefined ? {} : { retainSeconds: snapshotSeconds }),
  });
  onSnapshot?.(taken);
  const { id } = taken;
  return given(`snapshot ${id} was taken; rollback goes back to it`, { snapshot_id: id });
}

export async function rollback(
  { sandbox }: ToolTarget,
  { snapshot_id }: { snapshot_id: string },
): Promise<ToolResult> {
  await sandbox.rollback(snapshot_id);
  const text = `the sandbox is as it was at snapshot ${named(snapshot_id)}; what came after is lost`;
  return given(text, { snapshot_id });
}

export async function exposePort(
  target: ToolTarget,
  { port, minutes, timeout_seconds }: { port: number; minutes: number; timeout_seconds: number },
): Promise<ToolResult> {
  const { sandbox, signal } = target;
  const timeoutSeconds = secondsOf(target, timeout_seconds);
  await sandbox.waitForPort(port, { timeoutSeconds, ...(signal === undefined ? {} : { signal }) });
  const { url, pathUrl } = await sandbox.portLink(port, { ttlSeconds: minutes * 60 });
  return given(`${url} leads to port ${port} for ${minutes} minutes`, { url, path_url: pathUrl });
}
