/** What a sandbox may reach. */

import type { Connection } from "./connection.js";
import { CALL_DEADLINE_MS } from "./limits.js";
import { type Camel, refuseUnknown, toCamel, toSnake } from "./names.js";
import type { NetworkLog, NetworkMode, NetworkRule, NetworkRuleWish, Wire } from "./wire.js";

/** What a sandbox may reach. `allow` has the rules as one would write them. */
export type NetworkPolicy = Camel<Wire["Network"]> & { allow: string[] };
/** An allowlist drafted from what was tried. */
export type NetworkSuggestion = Camel<Wire["NetworkSuggestion"]> & { allow: string[] };

/**
 * The network of one sandbox. It reaches nothing unless somebody says so.
 *
 * @example
 * ```ts
 * await sandbox.network.allow("pypi.org", "*.example.com:443");
 * for (const record of (await sandbox.network.log()).records) console.log(record.name, record.decision);
 * ```
 */
export class Network {
  readonly #connection: Connection;
  readonly #sandboxId: string;

  /** @internal */
  constructor(connection: Connection, sandboxId: string) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
  }

  /** The policy that it has now. */
  async get(): Promise<NetworkPolicy> {
    return withAllow(await this.#connection.json<Wire["Network"]>({ method: "GET", path: this.#path() }));
  }

  /** Replaces the policy, for open connections as well. */
  async set(mode: NetworkMode, rules?: readonly NetworkRuleWish[]): Promise<NetworkPolicy> {
    const json = toSnake({ mode, rules });
    return withAllow(await this.#connection.json<Wire["Network"]>({ method: "PUT", path: this.#path(), json }));
  }

  /** Lets it reach more. `deny` becomes `allowlist`. */
  async allow(...rules: NetworkRuleWish[]): Promise<NetworkPolicy> {
    const call = { method: "POST", path: this.#path("allow"), json: toSnake({ rules }), isRepeatable: true } as const;
    return withAllow(await this.#connection.json<Wire["Network"]>(call));
  }

  /** Shuts it; open connections are cut. */
  deny(): Promise<NetworkPolicy> {
    return this.set("deny");
  }

  /** What it tried, oldest first. With `waitSeconds` (at most 25) waits for the first record. */
  async log(options: { after?: number; limit?: number; waitSeconds?: number } = {}): Promise<NetworkLog> {
    refuseUnknown("network.log", options, ["after", "limit", "waitSeconds"]);
    const { after, limit, waitSeconds } = options;
    const log = await this.#connection.json<Wire["NetworkLog"]>({
      method: "GET",
      path: this.#path("log"),
      query: { after, limit, wait_seconds: waitSeconds },
      deadlineMs: CALL_DEADLINE_MS + (waitSeconds ?? 0) * 1000,
    });
    return toCamel(log);
  }

  /** The smallest allowlist for what it tried. */
  async suggest(): Promise<NetworkSuggestion> {
    const call = { method: "GET", path: this.#path("suggest") } as const;
    return withAllow(await this.#connection.json<Wire["NetworkSuggestion"]>(call));
  }

  #path(...rest: string[]): string[] {
    return ["sandboxes", this.#sandboxId, "network", ...rest];
  }
}

const PORTS_DEFAULT = "80,443";

/** A rule as one would write it. */
function ruleText(rule: NetworkRule): string {
  const target = rule.host ?? rule.cidr ?? rule.id;
  const ports = rule.ports.join(",");
  return ports === PORTS_DEFAULT ? target : `${target}:${ports}`;
}

function withAllow<T extends Wire["Network"] | Wire["NetworkSuggestion"]>(wire: T): Camel<T> & { allow: string[] } {
  return { ...toCamel(wire), allow: wire.rules.map(ruleText) };
}
