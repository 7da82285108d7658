/**
 * Why a call failed. Everything that this package throws on purpose is a {@link DayflyError};
 * which class it is depends on the server's stable `code` alone, never on a text.
 */

import { hintFor } from "./hints.js";

/** What is known about a failure besides its text. */
export interface ErrorDetails {
  code?: string | undefined;
  status?: number | undefined;
  hint?: string | undefined;
  requestId?: string | undefined;
  retryAfterSeconds?: number | undefined;
  percent?: number | undefined;
  cause?: unknown;
}

/**
 * The root of all errors of this package.
 *
 * @example
 * ```ts
 * try {
 *   await sandbox.files.read("/nowhere");
 * } catch (error) {
 *   if (error instanceof NotFound) console.log(error.code, error.requestId);
 * }
 * ```
 */
export class DayflyError extends Error {
  /** The server's stable word, or this package's own for what never reached the server. */
  readonly code: string;
  /** The HTTP status, when the server responded. */
  readonly status: number | undefined;
  /** What to do about it, when that is known. */
  hint: string | undefined;
  /** Finds the request in the server's log. */
  readonly requestId: string | undefined;
  /** When to ask again, when the server says so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code ?? "";
    this.status = details.status;
    this.hint = details.hint;
    this.requestId = details.requestId;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** The server said no. Also thrown itself, for a code that this version does not know. */
export class ApiError extends DayflyError {}

/** The request does not fit the documented shape. */
export class InvalidRequest extends ApiError {}
/** No key, or not a known one. */
export class Unauthorized extends ApiError {}
/** The key, or the guest, does not permit it. */
export class Forbidden extends ApiError {}
/** No such object in this project. */
export class NotFound extends ApiError {}
/** Something is in the way; the subclasses say what. */
export class Conflict extends ApiError {}
/** The sandbox is in a state that does not allow it. */
export class WrongState extends Conflict {}
/** A sandbox has the volume in a way that excludes this. */
export class VolumeBusy extends Conflict {}
/** Something else of that name exists. */
export class AlreadyExists extends Conflict {}
/** The snapshot is needed, broken, or does not fit this host any more; `code` says which. */
export class SnapshotUnusable extends Conflict {}
/** The idempotency key was used with another request. */
export class IdempotencyConflict extends Conflict {}
/** A body, a file or a list is over its limit. */
export class TooLarge extends ApiError {}
/** Too many at once. Nothing was done. */
export class TooMany extends ApiError {}
/** The project asks too fast. Nothing was done. */
export class RateLimited extends TooMany {}
/** The project may not have more. Waiting does not help. */
export class QuotaExceeded extends ApiError {}
/** A fault of the server; `requestId` finds it in the log. */
export class ServerError extends ApiError {}
/** The server, or the template, does not do this. */
export class Unsupported extends ApiError {}
/** The guest stopped responding or is gone. */
export class GuestUnavailable extends ApiError {}
/** Nothing in the sandbox listens on this port. */
export class NothingListens extends ApiError {}
/** Not now; the subclasses say why. */
export class Unavailable extends ApiError {}
/** The host has no room. Nothing was created. */
export class NoCapacity extends Unavailable {}
/** The template could not be baked. */
export class TemplateFailed extends ApiError {}
/** The node process cannot be reached just now. */
export class NodeUnavailable extends Unavailable {}
/**
 * The server cannot write its database (`store_unavailable`) or its audit record
 * (`audit_unavailable`) just now; nothing was changed.
 */
export class StoreUnavailable extends Unavailable {}
/** The disk of the guest (`disk_full`) or of the host (`storage_full`) is full. */
export class DiskFull extends ApiError {}

/** The template is still being baked. Nothing was created. */
export class TemplateBaking extends Unavailable {
  /** How far the bake is, 0 to 100. */
  readonly percent: number | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details);
    this.percent = details.percent;
  }
}

/** The time of a command, of code or of a create was up. What ran was ended. */
export class SandboxTimeout extends ApiError {
  /** What a command had written until then, as far as it is known. */
  stdout = "";
  stderr = "";
  /** The command, when it was one. */
  execId: string | undefined;
}

type ApiErrorClass = new (message: string, details?: ErrorDetails) => ApiError;

/** The table of `docs/api.md`. Codes are never renamed. */
const CLASS_BY_CODE: ReadonlyMap<string, ApiErrorClass> = new Map<string, ApiErrorClass>([
  ["invalid_request", InvalidRequest],
  ["unauthorized", Unauthorized],
  ["forbidden", Forbidden],
  ["project_suspended", Forbidden],
  ["not_found", NotFound],
  ["no_such_route", NotFound],
  ["method_not_allowed", InvalidRequest],
  ["wrong_state", WrongState],
  ["volume_busy", VolumeBusy],
  ["already_exists", AlreadyExists],
  ["snapshot_in_use", SnapshotUnusable],
  ["snapshot_corrupt", SnapshotUnusable],
  ["snapshot_unfit", SnapshotUnusable],
  ["disk_damaged", Conflict],
  ["idempotency_conflict", IdempotencyConflict],
  ["emulation_not_shared", Conflict],
  ["too_large", TooLarge],
  ["unsupported_media_type", InvalidRequest],
  ["range_not_satisfiable", InvalidRequest],
  ["too_many", TooMany],
  ["rate_limited", RateLimited],
  ["quota_exceeded", QuotaExceeded],
  ["internal", ServerError],
  ["not_implemented", Unsupported],
  ["guest_unavailable", GuestUnavailable],
  ["nothing_listens", NothingListens],
  ["no_capacity", NoCapacity],
  ["template_baking", TemplateBaking],
  ["template_failed", TemplateFailed],
  ["node_unavailable", NodeUnavailable],
  ["store_unavailable", StoreUnavailable],
  ["audit_unavailable", StoreUnavailable],
  ["timeout", SandboxTimeout],
  ["disk_full", DiskFull],
  ["storage_full", DiskFull],
]);

/** A refusal that an answer or a stream carried. @internal */
export function apiError(message: string, details: ErrorDetails): ApiError {
  const ErrorClass = CLASS_BY_CODE.get(details.code ?? "") ?? ApiError;
  return new ErrorClass(message, details);
}

/** Reads the body of an answer that is not a success. Any body will do: a proxy may have written it. @internal */
export function errorFromAnswer(status: number, headers: Headers, body: string, hasKey: boolean): ApiError {
  const seconds = Number.parseFloat(headers.get("retry-after") ?? "");
  const retryAfterSeconds = Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
  let told: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === "object" && parsed !== null) told = parsed as Record<string, unknown>;
  } catch {
    // Not ours: the status has to be enough.
  }
  const text = (name: string): string | undefined => {
    const value = told[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const code = text("code");
  return apiError(text("error") ?? foreignText(status, headers), {
    code,
    status,
    hint: code === undefined ? FOREIGN_HINT : hintFor(code, told, hasKey),
    requestId: text("request_id"),
    retryAfterSeconds,
    percent: typeof told["percent"] === "number" ? told["percent"] : undefined,
  });
}

const FOREIGN_HINT = "is apiUrl or DAYFLY_API_URL the address of a Dayfly server?";

/** What a proxy, or another program altogether, has answered. */
function foreignText(status: number, headers: Headers): string {
  const isPage = headers.get("content-type")?.startsWith("text/html") === true;
  return `HTTP status ${status} ${isPage ? "with a web page" : "without an error text"}`;
}
