/** Moments that are kept. */

import { connectionOf } from "./client.js";
import type { ConnectionOptions } from "./config.js";
import type { Connection } from "./connection.js";
import { type CreateOptions, SNAPSHOT_CREATE_OPTIONS } from "./create.js";
import { checkedName } from "./ids.js";
import { refuseUnknown, toCamel } from "./names.js";
import { Sandbox } from "./sandbox.js";
import type { SnapshotInfo, Wire } from "./wire.js";

/**
 * Memory and disk of one moment of a sandbox.
 *
 * @example
 * ```ts
 * const snapshot = await sandbox.snapshot();
 * const copy = await Sandbox.create({ fromSnapshot: snapshot });
 * ```
 */
export class Snapshot {
  readonly id: string;
  /** The sandbox that it was taken of, which may be gone. */
  readonly sandboxId: string;
  readonly info: SnapshotInfo;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, wire: Wire["Snapshot"]) {
    this.#connection = connection;
    this.info = toCamel(wire);
    this.id = this.info.id;
    this.sandboxId = this.info.sandboxId;
  }

  static async get(id: string, options: ConnectionOptions = {}): Promise<Snapshot> {
    const connection = connectionOf("Snapshot.get", options);
    const path = ["snapshots", checkedName("snapshot id", id)];
    return new Snapshot(connection, await connection.json({ method: "GET", path }));
  }

  /** All snapshots, or those of one sandbox. */
  static async list(options: ConnectionOptions & { sandboxId?: string } = {}): Promise<Snapshot[]> {
    const connection = connectionOf("Snapshot.list", options, ["sandboxId"]);
    const query = { sandbox_id: options.sandboxId };
    const list = await connection.json<Wire["SnapshotList"]>({ method: "GET", path: ["snapshots"], query });
    return list.snapshots.map((wire) => new Snapshot(connection, wire));
  }

  get template(): string {
    return this.info.template;
  }

  /** A new sandbox that goes on from this moment, or with `diskOnly` boots on its disk. */
  async createSandbox(
    options: Omit<CreateOptions, "template" | "fromSnapshot" | "memoryMb" | keyof ConnectionOptions> = {},
  ): Promise<Sandbox> {
    refuseUnknown("Snapshot.createSandbox", options, SNAPSHOT_CREATE_OPTIONS);
    return await Sandbox.createOn(this.#connection, { ...options, fromSnapshot: this });
  }

  /** Deletes it. One that is gone already is a success. */
  async delete(): Promise<void> {
    await this.#connection.done({ method: "DELETE", path: ["snapshots", this.id] });
  }
}
