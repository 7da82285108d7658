/** Errors about files, with the path that they are about. */

import { ApiError } from "./errors.js";

/** Refusals that are about a path; others are about the sandbox or the key. */
const GUEST_CODES: ReadonlySet<string> = new Set([
  ...["invalid_request", "not_found", "forbidden", "already_exists", "disk_full"],
]);

/** The guest's words do not say which path they are about. */
export async function about<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw withPath(path, error);
  }
}

/** The same error, with the path in its text. */
export function withPath(path: string, error: unknown): unknown {
  if (error instanceof ApiError && GUEST_CODES.has(error.code) && !error.message.includes(path)) {
    error.message = `${path}: ${error.message}`;
  }
  return error;
}
