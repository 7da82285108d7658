/** Every limit of this package, with the reason. Times are in milliseconds. */

/** The server answers ordinary calls within 30 s; twice that leaves room for the network. */
export const CALL_DEADLINE_MS = 60_000;
/** A capture, a write to disk and a restore, one after the other. */
export const STATE_DEADLINE_MS = 180_000;
/** A capture and as many restores as a fork may have. */
export const FORK_DEADLINE_MS = 360_000;
/** Whoever gave up on code should not wait long until it is interrupted. */
export const INTERRUPT_DEADLINE_MS = 10_000;
/** The longest that a command may run. */
export const EXEC_SECONDS_MAX = 86_400;
/** A stream says something at least every 10 s; six times that is a dead connection. */
export const STREAM_SILENCE_MS = 60_000;
/** One event of a stream. The server keeps to 64 KiB. */
export const EVENT_BYTES_MAX = 1 << 20;
/** What is kept of each stream of a followed command, as much as a plain one gives. */
export const KEPT_OUTPUT_BYTES_MAX = 8 << 20;
/** A local file that is sent as a whole; larger ones are sent while they are read. */
export const UPLOAD_WHOLE_BYTES_MAX = 8 << 20;
/** Of a build context: what the server takes. More is a mistake most of the time, such as `node_modules`. */
export const CONTEXT_FILES_MAX = 10_000;
export const CONTEXT_BYTES_MAX = 256 << 20;
/** An upload that is slower than this is as good as dead. */
export const UPLOAD_BYTES_PER_MS_MIN = 256;

/** Requests under way at once. As many as Python's, and a tenth of the files that a process may have open. */
export const CONNECTIONS_MAX = 100;
/** Attempts after the first one, for calls that may be repeated. */
export const RETRIES_DEFAULT = 3;
/** The first pause between attempts; each next one is four times as long. */
export const RETRY_PAUSE_MS = 100;
/** All pauses of one call together, whatever the server asks for. */
export const RETRY_BUDGET_MS = 15_000;

/** How often a refused create is tried again, whatever the server says. */
export const WAIT_PAUSE_MIN_MS = 100;
export const WAIT_PAUSE_MAX_MS = 5_000;
export const WAIT_PAUSE_DEFAULT_MS = 1_000;
/** A bake under emulation takes minutes; one that takes this long is stuck. */
export const BAKING_WAIT_MS = 30 * 60_000;
/** Room comes back when other sandboxes end, which nobody promises. */
export const CAPACITY_WAIT_MS = 60_000;
/** A node that is started is there within seconds. */
export const NODE_WAIT_MS = 30_000;

/**
 * How long a followed command is tried to be attached to again. A daemon that restarts is back
 * within two seconds; one that is dead is told of within five. One that answers, but cannot yet, is
 * alive and waited for longer.
 */
export const REATTACH_PATIENCE_MS = 4_000;
export const REATTACH_ALIVE_PATIENCE_MS = 30_000;
export const REATTACH_PAUSE_MAX_MS = 500;
/** How long a build that goes on in the server is tried to be followed again. */
export const BUILD_PATIENCE_MS = 60_000;
export const BUILD_PAUSE_MAX_MS = 2_000;
/** How long one call waits for a process to end; the server allows 25 s. */
export const PROCESS_WAIT_SECONDS = 25;
/** A part of a process's output that is read at once. */
export const OUTPUT_PART_BYTES = 1 << 20;
/** Entries of one page of a listing. */
export const LISTING_PAGE_LENGTH = 1_000;
/** The deepest that a listing goes. */
export const LISTING_DEPTH_MAX = 64;
/** Attempts of one `explore` at the same time. */
export const EXPLORE_MAX_PARALLEL = 4;
/** How soon a pool tries again to create what it could not. */
export const POOL_PAUSE_MS = 5_000;
/** How long `waitForPort` waits when nobody says otherwise. */
export const PORT_WAIT_SECONDS = 60;
/** One request waits no longer than this: platforms give up on a head after five minutes. */
export const PORT_WAIT_PART_MS = 240_000;
