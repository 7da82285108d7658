/** Creating a sandbox, and waiting while that is refused for now. */

import type { TemplateLike } from "./builds.js";
import type { ConnectionOptions } from "./config.js";
import type { Connection } from "./connection.js";
import { type WaitProgress, Waits } from "./create-wait.js";
import { pause } from "./deadline.js";
import { freshKey } from "./ids.js";
import { CALL_DEADLINE_MS, STATE_DEADLINE_MS } from "./limits.js";
import { refuseUnknown, toSnake } from "./names.js";
import type { Snapshot } from "./snapshot.js";
import { deleteSandboxes, makeOrUndo } from "./undo.js";
import type { NetworkRuleWish, NetworkWish, OnTimeout, VolumeMount, Wire } from "./wire.js";

/** How long a sandbox lives. */
export interface LifecycleOptions {
  /** Deleted that long after it was set, whatever it does. Default 3600. */
  ttlSeconds?: number | undefined;
  /** Never reaped for idleness, and not deleted at the end of `await using`. */
  persistent?: boolean | undefined;
  /** After that long without activity `onTimeout` happens. Default: never. */
  idleSeconds?: number | undefined;
  /** Default `delete`. */
  onTimeout?: OnTimeout | undefined;
}

/** What a sandbox may reach: one of the two, or neither for the project's default. */
export interface NetworkOptions {
  /** Short for a `network` of mode `allowlist`. An empty list lets nothing through. */
  egressAllowlist?: readonly NetworkRuleWish[] | undefined;
  network?: NetworkWish | undefined;
}

/** Options of `Sandbox.create`. */
export interface CreateOptions extends ConnectionOptions, LifecycleOptions, NetworkOptions {
  /**
   * Stands for the id, as in `Sandbox.connect(name)`, until the sandbox is deleted. A second one of that
   * name is refused (`AlreadyExists`); see `Sandbox.getOrCreate`.
   */
  name?: string | undefined;
  /** Default `base`. A name, or what `Template.build` gave. */
  template?: TemplateLike | undefined;
  /** Continues from a snapshot instead: itself, its id or its name. */
  fromSnapshot?: string | Snapshot | undefined;
  /**
   * Of `fromSnapshot` the disk alone: a machine boots anew on it, with all files and no process. It
   * takes the time of a boot, and works where the snapshot's memory cannot be restored any more.
   */
  diskOnly?: boolean | undefined;
  metadata?: Readonly<Record<string, string>> | undefined;
  /**
   * Environment variables of every command and context. The server keeps them, and shows their names only
   * (`envNames` of `info`).
   */
  env?: Readonly<Record<string, string>> | undefined;
  /** Up to 3, made by `volume.mount`. */
  volumes?: readonly VolumeMount[] | undefined;
  /** CPUs that it may use at most; may be a fraction. */
  cpu?: number | undefined;
  /**
   * MiB: the template's, or a larger multiple of 128. Another size than the template's, or more CPUs, is baked when
   * somebody first asks for it, and waited for like a template.
   */
  memoryMb?: number | undefined;
  diskGb?: number | undefined;
  /**
   * `reserved`: promised in full; `shared`, on a host that has such: it may sleep for others while it is idle. Without
   * it the host decides.
   */
  class?: "reserved" | "shared" | undefined;
  /** Hears why a create has to wait, and how far a bake is. */
  onProgress?: ((progress: WaitProgress) => void) | undefined;
  /** How long to wait at most. Default: half an hour for a bake, a minute for room, half a minute for a node. */
  waitSeconds?: number | undefined;
  /** Gives up waiting. What is made in spite of it is deleted. */
  signal?: AbortSignal | undefined;
}

/** What a sandbox of a given snapshot may be given. @internal */
export const SNAPSHOT_CREATE_OPTIONS = [
  ...["ttlSeconds", "persistent", "idleSeconds", "onTimeout", "egressAllowlist", "network", "diskOnly", "metadata"],
  ...["env", "volumes", "cpu", "diskGb", "class", "onProgress", "waitSeconds", "signal"],
];
/** @internal */
export const CREATE_OPTIONS = [
  ...SNAPSHOT_CREATE_OPTIONS,
  ...["apiUrl", "apiKey", "maxRetries", "client", "name", "template", "fromSnapshot", "memoryMb"],
];

/** Creates, and waits while the template is baked, the host has no room or the node starts. @internal */
export async function createWhenReady(connection: Connection, options: CreateOptions): Promise<Wire["Sandbox"]> {
  refuseUnknown("Sandbox.create", options, CREATE_OPTIONS);
  const body = createBody(options);
  const waits = new Waits(options.waitSeconds);
  let firstRefusalAt: number | undefined;
  let hasWarned = false;
  for (;;) {
    try {
      return await createOnce(connection, body, options);
    } catch (error) {
      firstRefusalAt ??= Date.now();
      const wait = waits.after(error, Date.now() - firstRefusalAt);
      if (wait === undefined) throw error;
      options.onProgress?.(wait.progress);
      if (!hasWarned && options.onProgress === undefined) hasWarned = warn(connection, wait.progress);
      await pause(wait.pauseMs, options.signal);
    }
  }
}

/** A bake takes minutes; whoever waits should know for what. */
function warn(connection: Connection, { reason, message }: WaitProgress): boolean {
  if (reason !== "template_baking") return false;
  const { logger = console } = connection;
  logger.warn?.(`dayfly: a create waits: ${message}`);
  return true;
}

/** One attempt. Every one that follows a refusal, which has created nothing, is a new request. */
function createOnce(connection: Connection, json: object, options: CreateOptions): Promise<Wire["Sandbox"]> {
  const call = {
    method: "POST",
    path: ["sandboxes"],
    json,
    headers: { "idempotency-key": freshKey() },
    isRepeatable: true,
    deadlineMs: options.diskOnly === true ? STATE_DEADLINE_MS : CALL_DEADLINE_MS,
  } as const;
  return makeOrUndo(
    connection,
    options.signal,
    () => connection.json<Wire["Sandbox"]>(call),
    ({ id }) => deleteSandboxes(connection, [id]),
  );
}

function createBody(options: CreateOptions): Record<string, unknown> {
  // Named one by one: what is only for this side must not be sent.
  const { fromSnapshot, diskOnly, name, template, metadata, env, volumes, cpu, memoryMb, diskGb } = options;
  const { ttlSeconds, persistent, idleSeconds, onTimeout, egressAllowlist, network } = options;
  const snapshotId = typeof fromSnapshot === "object" ? fromSnapshot.id : fromSnapshot;
  const templateName = typeof template === "object" ? template.reference : template;
  const lifecycle = { ttlSeconds, persistent, idleSeconds, onTimeout };
  const origin = { name, template: templateName, fromSnapshot: snapshotId, diskOnly, volumes, cpu, memoryMb, diskGb };
  return toSnake({ ...origin, ...lifecycle, class: options.class, metadata, env, egressAllowlist, network });
}
