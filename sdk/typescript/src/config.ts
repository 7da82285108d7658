/**
 * Where the server is, with which key, and how it is asked.
 *
 * The first that says something wins: options, then `DAYFLY_API_URL` and `DAYFLY_API_KEY`, then the
 * current context of `dayfly login`, then what a daemon on this host has written for its group, then the
 * default address. A context's key goes to that context's address and to no other.
 */

import type { Client } from "./client.js";
import { currentContext, type FoundServer, localAccess } from "./context-file.js";
import { InvalidSettings } from "./failures.js";
import { CALL_DEADLINE_MS, CONNECTIONS_MAX, RETRIES_DEFAULT } from "./limits.js";
import { refuseUnknown } from "./names.js";
import { variable } from "./runtime.js";

/** Hears what this package does. `console` is one. No key is ever told. */
export interface Logger {
  /** Each request and its response, and why one is sent again. */
  debug?: ((message: string) => void) | undefined;
  /** What a person should know, such as a create that waits for a bake. */
  warn?: ((message: string) => void) | undefined;
}

/** Options of `new Client`. */
export interface ClientOptions {
  /** Address of the server. Default: `DAYFLY_API_URL`, else that of `dayfly login`, else `http://127.0.0.1:7070`. */
  apiUrl?: string | undefined;
  /** Key for the server. Default: `DAYFLY_API_KEY`, else that of `dayfly login`. */
  apiKey?: string | undefined;
  /** How often a call is repeated at most, where that is safe. Default 3. */
  maxRetries?: number | undefined;
  /** Another `fetch`, such as one that goes through a proxy. */
  fetch?: typeof fetch | undefined;
  /** Headers for every request, such as those that a proxy wants. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** How many requests are under way at once at most; what is over waits for one to end. Default 100. */
  maxConnections?: number | undefined;
  /** How long an ordinary call may take. Commands, forks and snapshots have limits of their own. Default 60,000. */
  timeoutMs?: number | undefined;
  /** Default: none, except that a create which waits for a bake says so with `console.warn`. */
  logger?: Logger | undefined;
}

/** Common to every call that begins a conversation with a server. */
export interface ConnectionOptions {
  /** As with `new Client`. */
  apiUrl?: string | undefined;
  /** As with `new Client`. */
  apiKey?: string | undefined;
  /** As with `new Client`. */
  maxRetries?: number | undefined;
  /** Instead of the three: a client that knows them. */
  client?: Client | undefined;
}

/** What can be said before a file is read. */
export interface GivenConfig {
  apiUrl: string | undefined;
  apiKey: string | undefined;
  maxRetries: number;
  fetch: typeof fetch | undefined;
  headers: Readonly<Record<string, string>>;
  maxConnections: number;
  timeoutMs: number;
  logger: Logger | undefined;
}

export interface ConnectionConfig extends GivenConfig {
  /** Without a slash at its end. */
  apiUrl: string;
}

const API_URL_DEFAULT = "http://127.0.0.1:7070";
const CLIENT_OPTIONS = ["apiUrl", "apiKey", "maxRetries", "fetch", "headers", "maxConnections", "timeoutMs", "logger"];

/** Checks what was given. */
export function givenConfig(options: ClientOptions = {}): GivenConfig {
  refuseUnknown("new Client", options, CLIENT_OPTIONS);
  const apiUrl = options.apiUrl ?? variable("DAYFLY_API_URL");
  const apiKey = options.apiKey ?? variable("DAYFLY_API_KEY");
  const maxRetries = options.maxRetries ?? RETRIES_DEFAULT;
  if (!Number.isInteger(maxRetries) || maxRetries < 0) {
    throw new InvalidSettings("maxRetries must be a whole number of 0 or more");
  }
  const maxConnections = options.maxConnections ?? CONNECTIONS_MAX;
  if (!Number.isInteger(maxConnections) || maxConnections < 1) {
    throw new InvalidSettings("maxConnections must be a whole number of 1 or more");
  }
  const timeoutMs = options.timeoutMs ?? CALL_DEADLINE_MS;
  if (!(timeoutMs > 0)) throw new InvalidSettings("timeoutMs must be more than 0");
  return {
    apiUrl: apiUrl === undefined ? undefined : checkedUrl(apiUrl),
    apiKey: apiKey === undefined ? undefined : checkedKey(apiKey),
    maxRetries,
    fetch: options.fetch,
    headers: checkedHeaders(options.headers ?? {}),
    maxConnections,
    timeoutMs,
    logger: options.logger,
  };
}

/** Adds what files say to what was given. */
export async function completeConfig(given: GivenConfig): Promise<ConnectionConfig> {
  if (given.apiUrl !== undefined && given.apiKey !== undefined) return { ...given, apiUrl: given.apiUrl };
  const found = await foundServer(given);
  const foundUrl = found === undefined ? undefined : checkedUrl(found.url);
  const apiUrl = given.apiUrl ?? foundUrl ?? API_URL_DEFAULT;
  // A key must not travel to an address that it was not given for.
  const foundKey = foundUrl === apiUrl ? found?.key : undefined;
  return { ...given, apiUrl, apiKey: given.apiKey ?? (foundKey === undefined ? undefined : checkedKey(foundKey)) };
}

async function foundServer(given: GivenConfig): Promise<FoundServer | undefined> {
  return (await currentContext()) ?? (given.apiKey === undefined ? await localAccess() : undefined);
}

function checkedUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidSettings(`the address of the server is no URL: ${JSON.stringify(text)}`, ADDRESS_HINT);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new InvalidSettings(`the address of the server must begin with http or https: ${text}`, ADDRESS_HINT);
  }
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    throw new InvalidSettings("the address of the server must be scheme, host, port and path alone", ADDRESS_HINT);
  }
  const address = (url.origin + url.pathname).replace(/\/+$/, "");
  if (address.endsWith("/v1")) {
    const hint = `use ${address.slice(0, -"/v1".length)}: the version of the API is added to it`;
    throw new InvalidSettings(`the address of the server must not end with /v1: ${text}`, hint);
  }
  return address;
}

const ADDRESS_HINT = "it comes from apiUrl, DAYFLY_API_URL or `dayfly login`, and is such as http://127.0.0.1:7070";

/** Anything else would break the header; the key itself is in no message. */
function checkedKey(text: string): string {
  const key = text.trim();
  const hint = "it comes from apiKey, DAYFLY_API_KEY or `dayfly login`";
  if (key === "") throw new InvalidSettings("the API key is empty", hint);
  if (!/^[\x21-\x7e]+$/.test(key)) throw new InvalidSettings("the API key has characters that no key has", hint);
  return key;
}

function checkedHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (lower === "authorization") throw new InvalidSettings("the key goes into apiKey, not into the headers");
    checked[lower] = value;
  }
  return checked;
}
