/** Where the server is, and with which key. */

import { InvalidSettings } from "./failures.js";
import { RETRIES_DEFAULT } from "./limits.js";

/** Common to every call that begins a conversation with a server. */
export interface ConnectionOptions {
  /** Address of the server. Default: `DAYFLY_API_URL`, else `http://127.0.0.1:7070`. */
  apiUrl?: string | undefined;
  /** Key for the server. Default: `DAYFLY_API_KEY`. */
  apiKey?: string | undefined;
  /** How often a call is repeated at most, where that is safe. Default 3. */
  maxRetries?: number | undefined;
}

export interface ConnectionConfig {
  /** Without a slash at its end. */
  apiUrl: string;
  apiKey: string | undefined;
  maxRetries: number;
}

const API_URL_DEFAULT = "http://127.0.0.1:7070";

/** An empty variable is one that is not set. */
function variable(name: string): string | undefined {
  const value = typeof process === "undefined" ? undefined : process.env[name];
  return value === undefined || value === "" ? undefined : value;
}

export function resolveConfig(options: ConnectionOptions = {}): ConnectionConfig {
  const text = options.apiUrl ?? variable("DAYFLY_API_URL") ?? API_URL_DEFAULT;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidSettings(`the address of the server is no URL: ${text}`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new InvalidSettings(`the address of the server must begin with http or https: ${text}`);
  }
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    throw new InvalidSettings("the address of the server must be scheme, host, port and path alone");
  }
  const apiKey = options.apiKey ?? variable("DAYFLY_API_KEY");
  // Anything else would break the header; the key itself is in no message.
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new InvalidSettings("the key has characters that no key has");
  }
  const maxRetries = options.maxRetries ?? RETRIES_DEFAULT;
  if (!Number.isInteger(maxRetries) || maxRetries < 0) {
    throw new InvalidSettings("maxRetries must be a whole number of 0 or more");
  }
  return { apiUrl: (url.origin + url.pathname).replace(/\/+$/, ""), apiKey, maxRetries };
}
