/** Creating a sandbox, and waiting while that is refused for now. */

import type { ConnectionOptions } from "./config.js";
import type { Connection } from "./connection.js";
import { pause } from "./deadline.js";
import { NoCapacity, TemplateBaking } from "./errors.js";
import { freshKey } from "./ids.js";
import {
  BAKING_WAIT_MS,
  CAPACITY_WAIT_MS,
  WAIT_PAUSE_DEFAULT_MS,
  WAIT_PAUSE_MAX_MS,
  WAIT_PAUSE_MIN_MS,
} from "./limits.js";
import { toSnake } from "./names.js";
import type { Snapshot } from "./snapshot.js";
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

/** News of a create that has to wait. Nothing has been created yet. */
export interface WaitProgress {
  reason: "template_baking" | "no_capacity";
  /** How far a bake is, 0 to 100. */
  percent: number | undefined;
  /** The server's words. */
  message: string;
  /** Since the first refusal. */
  waitedSeconds: number;
}

/** Options of `Sandbox.create`. */
export interface CreateOptions extends ConnectionOptions, LifecycleOptions, NetworkOptions {
  /** Default `base`. */
  template?: string | undefined;
  /** Continues from a snapshot instead. */
  fromSnapshot?: string | Snapshot | undefined;
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Up to 3, made by `volume.mount`. */
  volumes?: readonly VolumeMount[] | undefined;
  /** Processors that it may use at most; may be a fraction. */
  cpu?: number | undefined;
  diskGb?: number | undefined;
  /** Hears why a create has to wait, and how far a bake is. */
  onProgress?: ((progress: WaitProgress) => void) | undefined;
  /** How long to wait at most. Default: half an hour for a bake, a minute for room. */
  waitSeconds?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Creates, and waits while the template is baked or the host has no room. @internal */
export async function createWhenReady(connection: Connection, options: CreateOptions): Promise<Wire["Sandbox"]> {
  const body = createBody(options);
  let firstRefusalAt: number | undefined;
  for (;;) {
    try {
      return await connection.json<Wire["Sandbox"]>({
        method: "POST",
        path: ["sandboxes"],
        json: body,
        // A refusal has created nothing, so every attempt that follows one is a new request.
        headers: { "idempotency-key": freshKey() },
        isRepeatable: true,
        signal: options.signal,
      });
    } catch (error) {
      if (!(error instanceof TemplateBaking) && !(error instanceof NoCapacity)) throw error;
      firstRefusalAt ??= Date.now();
      const waitedMs = Date.now() - firstRefusalAt;
      const waitMs = waitAfter(error, waitedMs, options);
      if (waitMs === undefined) throw error;
      options.onProgress?.({
        reason: error instanceof TemplateBaking ? "template_baking" : "no_capacity",
        percent: error instanceof TemplateBaking ? error.percent : undefined,
        message: error.message,
        waitedSeconds: waitedMs / 1000,
      });
      await pause(waitMs, options.signal);
    }
  }
}

/** How long to wait after a refusal; `undefined` when it has lasted too long. */
function waitAfter(error: TemplateBaking | NoCapacity, waitedMs: number, options: CreateOptions): number | undefined {
  const usualMs = error instanceof TemplateBaking ? BAKING_WAIT_MS : CAPACITY_WAIT_MS;
  const limitMs = options.waitSeconds === undefined ? usualMs : options.waitSeconds * 1000;
  if (waitedMs >= limitMs) return undefined;
  const askedMs = error.retryAfterSeconds === undefined ? WAIT_PAUSE_DEFAULT_MS : error.retryAfterSeconds * 1000;
  const waitMs = Math.min(Math.max(askedMs, WAIT_PAUSE_MIN_MS), WAIT_PAUSE_MAX_MS);
  return Math.min(waitMs, limitMs - waitedMs);
}

function createBody(options: CreateOptions): Record<string, unknown> {
  // Named one by one: what is only for this side must not be sent.
  const { fromSnapshot, template, metadata, volumes, cpu, diskGb } = options;
  const { ttlSeconds, persistent, idleSeconds, onTimeout, egressAllowlist, network } = options;
  const snapshotId = typeof fromSnapshot === "object" ? fromSnapshot.id : fromSnapshot;
  const lifecycle = { ttlSeconds, persistent, idleSeconds, onTimeout };
  const origin = { template, fromSnapshot: snapshotId, volumes, cpu, diskGb };
  return toSnake({ ...origin, ...lifecycle, metadata, egressAllowlist, network });
}
