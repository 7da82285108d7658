/**
 * What to do about an error, in the words of this package. The server's own hints name its routes, which
 * nobody sees who calls methods.
 */

/** @internal */
export const GONE = "the sandbox is gone: it was deleted, or its time to live (ttlSeconds) was over";
const KEY_HINT = "set DAYFLY_API_KEY, give apiKey, or log in with `dayfly login`";

/** By the code of an error: it says all that there is to say, whatever the server advises. */
const HINT_BY_CODE: ReadonlyMap<string, string> = new Map([
  ["idempotency_conflict", "call it again: every call has a key of its own"],
  ["store_unavailable", "ask again; if it stays so, the server's operator has to look (/health)"],
  ["audit_unavailable", "ask again; if it stays so, the server's operator has to look (/health)"],
  [
    "nothing_listens",
    "start the service; sandbox.ports() says what listens, and sandbox.waitForPort(port) waits for it",
  ],
]);

/** What the server says, and what it is called here. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/GET \/v1\/me says/g, "me() says"],
  [/GET \/v1\/usage shows it/g, "`dayfly project usage` shows it"],
  [/GET \/v1\/templates\/(\S+) says why/g, "templates() says why: `detail` of $1"],
  [/PATCH \/v1\/volumes\/\S+ makes it larger/g, "volume.grow({ sizeGb }) makes it larger"],
  [/GET processes\/(\S+?)\/output/g, 'sandbox.process("$1").output()'],
  [
    /`dayfly net allow \S+ (\S+)` or POST \S+\/network\/allow lets it through/g,
    'sandbox.network.allow("$1") lets it through',
  ],
  [/look at GET \S+\/network, and send the change/g, "look at sandbox.network.get(), and call it"],
  [/send it again; GET \S+\/network shows/g, "call it again; sandbox.network.get() shows"],
  [/look at GET \S+\/ports for what listens/g, "sandbox.ports() says what listens"],
  [/GET \/health says what the operator can do/g, "the server's operator has to look (/health)"],
];

/** The hint of a refusal. `hasKey` says whether a key was sent. */
export function hintFor(code: string, told: string | undefined, hasKey: boolean): string | undefined {
  if (code === "unauthorized") return hasKey ? `the key is not known, or has ended: ${KEY_HINT}` : KEY_HINT;
  return HINT_BY_CODE.get(code) ?? worded(told);
}

/** A hint of the server, for a caller of this package. @internal */
export function worded(told: string | undefined): string | undefined {
  let hint = told;
  for (const [route, words] of WORDS) hint = hint?.replace(route, words);
  return hint;
}
