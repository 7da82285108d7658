/** Which sandbox an agent works in, how long it is kept, and who deletes it. */

import type { ConnectionOptions } from "../config.js";
import type { CreateOptions } from "../create.js";
import { DayflyError } from "../errors.js";
import { InvalidSettings } from "../failures.js";
import { Sandbox } from "../sandbox.js";
import type { NetworkRuleWish } from "../wire.js";

/** How long the sandbox of an agent is kept: for one run, for all runs of the agent, or for a user. */
export type Scope = "task" | "session" | "user";

const TEMPLATE = "code-interpreter";
const TTL_SECONDS = 3600;
/** A user's sandbox sleeps between visits, and is deleted when nobody came for so long. */
const USER_TTL_SECONDS = 30 * 24 * 3600;
const USER_IDLE_SECONDS = 600;

/** What an agent is to make for itself. */
export interface PlaceOptions extends ConnectionOptions {
  /** Default `code-interpreter`. */
  template?: string | undefined;
  fromSnapshot?: CreateOptions["fromSnapshot"];
  /** Ends the sandbox when this process is killed. Default: an hour; of a user, 30 days. */
  ttlSeconds?: number | undefined;
  /** Hosts that the sandbox may reach. Default: none. */
  egressAllowlist?: readonly NetworkRuleWish[] | undefined;
  /** Default `task`. */
  scope?: Scope | undefined;
  /** With `scope: "user"`: the name of the sandbox, which is made when it is not there. */
  user?: string | undefined;
}

/** @internal */
export const PLACE_OPTIONS = ["template", "fromSnapshot", "ttlSeconds", "egressAllowlist", "scope", "user"] as const;
const CONNECTION_OPTIONS = ["apiUrl", "apiKey", "maxRetries", "client"] as const;

/** A sandbox of the caller's, who deletes it; or one that is made. */
type Place = { given: Sandbox } | { wish: CreateOptions; scope: Scope; user: string | undefined };

/** @internal */
export function placeOf(sandbox: Sandbox | undefined, options: PlaceOptions): AgentSandbox {
  if (sandbox === undefined) return new AgentSandbox(made(options));
  const others = [...PLACE_OPTIONS, ...CONNECTION_OPTIONS].filter((name) => options[name] !== undefined);
  if (others.length > 0) {
    throw new InvalidSettings(`the sandbox is there already; ${others.join(", ")} cannot be changed`);
  }
  return new AgentSandbox({ given: sandbox });
}

/** Its network is closed unless hosts are named. */
function made(options: PlaceOptions): Place {
  const { template, fromSnapshot, egressAllowlist, user, ttlSeconds, scope = "task" } = options;
  const { apiUrl, apiKey, maxRetries, client } = options;
  if (!["task", "session", "user"].includes(scope)) throw new InvalidSettings('scope is "task", "session" or "user"');
  if ((user !== undefined) !== (scope === "user")) {
    throw new InvalidSettings('scope: "user" and user: "..." belong together');
  }
  const wish: CreateOptions = {
    ...{ apiUrl, apiKey, maxRetries, client, fromSnapshot },
    template: template ?? (fromSnapshot === undefined ? TEMPLATE : undefined),
    ttlSeconds: ttlSeconds ?? (user === undefined ? TTL_SECONDS : USER_TTL_SECONDS),
    ...(egressAllowlist === undefined ? { network: { mode: "deny" } } : { egressAllowlist: [...egressAllowlist] }),
    ...(user === undefined ? {} : { idleSeconds: USER_IDLE_SECONDS, onTimeout: "hibernate" }),
  };
  return { wish, scope, user };
}

/** The sandbox of an agent, from its first use to its end. @internal */
export class AgentSandbox {
  readonly #place: Place;
  /** That of all runs, which may begin at the same time. */
  #kept: Promise<Sandbox> | undefined;

  constructor(place: Place) {
    this.#place = place;
  }

  /** The sandbox of a run; it is made if there is none. */
  async enter(signal: AbortSignal | undefined): Promise<Sandbox> {
    const place = this.#place;
    if ("given" in place) return place.given;
    const wish = { ...place.wish, signal };
    const make = (): Promise<Sandbox> => {
      return place.user === undefined ? Sandbox.create(wish) : Sandbox.getOrCreate(place.user, wish);
    };
    if (place.scope === "task") return await make();
    while (this.#kept !== undefined) {
      // Of another run, which may have been ended while it was made.
      const sandbox = await this.#kept.catch(() => undefined);
      if (sandbox !== undefined) return sandbox;
    }
    const making = make();
    this.#kept = making;
    try {
      return await making;
    } catch (error) {
      if (this.#kept === making) this.#kept = undefined;
      throw error;
    }
  }

  /** After a run: deletes what was made for it alone. */
  async leave(sandbox: Sandbox): Promise<void> {
    if (this.#isFor("task")) await deleteQuietly(sandbox);
  }

  /** Deletes what was made for all runs; that of a user stays. */
  async close(): Promise<void> {
    const kept = this.#kept;
    this.#kept = undefined;
    const sandbox = await kept?.catch(() => undefined);
    if (sandbox !== undefined && this.#isFor("session")) await deleteQuietly(sandbox);
  }

  /** Whether nothing can be done in it after a run. */
  get isOverAfterRun(): boolean {
    return this.#isFor("task");
  }

  /** The sandbox is lost: the next run makes another. */
  forget(): void {
    this.#kept = undefined;
  }

  /** How long it lives, and so what belongs to it. */
  get ttlSeconds(): number | undefined {
    const place = this.#place;
    return ("given" in place ? place.given.lastInfo.ttlSeconds : place.wish.ttlSeconds) ?? undefined;
  }

  #isFor(scope: Scope): boolean {
    return "scope" in this.#place && this.#place.scope === scope;
  }
}

async function deleteQuietly(sandbox: Sandbox): Promise<void> {
  try {
    await sandbox.delete();
  } catch (error) {
    // Its TTL ends it when it cannot be deleted now; how the run ended is the better news.
    if (!(error instanceof DayflyError)) throw error;
  }
}
