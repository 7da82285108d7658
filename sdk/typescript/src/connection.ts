/** Requests to one server. The only place that calls `fetch`. */

import {
  type ClientOptions,
  completeConfig,
  type ConnectionConfig,
  givenConfig,
  type GivenConfig,
  type Logger,
} from "./config.js";
import { Deadline } from "./deadline.js";
import { DayflyError, errorFromAnswer } from "./errors.js";
import { readEvents } from "./event-reader.js";
import { InvalidSettings, ProtocolError } from "./failures.js";
import { CONNECTIONS_MAX, STREAM_SILENCE_MS } from "./limits.js";
import { type Place, Places, withPlace } from "./places.js";
import { repeat } from "./retry.js";
import { isBun } from "./runtime.js";
import type { SseEvent } from "./sse.js";
import { transportError } from "./transport-error.js";
import { VERSION } from "./version.js";

export type QueryValue = string | number | boolean | undefined;

/** One call. */
export interface Call {
  method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  /** Segments behind `/v1`; each is escaped. */
  path: readonly string[];
  query?: Readonly<Record<string, QueryValue>>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  content?: Uint8Array | ReadableStream<Uint8Array>;
  headers?: Readonly<Record<string, string>>;
  /** Whether the call may follow one that perhaps arrived. Default: yes, unless it is a POST. */
  isRepeatable?: boolean;
  /** For a caller that does the repeating itself. */
  isSentOnce?: boolean;
  /** Asks again when the platform gives up waiting for the head of an answer. */
  waitsLong?: boolean;
  deadlineMs?: number;
  /** The most of a body that is read as a whole; more is refused. */
  bytesMax?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** The body of an answer, whole. */
export interface Content {
  bytes: Uint8Array;
  headers: Headers;
}

/** A body that is still coming. */
export interface OpenContent {
  body: ReadableStream<Uint8Array>;
  headers: Headers;
}

/** Takes what is wanted of a response. */
type Take<T> = (response: Response, deadline: Deadline, place: Place) => T | Promise<T>;

/** Of everything that was made without a client: each has a connection of its own, and one host is behind them. */
const SHARED_PLACES = new Places(CONNECTIONS_MAX);

/** @internal */
export class Connection {
  readonly #given: GivenConfig;
  /** What was given and what files say, once somebody had to know. */
  #complete: Promise<ConnectionConfig> | undefined;
  #apiUrl: string;
  readonly #background = new Set<Promise<void>>();
  readonly #exchanges = new Set<Deadline>();
  #places: Places;
  #isClosed = false;

  /** Shares its places with all others that were made without a client. */
  constructor(options?: ClientOptions) {
    this.#given = givenConfig(options);
    this.#apiUrl = this.#given.apiUrl ?? "";
    this.#places = SHARED_PLACES;
  }

  /** One with places of its own. */
  static apart(options: ClientOptions): Connection {
    const connection = new Connection(options);
    connection.#places = new Places(connection.#given.maxConnections);
    return connection;
  }

  /** The address of the server. Known when a call was made. */
  get apiUrl(): string {
    return this.#apiUrl;
  }

  get logger(): Logger | undefined {
    return this.#given.logger;
  }

  /** Makes a call whose answer is a JSON object. */
  async json<T>(call: Call): Promise<T> {
    const { bytes, headers } = await this.content(call);
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as T;
    } catch (error) {
      throw strangeContent(headers, error);
    }
  }

  /** Makes a call whose answer says nothing. */
  async done(call: Call): Promise<void> {
    await this.content(call);
  }

