/** Disks that outlive sandboxes. */

import { connectionOf } from "./client.js";
import type { ConnectionOptions } from "./config.js";
import type { Connection } from "./connection.js";
import { NotFound } from "./errors.js";
import { InvalidSettings } from "./failures.js";
import { checkedName } from "./ids.js";
import { refuseUnknown, toCamel } from "./names.js";
import type { VolumeInfo, VolumeMount, Wire } from "./wire.js";

/** How large a volume is: one of the two. */
export interface VolumeSize {
  sizeMb?: number | undefined;
  sizeGb?: number | undefined;
}

const SIZE_OPTIONS = ["sizeMb", "sizeGb"];

/**
 * A disk with a name. One sandbox writes, or many read.
 *
 * @example
 * ```ts
 * const volume = await Volume.getOrCreate("data", { sizeGb: 1 });
 * await using sandbox = await Sandbox.create({ volumes: [volume.mount("/workspace/data")] });
 * ```
 */
export class Volume {
  readonly #connection: Connection;
  #info: VolumeInfo;

  private constructor(connection: Connection, wire: Wire["Volume"]) {
    this.#connection = connection;
    this.#info = toCamel(wire);
  }

  /** Makes a volume. The same name and size as one that exists gives that one. */
  static async create(name: string, options: VolumeSize & ConnectionOptions): Promise<Volume> {
    const connection = connectionOf("Volume.create", options, SIZE_OPTIONS);
    const json = { name, ...sizeBody(options) };
    // The same name and size again answers with the same volume.
    const call = { method: "POST", path: ["volumes"], json, isRepeatable: true } as const;
    return new Volume(connection, await connection.json(call));
  }

  static async get(name: string, options: ConnectionOptions = {}): Promise<Volume> {
    const connection = connectionOf("Volume.get", options);
    return new Volume(connection, await connection.json({ method: "GET", path: volumePath(name) }));
  }

  /** Gives the volume of this name, whatever its size, or makes it. */
  static async getOrCreate(name: string, options: VolumeSize & ConnectionOptions): Promise<Volume> {
    const { sizeMb: _, sizeGb: __, ...connection } = options;
    try {
      return await Volume.get(name, connection);
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
    return await Volume.create(name, options);
  }

  static async list(options: ConnectionOptions = {}): Promise<Volume[]> {
    const connection = connectionOf("Volume.list", options);
    const list = await connection.json<Wire["VolumeList"]>({ method: "GET", path: ["volumes"] });
    return list.items.map((wire) => new Volume(connection, wire));
  }

  static async delete(name: string, options: ConnectionOptions = {}): Promise<void> {
    await connectionOf("Volume.delete", options).done({ method: "DELETE", path: volumePath(name) });
  }

  get name(): string {
    return this.#info.name;
  }

  get sizeMb(): number {
    return this.#info.sizeMb;
  }

  get sizeGb(): number {
    return this.#info.sizeMb / 1024;
  }

  /** As the server described it last. */
  get info(): VolumeInfo {
    return this.#info;
  }

  /** For the `volumes` of a new sandbox. Default path: `/volumes/NAME`. */
  mount(path?: string, options: { readOnly?: boolean } = {}): VolumeMount {
    refuseUnknown("Volume.mount", options, ["readOnly"]);
    return { name: this.name, ...(path === undefined ? {} : { path }), readOnly: options.readOnly ?? false };
  }

  /** Makes it larger, while no sandbox has it. */
  async grow(size: VolumeSize): Promise<void> {
    refuseUnknown("Volume.grow", size, SIZE_OPTIONS);
    const call = { method: "PATCH", path: volumePath(this.name), json: sizeBody(size) } as const;
    this.#info = toCamel(await this.#connection.json<Wire["Volume"]>(call));
  }

  /** Deletes it with all that is on it. */
  async delete(): Promise<void> {
    await this.#connection.done({ method: "DELETE", path: volumePath(this.name) });
  }
}

function volumePath(name: string): string[] {
  return ["volumes", checkedName("volume name", name)];
}

function sizeBody(size: VolumeSize): Record<string, number | undefined> {
  if ((size.sizeMb === undefined) === (size.sizeGb === undefined)) {
    throw new InvalidSettings("a volume needs either sizeMb or sizeGb");
  }
  return { size_mb: size.sizeMb, size_gb: size.sizeGb };
}
