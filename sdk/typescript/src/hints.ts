/**
 * What to do about an error or a result, in the words of this package. Every hint of the server has a code.
 * Its own words name its routes, which nobody sees who calls methods.
 */

import type { Wire } from "./wire.js";

/** @internal */
export const GONE = "the sandbox is gone: it was deleted, or its time to live (ttlSeconds) was over";
const KEY_HINT = "set DAYFLY_API_KEY, give apiKey, or log in with `dayfly login`";

/** By the code of the hint; `{name}` is a parameter that comes with it, and null says that the server's words fit. */
const WORDS: Readonly<Record<Wire["HintCode"], string | null>> = {
  send_key: KEY_HINT,
  key_permissions: "me() says what this key may be used for",
  key_scopes: "me() says which scopes this key has",
  key_ended: null,
  revoke_keys: null,
  revoke_file_links: null,
  revoke_port_links: null,
  quota: "delete what is not needed, or ask the operator for more; `dayfly project usage` shows it",
  make_room: null,
  server_health: "ask again; if it stays so, the server's operator has to look (/health)",
  health_remedy: null,
  known_names: null,
  no_names: null,
  metadata_example: 'such as metadata: { task: "7" }',
  time_example: null,
  new_idempotency_key: "call it again: every call has a key of its own",
  sandbox_status: null,
  sandbox_name_taken: null,
  template_baking: null,
  template_failed: "templates() says why: `detail` of {template}",
  snapshot_name_taken: null,
  snapshot_corrupt: null,
  snapshot_unfit: null,
  fork_wider: null,
  promote_child: null,
  tree_of_child: null,
  volume_users: null,
  grow_volume: "volume.grow({ sizeGb }) makes it larger",
  smaller_volume: null,
  output_kept: 'its output is kept: sandbox.process("{exec_id}").output()',
  silent_command: null,
  out_of_memory: null,
  no_memory_left: null,
  network_denied: 'the network policy of this sandbox denied {denied}; sandbox.network.allow("{first}") lets it through',
  network_changed: "look at sandbox.network.get(), and call it again if it is still wanted",
  network_not_widened: "call it again; sandbox.network.get() shows what holds",
  context_busy: null,
  context_restarted: null,
  state_lost: null,
  silent_code: null,
  environment_of_sandbox: null,
  port_closed: null,
  nothing_listens: "start the service; sandbox.ports() says what listens, and sandbox.waitForPort(port) waits for it",
  port_timeout: "sandbox.ports() says what listens, and process.output() why it does not",
};
const BY_CODE: ReadonlyMap<string, string | null> = new Map(Object.entries(WORDS));

/** The hint of a refusal. `hasKey` says whether a key was sent. */
export function hintFor(code: string, told: Readonly<Record<string, unknown>>, hasKey: boolean): string | undefined {
  const hint = worded(told);
  if (code !== "unauthorized" || told["hint_code"] === "key_ended") return hint;
  return hasKey ? `the key is not known, or has ended: ${KEY_HINT}` : KEY_HINT;
}

/** The hint of a response or an event, for a caller of this package. */
export function worded(told: object): string | undefined {
  const { hint, hint_code: code, hint_parameters: given } = told as Record<string, unknown>;
  const parameters = typeof given === "object" && given !== null ? (given as Record<string, unknown>) : {};
  const words = typeof code === "string" ? BY_CODE.get(code) : undefined;
  const missing = [...(words ?? "").matchAll(/\{([a-z_]+)\}/g)].some(([, name]) => parameters[name ?? ""] === undefined);
  // Of a later server, or of an older one, which sends no codes.
  if (words === undefined || words === null || missing) return typeof hint === "string" && hint !== "" ? hint : undefined;
  return words.replace(/\{([a-z_]+)\}/g, (_, name: string) => String(parameters[name]));
}
