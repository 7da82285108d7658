/** Requests to one server. The only place that calls `fetch`. */

import type { ConnectionConfig, ConnectionOptions } from "./config.js";
import { resolveConfig } from "./config.js";
import { Deadline } from "./deadline.js";
import { DayflyError, errorFromAnswer } from "./errors.js";
import { ServerUnreachable, AnswerLost, ProtocolError } from "./failures.js";
import { CALL_DEADLINE_MS, STREAM_SILENCE_MS } from "./limits.js";
import { causeCodes, repeat } from "./retry.js";
import { type SseEvent, SseParser } from "./sse.js";
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

/** Codes of failures before the first byte of a request was sent. */
const UNSENT_CODES = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** @internal */
export class Connection {
  readonly #config: ConnectionConfig;

  constructor(options?: ConnectionOptions) {
    this.#config = resolveConfig(options);
  }

  get apiUrl(): string {
    return this.#config.apiUrl;
  }

  /** Makes a call whose answer is a JSON object. */
  async json<T>(call: Call): Promise<T> {
    const { bytes } = await this.content(call);
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as T;
    } catch (error) {
      throw new ProtocolError("it is no JSON", error);
    }
  }

  /** Makes a call whose answer says nothing. */
  async done(call: Call): Promise<void> {
    await this.content(call);
  }

  /** Makes a call and reads its whole answer. The deadline counts from the last byte that came. */
  content(call: Call): Promise<Content> {
    return this.#repeated(call, async () => {
      const deadline = new Deadline(call.deadlineMs ?? CALL_DEADLINE_MS, call.signal);
      try {
        const response = await this.#send(call, deadline);
        return { bytes: await readWhole(response, deadline), headers: response.headers };
      } catch (error) {
        throw this.#meaning(error, deadline);
      } finally {
        deadline.end();
      }
    });
  }

  /** Makes a call and gives the body as it comes. The caller reads or cancels it. */
  open(call: Call): Promise<OpenContent> {
    return this.#repeated(call, async () => {
      const deadline = new Deadline(call.deadlineMs ?? CALL_DEADLINE_MS, call.signal);
      try {
        const response = await this.#send(call, deadline);
        return { body: response.body ?? new Blob([]).stream(), headers: response.headers } as OpenContent;
      } catch (error) {
        throw this.#meaning(error, deadline);
      } finally {
        deadline.end();
      }
    });
  }

  /** Opens a stream of events. What is thrown here was thrown before the first of them. */
  async events(call: Call): Promise<AsyncGenerator<SseEvent, void, undefined>> {
    const headers = { ...call.headers, accept: "text/event-stream" };
    const { body } = await this.open({ ...call, headers });
    return readEvents(body, call.signal);
  }

  #repeated<T>(call: Call, attempt: () => Promise<T>): Promise<T> {
    const isStream = call.content instanceof ReadableStream;
    const rules = {
      isRepeatable: !isStream && (call.isRepeatable ?? call.method !== "POST"),
      // A stream that was begun cannot be sent again.
      maxRetries: isStream || call.isSentOnce ? 0 : this.#config.maxRetries,
      waitsLong: call.waitsLong ?? false,
      signal: call.signal,
    };
    return repeat(rules, attempt);
  }

  /** Sends a request; anything but a success is an error. */
  async #send(call: Call, deadline: Deadline): Promise<Response> {
    const headers: Record<string, string> = { "user-agent": `dayfly-typescript/${VERSION}`, ...call.headers };
    if (this.#config.apiKey !== undefined) headers["authorization"] = `Bearer ${this.#config.apiKey}`;
    const init: RequestInit & { duplex?: "half" } = {
      method: call.method,
      headers,
      // The key must not follow a redirect to another host.
      redirect: "manual",
      signal: deadline.signal,
    };
    if (call.json !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(call.json);
    } else if (call.content !== undefined) {
      headers["content-type"] ??= "application/octet-stream";
      init.body = call.content as NonNullable<RequestInit["body"]>;
      if (call.content instanceof ReadableStream) init.duplex = "half";
    }
    const response = await fetch(this.#address(call), init);
    if (response.ok) return response;
    // The status is known; a body that cannot be read does not change it.
    const body = await response.text().catch(() => "");
    if (response.status < 400) throw new ProtocolError(`it redirects (HTTP status ${response.status})`);
    throw errorFromAnswer(response.status, response.headers.get("retry-after"), body);
  }

  #address(call: Call): string {
    const path = ["v1", ...call.path].map(encodeURIComponent).join("/");
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const text = query.toString();
    return `${this.#config.apiUrl}/${path}${text === "" ? "" : `?${text}`}`;
  }

  /** Sorts what `fetch` threw by what the caller can know about the server's state. */
  #meaning(error: unknown, deadline: Deadline): unknown {
    if (error instanceof DayflyError) return error;
    if (deadline.failure !== undefined) return deadline.failure;
    const codes = causeCodes(error);
    if (UNSENT_CODES.some((code) => codes.has(code))) return new ServerUnreachable(this.apiUrl, error);
    return new AnswerLost(error);
  }
}

async function readWhole(response: Response, deadline: Deadline): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array();
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    deadline.restart();
    pieces.push(piece);
    length += piece.length;
  }
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}

/** The events of a body. Ends with the body; only the caller knows whether that was an end. */
async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<SseEvent, void, undefined> {
  const parser = new SseParser();
  const reader = body.getReader();
  try {
    for (;;) {
      const piece = await readPiece(reader, signal);
      if (piece === undefined) return;
      yield* parser.push(piece);
    }
  } finally {
    // Hanging up is all that is left to do, and nobody waits for its outcome.
    reader.cancel().catch(() => undefined);
  }
}

/** The next bytes, however quiet or broken the connection is. */
async function readPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array | undefined> {
  const silence = new Deadline(STREAM_SILENCE_MS, signal);
  const hush = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal?.aborted ? signal.reason : new AnswerLost(silence.failure));
    if (silence.signal.aborted) stop();
    else silence.signal.addEventListener("abort", stop, { once: true });
  });
  try {
    const { done, value } = await Promise.race([reader.read(), hush]);
    return done ? undefined : value;
  } catch (error) {
    if (error instanceof DayflyError || signal?.aborted) throw error;
    throw new AnswerLost(error);
  } finally {
    silence.end();
  }
}