  /** Makes a call and reads its whole answer. The deadline counts from the last byte that came. */
  content(call: Call): Promise<Content> {
    return this.#exchange(call, async (response, deadline) => {
      return { bytes: await readWhole(response, deadline, call.bytesMax), headers: response.headers };
    });
  }

  /** Makes a call and gives the body as it comes. The caller reads or cancels it. */
  open(call: Call): Promise<OpenContent> {
    return this.#exchange(call, ({ body, headers }, _, place) => {
      return { body: body === null ? new Blob([]).stream() : withPlace(body, place), headers } as OpenContent;
    });
  }

  /** Opens a stream of events. What is thrown here was thrown before the first of them. */
  async events(call: Call): Promise<AsyncGenerator<SseEvent, void, undefined>> {
    const { body, headers } = await this.open({ ...call, headers: { ...call.headers, accept: "text/event-stream" } });
    if (headers.get("content-type")?.startsWith("text/html") === true) {
      body.cancel().catch(() => undefined);
      throw strangeContent(headers);
    }
    return readEvents(body, () => this.#deadline(STREAM_SILENCE_MS, call.signal));
  }

  /** Lets work go on that nobody waits for, and whose failure nobody hears of. */
  inBackground(work: Promise<unknown>): void {
    const quiet = work.then(
      () => undefined,
      () => undefined,
    );
    this.#background.add(quiet);
    void quiet.then(() => this.#background.delete(quiet));
  }

  /** Waits for what goes on in the background, ends everything else, and allows no more. */
  async close(): Promise<void> {
    await Promise.all(this.#background);
    this.#isClosed = true;
    for (const exchange of this.#exchanges) exchange.stop(closed());
  }

  /** Sends a request, again where that is right, and takes its answer. */
  async #exchange<T>(call: Call, take: Take<T>): Promise<T> {
    const config = await this.#config();
    const isStream = call.content instanceof ReadableStream;
    const rules = {
      isRepeatable: !isStream && (call.isRepeatable ?? call.method !== "POST"),
      // A stream that was begun cannot be sent again.
      maxRetries: isStream || call.isSentOnce ? 0 : config.maxRetries,
      waitsLong: call.waitsLong ?? false,
      signal: call.signal,
      onRepeat: (error: unknown, waitMs: number) => {
        const why = error instanceof Error ? error.message : String(error);
        config.logger?.debug?.(`${nameOf(call)}: again in ${Math.round(waitMs)} ms: ${why}`);
      },
    };
    return await repeat(rules, async () => {
      const limitMs = call.deadlineMs ?? config.timeoutMs;
      const place = await this.#places.take(limitMs, call.signal);
      try {
        return await this.#attempt(config, call, limitMs, (response, deadline) => take(response, deadline, place));
      } finally {
        if (!place.isKept) place.release();
      }
    });
  }

  async #attempt<T>(
    config: ConnectionConfig,
    call: Call,
    limitMs: number,
    take: (response: Response, deadline: Deadline) => T | Promise<T>,
  ): Promise<T> {
    const deadline = this.#deadline(limitMs, call.signal);
    try {
      return await take(await send(config, call, deadline), deadline);
    } catch (error) {
      if (error instanceof DayflyError) throw error;
      throw deadline.failure ?? transportError(error, config.apiUrl);
    } finally {
      deadline.end();
    }
  }

  #deadline(limitMs: number, signal: AbortSignal | undefined): Deadline {
    if (this.#isClosed) throw closed();
    const deadline = new Deadline(limitMs, signal, (ended) => this.#exchanges.delete(ended));
    this.#exchanges.add(deadline);
    return deadline;
  }

  async #config(): Promise<ConnectionConfig> {
    this.#complete ??= completeConfig(this.#given);
    const config = await this.#complete;
    this.#apiUrl = config.apiUrl;
    return config;
  }
}

function closed(): InvalidSettings {
  return new InvalidSettings("the client is closed");
}

/** Sends a request; anything but a success is an error. */
async function send(config: ConnectionConfig, call: Call, deadline: Deadline): Promise<Response> {
  const start = Date.now();
  const response = await (config.fetch ?? fetch)(address(config, call), requestOf(config, call, deadline));
  const id = response.headers.get("x-request-id");
  const took = `${response.status} in ${Date.now() - start} ms${id === null ? "" : `, request ${id}`}`;
  config.logger?.debug?.(`${nameOf(call)}: ${took}`);
  if (response.ok) return response;
  // The status is known; a body that cannot be read does not change it.
  const body = await response.text().catch(() => "");
  if (response.status < 400) throw redirected(response, config.apiUrl);
  throw errorFromAnswer(response.status, response.headers, body, config.apiKey !== undefined);
}

function requestOf(config: ConnectionConfig, call: Call, deadline: Deadline): RequestInit {
  const headers: Record<string, string> = {
    "user-agent": `dayfly-typescript/${VERSION}`,
    ...config.headers,
    ...call.headers,
  };
  if (config.apiKey !== undefined) headers["authorization"] = `Bearer ${config.apiKey}`;
  const init: RequestInit & { duplex?: "half"; timeout?: false } = {
    method: call.method,
    headers,
    // The key must not follow a redirect to another host.
    redirect: "manual",
    signal: deadline.signal,
  };
  if (isBun()) init.timeout = false;
  if (call.json !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(call.json);
  } else if (call.content !== undefined) {
    headers["content-type"] ??= "application/octet-stream";
    init.body = call.content as NonNullable<RequestInit["body"]>;
    if (call.content instanceof ReadableStream) init.duplex = "half";
  }
  return init;
}

function address(config: ConnectionConfig, call: Call): string {
  const path = ["v1", ...call.path].map(encodeURIComponent).join("/");
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return `${config.apiUrl}/${path}${text === "" ? "" : `?${text}`}`;
}

/** For the log. Without the query, which has paths of files. */
function nameOf(call: Call): string {
  return `${call.method} /v1/${call.path.join("/")}`;
}

/** Something stands before the server and sends its visitors elsewhere, most often to https. */
function redirected(response: Response, apiUrl: string): ProtocolError {
  const location = response.headers.get("location");
  let target: string | undefined;
  try {
    const url = new URL(location ?? "", apiUrl);
    target = url.origin + url.pathname.replace(/\/v1(\/.*)?$/, "").replace(/\/+$/, "");
  } catch {
    // Somewhere that cannot be told.
  }
  const what = `HTTP status ${response.status} redirects${target === undefined ? "" : ` to ${target}`}`;
  const better = target === undefined || target === apiUrl ? "another address" : target;
  return new ProtocolError(what, undefined, `set apiUrl or DAYFLY_API_URL to ${better}; redirects are not followed`);
}

/** A success whose body somebody else wrote. */
function strangeContent(headers: Headers, cause?: unknown): ProtocolError {
  const type = headers.get("content-type")?.split(";")[0] ?? "of no type";
  const what = type === "text/html" ? "it is a web page (text/html)" : `it is not JSON (${type})`;
  return new ProtocolError(what, cause, "is apiUrl or DAYFLY_API_URL the address of a Dayfly server?");
}

async function readWhole(response: Response, deadline: Deadline, bytesMax = Infinity): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array();
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    deadline.restart();
    pieces.push(piece);
    length += piece.length;
    if (length > bytesMax) throw new ProtocolError(`it is longer than the ${bytesMax} bytes that were asked for`);
  }
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}
