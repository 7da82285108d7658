/**
 * What a failed `fetch` says about the request. Node and Bun have codes; Deno has texts alone, of the
 * library below it.
 */

import type { DayflyError } from "./errors.js";
import { AnswerLost, CertificateRefused, ServerUnreachable } from "./failures.js";
import { causeCodes, causeTexts } from "./retry.js";

/** Codes of failures before the first byte of a request was sent. */
const UNSENT_CODES = [
  "ECONNREFUSED",
  "ConnectionRefused",
  "FailedToOpenSocket",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];
/** Deno's word for the same, and the platforms' for a port that they do not connect to. */
const UNSENT_TEXT = /client error \(Connect\)|\bbad port\b|Requests to port \d+ are blocked/;

const CERTIFICATE_CODE = /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/;
const CERTIFICATE_TEXT = /invalid peer certificate/;

const NO_TLS_CODES = ["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG", "EPROTO"];
const NO_TLS_TEXT = /received corrupt message of type InvalidContentType/;

/** Sorts what `fetch` threw by what the caller can know about the server's state. @internal */
export function transportError(error: unknown, apiUrl: string): DayflyError {
  const codes = [...causeCodes(error)];
  const text = causeTexts(error).join("\n");
  if (codes.some((code) => CERTIFICATE_CODE.test(code)) || CERTIFICATE_TEXT.test(text)) {
    return new CertificateRefused(apiUrl, error);
  }
  if (NO_TLS_CODES.some((code) => codes.includes(code)) || NO_TLS_TEXT.test(text)) {
    return new ServerUnreachable(apiUrl, error, `there is no TLS at that port; try ${apiUrl.replace(/^https/, "http")}`);
  }
  if (UNSENT_CODES.some((code) => codes.includes(code)) || UNSENT_TEXT.test(text)) {
    return new ServerUnreachable(apiUrl, error);
  }
  return new AnswerLost(error);
}
