/** A server, and how it is asked. */

import type { ClientOptions, ConnectionOptions } from "./config.js";
import { Connection } from "./connection.js";
import { InvalidSettings } from "./failures.js";
import { refuseUnknown } from "./names.js";

/**
 * One server with one key, and how it is asked. Whatever takes `apiUrl` and `apiKey` takes a `client`
 * instead; without either, the environment and `dayfly login` say where the server is.
 *
 * @example
 * ```ts
 * await using client = new Client({ apiUrl: "https://dayfly.example", headers: { "x-team": "search" } });
 * await using sandbox = await Sandbox.create({ client, template: "base" });
 * ```
 */
export class Client implements AsyncDisposable {
  /** @internal */
  readonly connection: Connection;

  /** Makes no request. */
  constructor(options: ClientOptions = {}) {
    this.connection = Connection.apart(options);
  }

  /**
   * Ends it: what goes on in the background is waited for, requests that are under way are ended, and
   * no more are made. Sandboxes stay. May be repeated.
   */
  async close(): Promise<void> {
    await this.connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The connection that a call is to use. `more` names the options that the method has besides. @internal */
export function connectionOf(method: string, options: ConnectionOptions, more: readonly string[] = []): Connection {
  refuseUnknown(method, options, ["apiUrl", "apiKey", "maxRetries", "client", ...more]);
  const { client, apiUrl, apiKey, maxRetries } = options;
  if (client === undefined) return new Connection({ apiUrl, apiKey, maxRetries });
  if (apiUrl !== undefined || apiKey !== undefined || maxRetries !== undefined) {
    throw new InvalidSettings("give either a client, or apiUrl, apiKey and maxRetries");
  }
  return client.connection;
}
