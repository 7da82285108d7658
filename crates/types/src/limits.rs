//! Every limit of the product, one line each, with the reason. Nothing grows without one.

use std::time::Duration;

// Names and requests.
/// Template names become directory names and URL segments.
pub const TEMPLATE_NAME_CHARACTERS_MAX: usize = 64;
/// JSON bodies are small; files have their own route.
pub const JSON_BODY_BYTES_MAX: usize = 1 << 20;
/// How far a wall clock may be ahead of what passed before that counts as a jump.
pub const WALL_CLOCK_TOLERANCE: Duration = Duration::from_secs(300);
/// How long a wall clock that jumped, or that was just begun with, must hold before what was made
/// before is deleted by it.
pub const WALL_CLOCK_HOLD: Duration = Duration::from_secs(3600);
/// Metadata is for labels, not for storage.
pub const METADATA_ENTRIES_MAX: usize = 64;
pub const METADATA_KEY_BYTES_MAX: usize = 128;
pub const METADATA_VALUE_BYTES_MAX: usize = 1024;
/// As JSON, in a node's record. Longer metadata is in the database alone.
pub const RECORD_METADATA_BYTES_MAX: usize = 16 << 10;
/// A client-chosen key that makes a create repeatable.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;
/// One file moved through the API.
pub const FILE_BYTES_MAX: u64 = 5 << 30;
/// Entries in one directory listing.
pub const DIRECTORY_ENTRIES_MAX: usize = 10_000;

// Sizes of a sandbox.
pub const MEMORY_MIB_MIN: u64 = 128;
pub const MEMORY_MIB_MAX: u64 = 65_536;
pub const DISK_MIB_MIN: u64 = 1;
pub const DISK_MIB_MAX: u64 = 1 << 20;
pub const VCPUS_MAX: u64 = 32;
/// Less than a tenth of a processor makes a guest miss the deadlines of its own agent.
pub const CPU_MILLIS_MIN: u64 = 100;
/// Memory of a variant of a template is a multiple of this: fewer sizes, which more people share.
pub const VARIANT_MEMORY_STEP_MIB: u64 = 128;
/// Sizes of one template beside its own. Each has a memory image on the disk.
pub const VARIANTS_OF_TEMPLATE_MAX: usize = 8;
/// Variants of all templates that one project may have caused: no project takes the sizes of all.
pub const VARIANTS_OF_PROJECT_MAX: usize = 4;
const _: () = assert!(VARIANTS_OF_PROJECT_MAX < VARIANTS_OF_TEMPLATE_MAX);
/// Bakes beside those of the start for which engines are parked, the most recently used. A parked
/// engine holds a slot and a process.
pub const POOL_TEMPLATES_MAX: usize = 4;
/// What an engine may use beside guest memory: translation buffer, device state, threads.
pub const ENGINE_OVERHEAD_MIB: u64 = 256;
/// The least that a shared sandbox is promised: what the engine and the kernel of an idle guest of
/// the built-in templates take of their own, measured, and as much again.
pub const WORKING_SET_MIB_MIN: u64 = 48;
/// The least that a shared sandbox is promised of its disk, if the disk is not smaller.
pub const SHARED_DISK_MIB_MIN: u64 = 64;
/// The largest ratio that an operator can set between the size of shared sandboxes and what they
/// are promised.
pub const SHARE_MAX: u64 = 64;
/// How often a node that shares looks at the memory of its host and at what shared sandboxes do.
pub const PRESSURE_PERIOD: Duration = Duration::from_secs(1);
/// How old such a look may be when somebody is put to sleep on it, and between two of which a
/// sandbox is still said to have rested.
pub const PRESSURE_LOOK_AGE_MAX: Duration = Duration::from_secs(5);
/// How long a shared sandbox must have done nothing before it is put to sleep for others. A user
/// who thinks for a moment does not wake it with every request.
pub const PRESSURE_IDLE_MIN: Duration = Duration::from_secs(10);
/// Between two sandboxes that are put to sleep because something waits for memory: what the first
/// gave back shows in what the kernel says of the last seconds before the second goes.
pub const PRESSURE_PAUSE: Duration = Duration::from_secs(2);
/// How long one that could not be put to sleep is left alone.
pub const PRESSURE_RETRY: Duration = Duration::from_secs(30);
/// How long a create or a wake waits at most for others to fall asleep.
pub const RELIEF_DEADLINE: Duration = Duration::from_secs(15);
const _: () = assert!(
    RELIEF_DEADLINE.as_millis() < BRING_UP_WAIT_DEADLINE.as_millis(),
    "both waits together end when the second has to"
);
/// Hundredths of the last ten seconds in which something waited for memory, from which a host whose
/// memory is nearly used is under pressure.
pub const PRESSURE_STALL_PERCENT: u64 = 10;
/// Stall within a window of the second kind that wakes the node, in microseconds. The kernel takes
/// windows of half a second to ten seconds.
pub const PRESSURE_TRIGGER_STALL: Duration = Duration::from_millis(100);
pub const PRESSURE_TRIGGER_WINDOW: Duration = Duration::from_secs(1);
/// How often a node looks whether guests have freed memory that could be given back.
pub const GIVE_BACK_PERIOD: Duration = Duration::from_secs(3);
/// Less than this is left with a guest, which will use it again.
pub const GIVE_BACK_LEAST_BYTES: u64 = 64 << 20;
/// Between two looks at all pages of one guest, each of which costs the guest some of its CPU.
pub const GIVE_BACK_REST: Duration = Duration::from_secs(8);
/// The same after a look that failed, which doubles each time up to this.
pub const GIVE_BACK_RETRY_MAX: Duration = Duration::from_secs(120);
/// A guest that used less of a CPU since it was last asked cannot have freed much.
pub const GIVE_BACK_CPU_MIN: Duration = Duration::from_millis(10);
/// An engine that used more of a CPU since a look is looked at again if it could have anything.
pub const GIVE_BACK_LOOK_CPU_MAX: Duration = Duration::from_secs(10);
/// Guests that are asked at the same time, so that one that says nothing holds up few.
pub const GIVE_BACK_AT_ONCE_MAX: usize = 8;
/// What is discarded while a machine stands still once, and how long it runs before the next time.
pub const GIVE_BACK_STOP_BYTES: u64 = 32 << 20;
pub const GIVE_BACK_PAUSE: Duration = Duration::from_millis(20);
/// Stops for one look; what is left then waits for the next. A request to the sandbox waits no longer
/// than they take.
pub const GIVE_BACK_STOPS_MAX: usize = 64;
/// How long they may take together.
pub const GIVE_BACK_DEADLINE: Duration = Duration::from_secs(30);
/// How long an engine may take to discard what it is told in one order.
pub const DISCARD_DEADLINE: Duration = Duration::from_secs(2);
/// How long a guest may take to say how much is free, and which pages are.
pub const FREE_MEMORY_DEADLINE: Duration = Duration::from_secs(3);
pub const FREE_PAGES_DEADLINE: Duration = Duration::from_secs(10);
const _: () = assert!(FREE_PAGES_DEADLINE.as_secs() < AGENT_CALL_DEADLINE.as_secs());
/// Free pages are told in blocks of this size: smaller ones are not worth a word.
pub const FREE_BLOCK_PAGES: u32 = 16;
/// Ranges of free pages that a guest tells, the largest. As text they fit into a message many times.
pub const FREE_RANGES_MAX: u32 = 8192;
/// Processes and threads of one engine on the host.
pub const ENGINE_PIDS_MAX: u64 = 64;
/// Open files of one engine.
pub const ENGINE_OPEN_FILES_MAX: u64 = 256;
/// The largest file that one engine can write: a disk of the largest size, and its map.
pub const ENGINE_FILE_BYTES_MAX: u64 = (DISK_MIB_MAX << 20) + (DISK_MIB_MAX << 17);
/// Files of one engine's run directory that the node looks at; an engine makes about a dozen.
pub const RUN_DIRECTORY_ENTRIES_MAX: usize = 256;
/// What an engine says, and a guest while it is baked, that is kept in a file.
pub const CONSOLE_BYTES_MAX: u64 = 1 << 20;
/// What a restored guest wrote to its console that its engine keeps in memory. A power of two.
pub const CONSOLE_RING_BYTES: u64 = 16 << 10;
/// What is told of that when the guest ends.
pub const CONSOLE_TOLD_CHARACTERS_MAX: usize = 1024;

// Life.
pub const TTL_SECONDS_DEFAULT: u64 = 3600;
pub const TTL_SECONDS_MAX: u64 = 365 * 24 * 3600;
pub const IDLE_SECONDS_MIN: u64 = 5;
pub const IDLE_SECONDS_MAX: u64 = TTL_SECONDS_MAX;
/// How often a node looks whether a sandbox does anything.
pub const ACTIVITY_PERIOD: Duration = Duration::from_secs(1);
/// Processor time of an engine, in thousandths of one processor, from which a guest counts as at
/// work over the whole of its idle time. An idle guest under emulation takes 3, of older templates 8.
pub const ACTIVE_CPU_MILLIS: u64 = 80;
/// The same over the last three seconds. What a kernel does in the background stays below.
pub const BUSY_CPU_MILLIS: u64 = 250;
/// The longest busy lease that code in a guest can take at once.
pub const BUSY_LEASE_SECONDS_MAX: u64 = 24 * 3600;
/// How long a create may take before it is undone.
pub const CREATE_DEADLINE: Duration = Duration::from_secs(30);
/// From the start of an engine to the agent's first answer, where a machine boots. A kernel under
/// emulation takes half a minute on a host that does nothing else.
pub const BOOT_DEADLINE: Duration = Duration::from_secs(120);
/// How long a create that boots on the disk of a snapshot may take before it is undone.
pub const DISK_BOOT_DEADLINE: Duration = BOOT_DEADLINE.saturating_add(CREATE_DEADLINE);
/// How long its answer is waited for, by control and by its call to the node: the node starts the
/// programs of the template when the guest is there, and then says so.
pub const DISK_BOOT_ANSWER_DEADLINE: Duration = DISK_BOOT_DEADLINE
    .saturating_add(AGENT_CALL_DEADLINE)
    .saturating_add(Duration::from_secs(5));
/// Sandboxes of one node that boot at the same time. A boot keeps a processor busy throughout, and
/// more of them would make each other miss their deadline.
pub const DISK_BOOTS_MAX: usize = 2;
/// The same of one project, so that none keeps the others out.
pub const DISK_BOOTS_OF_PROJECT_MAX: usize = 1;
const _: () = assert!(DISK_BOOTS_OF_PROJECT_MAX < DISK_BOOTS_MAX);
/// Machines of one node that are brought up at the same time, for each of its processors. More of
/// them would share the processors evenly and all be late.
pub const BRING_UPS_PER_PROCESSOR: usize = 1;
/// How a machine that is brought up stands beside one that runs for somebody when both want the same
/// CPU, as a percentage: a burst of creates is felt by its neighbours by that much.
pub const BRING_UP_CPU_WEIGHT_PERCENT: u32 = 25;
/// Bring-ups that wait for their turn: more than a node has memory for.
pub const BRING_UPS_WAITING_MAX: usize = 1024;
/// The same of one project, so that none fills the line.
pub const BRING_UPS_WAITING_OF_PROJECT_MAX: usize = BRING_UPS_WAITING_MAX / 4;
/// How long a bring-up waits for its turn. The published clients give up after 30 seconds, and who
/// is told before that can ask again.
pub const BRING_UP_WAIT_DEADLINE: Duration = Duration::from_secs(24);
/// How long one step of a teardown may take before the next is tried.
pub const TEARDOWN_STEP_DEADLINE: Duration = Duration::from_secs(5);
/// Requests that wait in front of one sandbox's owner.
pub const SANDBOX_QUEUE_LENGTH_MAX: usize = 64;
/// Slots of one node; also the width of its uid range.
pub const SLOTS_MAX: u32 = 4000;

// Snapshots, forks and volumes.
/// Children of one fork: one capture, one answer.
pub const FORK_CHILDREN_MAX: usize = 64;
/// Children of one fork that are restored at the same time.
pub const FORK_PARALLEL_MAX: usize = 4;
/// Snapshots of one project on one node.
pub const SNAPSHOTS_MAX: usize = 1000;
/// How long freezing, saving and thawing may take together.
pub const CAPTURE_DEADLINE: Duration = Duration::from_secs(60);
/// Before a capture stops the machine, memory is copied in rounds until no more than this is left.
pub const AHEAD_LEFT_BYTES: u64 = 2 << 20;
/// More rounds than this would only be a guest that cannot be held back.
pub const AHEAD_ROUNDS_MAX: u32 = 24;
/// What a guest gets of one processor while it writes faster than it is copied, in thousandths, step
/// by step.
pub const AHEAD_CPU_MILLIS: &[u64] = &[300, CPU_MILLIS_MIN];
/// How long a guest stays frozen when nobody tells it to go on.
pub const QUIESCE_LEASE: Duration = Duration::from_secs(20);
/// Ranges of pages in one memory map. Each is a mapping of the engine, of which the kernel allows
/// 65,530.
pub const MEMORY_EXTENTS_MAX: usize = 16_384;
/// Memory layers of one snapshot, and disk layers above a template's; more are merged.
pub const SNAPSHOT_LAYERS_MAX: usize = 8;
/// Sealed layers under one running machine's disk.
pub const DISK_CHAIN_MAX: usize = 48;
/// What a capture writes beside memory and the disk: device state, an empty layer, a manifest.
pub const CAPTURE_OVERHEAD_MIB: u64 = 8;
/// How often a node looks at its disk.
pub const DISK_WATCH_PERIOD: Duration = Duration::from_secs(1);
/// From this much free space on, a guest whose write waits for room tries it again.
pub const DISK_RESUME_MIB: u64 = 32;
/// How long such a guest waits at most before its next try.
pub const DISK_RETRY_MAX: Duration = Duration::from_secs(30);
/// What is really held on the disk for the journal and the database, and how much of it is given
/// up at a time when the disk is full.
pub const RESERVE_FILE_MIB: u64 = 64;
pub const RESERVE_SLICE_MIB: u64 = 8;
const _: () = assert!(RESERVE_FILE_MIB.is_multiple_of(RESERVE_SLICE_MIB));
const _: () = assert!(
    DISK_RESUME_MIB > RESERVE_SLICE_MIB,
    "guests would take what was given up"
);
/// Volumes of one sandbox: as many as a template has spare disks.
pub const SANDBOX_VOLUMES_MAX: usize = 3;
/// Volumes of one project on one node: its share.
pub const VOLUMES_OF_PROJECT_MAX: usize = 1000;
/// Volumes of one node.
pub const VOLUMES_MAX: usize = 8 * VOLUMES_OF_PROJECT_MAX;
pub const VOLUME_MIB_MIN: u64 = 16;
/// Files, directories and links in one backup.
pub const BACKUP_ENTRIES_MAX: usize = 1 << 20;
/// One file in a backup: the disk of an engine, or a volume.
pub const BACKUP_FILE_BYTES_MAX: u64 = ENGINE_FILE_BYTES_MAX;
/// The list of a backup with as many entries as there may be.
pub const BACKUP_MANIFEST_BYTES_MAX: u64 = 1 << 30;
/// Where a volume is mounted when nothing else is said: this and its name.
pub const VOLUME_MOUNT_PREFIX: &str = "/volumes/";

// Exec.
/// Execs at once in one sandbox.
pub const EXECS_MAX: usize = 128;
pub const EXEC_TIMEOUT_SECONDS_MAX: u64 = 24 * 3600;
/// Command text, arguments and environment together.
pub const EXEC_SPEC_BYTES_MAX: usize = 512 << 10;
/// Names and values of a sandbox's environment variables together. Every command has them, so most
/// of what a command may be long is left to it.
pub const ENVIRONMENT_BYTES_MAX: usize = 128 << 10;
/// What a plain exec keeps of each of its streams; more is cut with a mark.
pub const EXEC_RESULT_BYTES_MAX: usize = 8 << 20;
/// What a guest keeps of each stream of one exec, if its starter says nothing else.
pub const EXEC_LOG_BYTES_DEFAULT: u64 = 64 << 20;
/// A log is a file on the sandbox's disk; its starter may ask for this much at most.
pub const EXEC_LOG_BYTES_MAX: u64 = 4 << 30;
/// Less could not hold one frame.
pub const EXEC_LOG_BYTES_MIN: u64 = 64 << 10;
/// Output of one stream that stays in the agent's memory before it becomes a file.
pub const EXEC_LOG_MEMORY_BYTES: usize = 16 << 10;
/// Under `block`, what stays of the bytes that a reader has taken, for one that was cut off: what
/// may be on its way between a guest and a client.
pub const EXEC_LOG_BEHIND_BYTES: u64 = 4 << 20;
/// Ended execs whose logs a guest keeps; the oldest go first.
pub const EXECS_KEPT_MAX: usize = 256;
/// Disk that the logs of ended execs may take together; the oldest go first.
pub const EXEC_LOGS_KEPT_BYTES_MAX: u64 = 1 << 30;
/// Readers of one exec at once.
pub const EXEC_READERS_MAX: usize = 16;
/// The least and the most that one exec can be limited to.
pub const EXEC_MEMORY_MIB_MIN: u64 = 4;
pub const EXEC_PROCESSES_MAX: u64 = 4096;
/// Text that describes a command in a list.
pub const EXEC_TITLE_BYTES_MAX: usize = 200;

// Files.
/// Entries of one page of a listing.
pub const DIRECTORY_PAGE_ENTRIES_MAX: usize = 1000;
/// How deep a listing goes.
pub const DIRECTORY_DEPTH_MAX: u32 = 64;
/// Entries of one archive.
pub const ARCHIVE_ENTRIES_MAX: u64 = 1_000_000;
/// Watches at once in one guest, and directories of one recursive watch.
pub const WATCHES_MAX: usize = 16;
pub const WATCH_DIRECTORIES_MAX: usize = 8192;

// Contexts.
/// Stateful interpreters at once in one guest.
pub const CONTEXTS_MAX: usize = 16;
/// One line between a guest's context bridge and its host.
pub const CONTEXT_LINE_BYTES_MAX: usize = 8 << 20;
/// How long the host waits for a bridge to make, list, interrupt, restart or delete. A bridge gives
/// an interpreter five minutes to start; this leaves it time to say that it did not.
pub const CONTEXT_CALL_DEADLINE: Duration = Duration::from_secs(330);
/// How long the code runs at most that sets a sandbox's environment variables in an interpreter. It
/// takes no time, but an emulated guest may have to read its memory from a disk.
pub const CONTEXT_ENVIRONMENT_MAX: Duration = Duration::from_secs(60);
/// How long the host waits for that. A bridge interrupts, then kills, and a sleeping sandbox wakes.
pub const CONTEXT_ENVIRONMENT_DEADLINE: Duration = Duration::from_secs(90);
const _: () = assert!(CONTEXT_ENVIRONMENT_MAX.as_secs() < CONTEXT_ENVIRONMENT_DEADLINE.as_secs());

// Agent channel, streams.
/// Bytes of one stream that may be on their way before its reader takes some.
pub const STREAM_CREDIT_BYTES: u32 = 256 << 10;

// Agent channel.
/// One frame on the wire. Small, so that a stream cannot hold the port for long.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// One control message, which may span frames.
pub const CONTROL_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How long the agent has to answer the opening of a conversation.
pub const AGENT_HANDSHAKE_DEADLINE: Duration = Duration::from_secs(20);
/// How long the agent has to answer a control message.
pub const AGENT_CALL_DEADLINE: Duration = Duration::from_secs(15);

// Engine.
/// One engine monitor command.
pub const ENGINE_COMMAND_DEADLINE: Duration = Duration::from_secs(10);
/// From engine start to its monitor answering.
pub const ENGINE_START_DEADLINE: Duration = Duration::from_secs(15);
/// What an engine may say unasked in a second; the rest waits on its side.
pub const ENGINE_EVENTS_PER_SECOND_MAX: u32 = 100;
/// One line of an engine monitor.
pub const ENGINE_MESSAGE_BYTES_MAX: usize = 1 << 20;

const _: () = assert!(FRAME_PAYLOAD_BYTES_MAX <= STREAM_CREDIT_BYTES as usize);
const _: () = assert!(EXEC_SPEC_BYTES_MAX < CONTROL_MESSAGE_BYTES_MAX);
const _: () = assert!(ENVIRONMENT_BYTES_MAX < EXEC_SPEC_BYTES_MAX);

// Agent channel, counts.
/// File operations at once in one guest: each is a short-lived process there.
pub const AGENT_FILE_OPERATIONS_MAX: usize = 64;
/// Open execs and files of one conversation; each may hold a window of bytes for each stream.
pub const AGENT_CHANNELS_MAX: usize = 256;
/// Control calls of one conversation that wait for their answer.
pub const AGENT_CALLS_MAX: usize = 256;

/// Commands in the background of one sandbox whose end is waited for, for the audit record.
pub const BACKGROUND_FOLLOWED_MAX: usize = 64;
const _: () =
    assert!(EXECS_MAX + AGENT_FILE_OPERATIONS_MAX + BACKGROUND_FOLLOWED_MAX <= AGENT_CHANNELS_MAX);

/// Rules of one sandbox's egress policy.
pub const EGRESS_RULES_MAX: usize = 256;
/// Ports of one rule.
pub const EGRESS_PORTS_MAX: usize = 32;
/// Networks inside private space that the operator may open.
pub const INTERNAL_NETWORKS_MAX: usize = 32;
/// Projects, ranges and names of hosts that one of them may have, each.
pub const INTERNAL_NETWORK_ENTRIES_MAX: usize = 64;
/// All of them as one text, which is an argument of a program.
pub const INTERNAL_NETWORKS_BYTES_MAX: usize = 32 << 10;
/// Connections that one sandbox holds open to the outside.
pub const EGRESS_CONNECTIONS_MAX: usize = 256;
/// Bytes that are read of a connection before its name must be known.
pub const EGRESS_PEEK_BYTES_MAX: usize = 64 << 10;
/// How long that may take.
pub const EGRESS_PEEK_DEADLINE: Duration = Duration::from_secs(5);
/// How long a connection to the outside may take to come up.
pub const EGRESS_DIAL_DEADLINE: Duration = Duration::from_secs(10);
/// How long upstream resolvers may take together: a guest asks again after two seconds.
pub const EGRESS_RESOLVE_DEADLINE: Duration = Duration::from_millis(1900);
/// Questions of one sandbox in a second; twice as many at once.
pub const EGRESS_QUESTIONS_PER_SECOND: u32 = 100;
/// Connections to the outside that are made for one sandbox in a second; twice as many at once.
/// All sandboxes of a host share its ports.
pub const EGRESS_DIALS_PER_SECOND: u32 = 200;
/// Different names that one sandbox may ask for in a minute by one wildcard rule.
pub const EGRESS_WILDCARD_NAMES_PER_MINUTE: usize = 60;
/// Bytes that one sandbox may send to the outside in a second, and as many that it may receive:
/// one gigabit. The default of a setting of the node.
pub const EGRESS_BYTES_PER_SECOND: u64 = 125_000_000;
/// Bytes that one sandbox may read from its disks and write to them in a second, and how many reads
/// and writes: a quarter of what one ordinary SSD of a server does, so that three that take all they
/// can leave a share. The defaults of settings of the node.
pub const DISK_BYTES_PER_SECOND: u64 = 256 << 20;
pub const DISK_OPERATIONS_PER_SECOND: u64 = 20_000;
/// The most of either that an operator can set. The engine takes no burst above ten times that.
pub const DISK_PACE_MAX: u64 = 100_000_000_000_000;
/// Records that are kept of one sandbox; the oldest go first, with a mark.
pub const EGRESS_RECORDS_MAX: usize = 4096;
/// Records of one kind and reason in a second; the next one says how many were left out.
pub const EGRESS_RECORDS_PER_SECOND: u32 = 50;
/// How long a reader of the network log may wait for the next record.
pub const EGRESS_LOG_WAIT_MAX: Duration = Duration::from_secs(30);
/// Decisions of all sandboxes that a node keeps for the export: 64 MiB, some 150,000. The oldest
/// file goes first. A reader looks through one file to find its place.
pub const EGRESS_SPOOL_FILES_MAX: usize = 64;
pub const EGRESS_SPOOL_FILE_BYTES_MAX: u64 = 1 << 20;
/// Decisions that the node hands over at once.
pub const EGRESS_DECISIONS_AT_ONCE_MAX: usize = 200;
/// How long the node may take to hand them over, while the audit record and events wait.
pub const EGRESS_DECISIONS_DEADLINE: Duration = Duration::from_millis(500);
/// How long a reader who waits is kept for more of them, since each page is synced.
pub const EGRESS_DECISIONS_GATHER: Duration = Duration::from_secs(1);

// Ports.
/// Connections from outside to the services of one sandbox.
pub const PORT_CONNECTIONS_MAX: usize = 64;
/// The head of a service's answer.
pub const PORT_HEAD_BYTES_MAX: usize = 64 << 10;
pub const PORT_HEADERS_MAX: usize = 128;
/// Until somebody in the sandbox has accepted. A hibernated one wakes within it.
pub const PORT_CONNECT_DEADLINE: Duration = Duration::from_secs(60);
/// How long no byte may pass, either way.
pub const PORT_IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// How long a request waits for a port when nothing is said, and at most.
pub const PORT_WAIT_MS_DEFAULT: u64 = 60_000;
pub const PORT_WAIT_MS_MAX: u64 = 600_000;
/// Waits for ports of one sandbox at once. Each is a call of its conversation.
pub const PORT_WAITS_MAX: usize = 64;
/// How long one call to the agent waits for a port, so that one whose caller is gone ends soon.
pub const PORT_WAIT_CALL_MAX: Duration = Duration::from_secs(5);
const _: () = assert!(PORT_WAIT_CALL_MAX.as_secs() < AGENT_CALL_DEADLINE.as_secs());
const _: () = assert!(PORT_WAITS_MAX < AGENT_CALLS_MAX / 2);
/// Links to files of one project that work at the same time.
pub const FILE_LINKS_MAX: usize = 1000;
/// How long a link to a file works when nothing is said, and at most.
pub const FILE_LINK_TTL_SECONDS_DEFAULT: u64 = 3600;
pub const FILE_LINK_TTL_SECONDS_MAX: u64 = 7 * 24 * 3600;
/// How long a link works when nothing is said, and at most.
pub const PORT_LINK_TTL_SECONDS_DEFAULT: u64 = 3600;
pub const PORT_LINK_TTL_SECONDS_MAX: u64 = 7 * 24 * 3600;
/// Links of one port that work at the same time; each visit looks at all of them.
pub const PORT_LINKS_MAX: usize = 64;
/// Links of all ports of one sandbox: one answer lists them.
pub const SANDBOX_LINKS_MAX: usize = 1024;

// Processes of the daemon.
/// How long one waits for a data directory that somebody else holds: whoever looks whether a daemon
/// runs holds it for a moment.
pub const DAEMON_LOCK_WAIT: Duration = Duration::from_secs(1);
/// How long a daemon waits at its start for the processes of one that was killed. They end at once,
/// but for what the kernel does for them, which a slow disk can make long.
pub const PROCESSES_GONE_WAIT: Duration = Duration::from_secs(20);
/// How often a process tells its supervisor that it is alive.
pub const PULSE_INTERVAL: Duration = Duration::from_secs(1);
/// One that says nothing for this long is killed and started again. Longer than a busy host keeps a
/// process from running.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);
/// From when on a node that does not answer makes the server unhealthy. Longer than a hanging one is
/// left alone and started again. One that came back and did not stay must stay for as long.
pub const NODE_OUTAGE_MAX: Duration = Duration::from_secs(30);

// Connections of the public API and of visitors.
/// All of the API's listeners, plain and TLS.
pub const CONNECTIONS_MAX: usize = 8192;
/// Of those, for addresses that have shown a key lately: strangers cannot take them.
pub const CONNECTIONS_RESERVED: usize = 1024;
/// Of one address; of IPv6, of one network of 64 bits.
pub const PEER_CONNECTIONS_MAX: usize = 1024;
/// The same of a loopback address, behind which a proxy may stand for everybody.
pub const LOOPBACK_CONNECTIONS_MAX: usize = 4096;
/// How long the head of a connection's first request may take.
pub const FIRST_HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// Readers of metrics: in all, of one address, and of a loopback address.
pub const METRICS_CONNECTIONS_MAX: usize = 64;
pub const METRICS_PEER_CONNECTIONS_MAX: usize = 16;
pub const METRICS_LOOPBACK_CONNECTIONS_MAX: usize = 32;
/// Addresses that are remembered to have shown a key.
pub const KNOWN_PEERS_MAX: usize = 4096;

// Projects and keys.

/// Keys of one project that work at the same time.
pub const TOKENS_MAX: usize = 1000;
/// Keys of one person in one project that work at the same time; a further one ends the oldest.
pub const PERSON_KEYS_MAX: usize = 16;
/// How long a key lasts that a person gets by signing in, unless the settings say less, and the most
/// that they can say.
pub const PERSON_KEY_SECONDS_DEFAULT: u64 = 3600;
pub const PERSON_KEY_SECONDS_MAX: u64 = 24 * 3600;
/// How often one person may sign in to one project: each is a row, and an entry of the record.
pub const SIGN_INS_PER_MINUTE_MAX: usize = 30;
/// Which people get what, and of how many projects.
pub const SIGN_IN_GRANTS_MAX: usize = 200;
pub const SIGN_IN_BYTES_MAX: usize = 16 << 10;
/// People who sign in at the same moment: each is a body to read and a signature to check, before
/// anybody is known.
pub const SIGN_INS_AT_ONCE_MAX: usize = 32;
/// For the body of such a request, which is an ID token.
pub const SIGN_IN_BODY_DEADLINE: Duration = Duration::from_secs(5);
/// Keys of an OpenID provider that are looked at; most have two.
pub const PROVIDER_KEYS_MAX: usize = 32;
/// What an OpenID provider says of itself, and its keys.
pub const PROVIDER_DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// An ID token with a long list of groups.
pub const PROVIDER_TOKEN_BYTES_MAX: usize = 16 << 10;
/// For everything that is asked of a provider at once.
pub const PROVIDER_DEADLINE: Duration = Duration::from_secs(10);
/// A key that a provider takes back works for at most this long.
pub const PROVIDER_KEYS_AGE_MAX: Duration = Duration::from_secs(3600);
/// Between two looks for a key that is not known, which anybody can cause.
pub const PROVIDER_REFRESH_PERIOD_MIN: Duration = Duration::from_secs(10);
/// After a provider could not be asked.
pub const PROVIDER_RETRY_PERIOD_MIN: Duration = Duration::from_secs(2);
/// How far the clocks of a provider and of this host may be apart.
pub const PROVIDER_CLOCK_SKEW: Duration = Duration::from_secs(60);
/// Of the text that says why a project is suspended.
pub const SUSPEND_REASON_CHARACTERS_MAX: usize = 256;
pub const TOKEN_LABEL_CHARACTERS_MAX: usize = 128;
pub const TOKEN_TTL_SECONDS_MAX: u64 = 3650 * 24 * 3600;
/// Creates and forks of one project that are under way at once.
pub const CREATES_AT_ONCE_MAX: usize = 64;
/// Streams that follow something, of one project, at once.
pub const WATCHES_AT_ONCE_MAX: usize = 128;
/// Entries of the audit record about the use of keys that are over, of one project.
pub const ENDED_KEY_RECORDS_PER_SECOND: u64 = 20;
/// Projects whose recent requests are counted; beyond it the idle ones are forgotten.
pub const PROJECTS_REMEMBERED_MAX: usize = 4096;
/// Entries of the audit record that wait to be written.
pub const AUDIT_QUEUE_LENGTH_MAX: usize = 4096;
/// How often it is written what each sandbox that runs uses.
pub const SAMPLE_PERIOD: Duration = Duration::from_secs(10);
/// Samples of one sandbox that are all kept, the newest; of older ones every second, fourth and so
/// on: about 1,000 of a year.
pub const SAMPLES_NEWEST: i64 = 120;
/// Samples of all sandboxes together: some 120 MiB. Those that slept longest lose theirs first.
pub const SAMPLES_MAX: i64 = 1_000_000;
/// A machine whose end was learned so long after it was last seen counts as ended when it was seen.
pub const METER_GAP_MAX: Duration = Duration::from_secs(30);
const _: () = assert!(METER_GAP_MAX.as_secs() > 2 * SAMPLE_PERIOD.as_secs());
/// How long it can be read what a project used in an hour.
pub const USAGE_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// What the entries of one project take; the oldest make room.
pub const AUDIT_BYTES_MAX: u64 = 256 << 20;
/// Old entries that one addition removes at most.
pub const AUDIT_DROPPED_AT_ONCE_MAX: i64 = 4096;
/// Refusals that are remembered so that their repeats are counted.
pub const AUDIT_REPEATS_MAX: usize = 4096;
/// What an entry keeps of a command, and of each stream of its output where that is kept.
pub const AUDIT_INPUT_BYTES_MAX: usize = 4096;
pub const AUDIT_OUTPUT_BYTES_MAX: usize = 16 << 10;

// The MCP server.
/// What a result says to a model, as one text; `sdk/tools/texts.json` has the same number.
pub const MCP_TEXT_BYTES_MAX: usize = 16_000;
/// What one read of a file, a listing or a search gives to a model.
pub const MCP_FILE_TEXT_BYTES_MAX: usize = 32_000;
/// A line of a file that a model reads or finds; the rest of it is left out.
pub const MCP_LINE_BYTES_MAX: usize = 2000;
/// A file that is read or edited as text: it is held in memory.
pub const MCP_FILE_BYTES_MAX: usize = 8 << 20;
/// What one read of a resource gives. Published clients take no event of more than 1 MiB, and bytes
/// become longer on the way.
pub const MCP_RESOURCE_BYTES_MAX: usize = 512 << 10;
/// How long one read of a resource may take.
pub const MCP_RESOURCE_DEADLINE: Duration = Duration::from_secs(60);
/// Images of one result, in base 64: they fit into one event beside its text.
pub const MCP_IMAGE_BYTES_MAX: usize = 896 << 10;
const _: () = assert!(MCP_IMAGE_BYTES_MAX + 4 * MCP_TEXT_BYTES_MAX < 1 << 20);
/// Files of the workspace that are listed as resources.
pub const MCP_RESOURCES_MAX: u32 = 200;
/// One message of a client: a file that it writes is in it.
pub const MCP_MESSAGE_BYTES_MAX: usize = 12 << 20;
/// It has to come within this time.
pub const MCP_MESSAGE_DEADLINE: Duration = Duration::from_secs(30);
/// A longer one needs a place, of which all projects together have so many.
pub const MCP_SHORT_MESSAGE_BYTES_MAX: usize = 1 << 20;
pub const MCP_LONG_MESSAGES_MAX: usize = 32;
/// Sessions over HTTP, of all projects together.
pub const MCP_SESSIONS_MAX: usize = 4096;
/// Calls and reads of one client that go on at once.
pub const MCP_CALLS_MAX: usize = 16;
/// Sandboxes that a client created and may use again, the newest.
pub const MCP_CREATED_MAX: usize = 256;
/// A session over HTTP ends when its client was silent for so long.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// A client's own sandbox is deleted so long after the client is gone; it is renewed until then.
pub const MCP_LEASE_SECONDS_DEFAULT: u64 = 30 * 60;
pub const MCP_LEASE_SECONDS_MIN: u64 = 60;
/// A sandbox that a model asked for lives for so long unless it says otherwise.
pub const MCP_TTL_SECONDS_DEFAULT: u64 = 3600;
/// A sandbox that nobody uses for so long hibernates, and wakes at the next call.
pub const MCP_HIBERNATE_SECONDS: u64 = 10 * 60;
/// Snapshots of a client's own sandbox; they are deleted with it, or after this at the latest.
pub const MCP_SNAPSHOT_RETAIN_SECONDS: u64 = 24 * 3600;
/// How much longer than their commands the copies of a fork may live.
pub const MCP_FORK_GRACE_SECONDS: u64 = 300;
/// A search that takes longer was for too much.
pub const MCP_SEARCH_SECONDS_MAX: u64 = 60;
/// How often a client that asked for it learns that a call goes on.
pub const MCP_PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// How long the end of a session waits for its sandbox to be deleted.
pub const MCP_END_DEADLINE: Duration = Duration::from_secs(30);

/// The header of a caller's trace: what is longer is no such header.
pub const TRACEPARENT_BYTES_MAX: usize = 128;
/// What a caller's other systems may want carried: as much as the recommendation asks for.
pub const TRACESTATE_BYTES_MAX: usize = 512;
pub const TRACESTATE_MEMBERS_MAX: usize = 32;
/// Spans of one request; a fork of many children has more stages than anybody reads.
pub const TRACE_SPANS_PER_REQUEST_MAX: usize = 256;
/// Stages of one report of the node that become spans.
pub const TRACE_STAGES_PER_REPORT_MAX: usize = 32;
/// Requests whose spans wait to be sent. Those of further ones are lost, and counted.
pub const TRACE_QUEUE_REQUESTS_MAX: usize = 512;
/// Spans that are sent as one message, and how long they wait for others.
pub const TRACE_BATCH_SPANS_MAX: usize = 512;
pub const TRACE_BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long one message may take, unless the environment says otherwise, and how often it is tried.
pub const TRACE_EXPORT_DEADLINE: Duration = Duration::from_secs(10);
pub const TRACE_EXPORT_DEADLINE_MAX: Duration = Duration::from_secs(60);
pub const TRACE_EXPORT_TRIES_MAX: u32 = 4;
pub const TRACE_RETRY_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long the end of the process waits for what is still to be sent.
pub const TRACE_LAST_DEADLINE: Duration = Duration::from_secs(2);
/// A header of messages to the receiver, and an attribute of them all.
pub const TRACE_VARIABLE_BYTES_MAX: usize = 8 << 10;

// Images of containers.
/// A registry, a repository, a tag and a digest.
pub const IMAGE_REFERENCE_BYTES_MAX: usize = 512;
/// Registry and repository together, and a tag: as the distribution specification has it.
pub const IMAGE_NAME_BYTES_MAX: usize = 255;
pub const IMAGE_TAG_BYTES_MAX: usize = 128;
/// An index, a manifest or a config. Registries themselves take no manifest that is longer.
pub const IMAGE_DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// Layers of one image: what container engines can mount on each other.
pub const IMAGE_LAYERS_MAX: usize = 127;
/// One layer as it is transferred, and all layers of an image.
pub const IMAGE_LAYER_BYTES_MAX: u64 = 16 << 30;
pub const IMAGE_BYTES_MAX: u64 = 64 << 30;
/// Images of one index: platforms, or names of a layout.
pub const IMAGE_INDEX_ENTRIES_MAX: usize = 1024;
/// Indexes that may lead to an image: one, and one that lies in it.
pub const IMAGE_INDEX_DEPTH_MAX: usize = 2;
/// Entries of each list of a config: environment variables, arguments, ports.
pub const IMAGE_CONFIG_ENTRIES_MAX: usize = 1024;
/// Members of an archive with images, and what is read of the long name of one.
pub const IMAGE_ARCHIVE_MEMBERS_MAX: usize = 16_384;
pub const IMAGE_ARCHIVE_NAME_BYTES_MAX: u64 = 4096;
/// Names that an error lists to say what there is.
pub const IMAGE_NAMES_TOLD_MAX: usize = 16;
/// Registries that the operator's settings know, and all of them as one text.
pub const REGISTRIES_MAX: usize = 32;
pub const REGISTRIES_BYTES_MAX: usize = 32 << 10;
/// Projects that one of them is for, by name.
pub const REGISTRY_PROJECTS_MAX: usize = 64;
/// The file with the password of a registry: some are signed tokens.
pub const REGISTRY_PASSWORD_BYTES_MAX: usize = 16 << 10;
/// The certificates of the authority of a registry.
pub const REGISTRY_AUTHORITY_BYTES_MAX: usize = 1 << 20;
/// Hosts that lead to a blob one after the other.
pub const REGISTRY_REDIRECTS_MAX: usize = 5;
/// An address that a registry leads to. Signed ones are long.
pub const REGISTRY_URL_BYTES_MAX: usize = 8 << 10;
/// What a registry says about how to sign in, and what is answered there.
pub const REGISTRY_CHALLENGE_BYTES_MAX: usize = 4 << 10;
pub const REGISTRY_TOKEN_BYTES_MAX: usize = 64 << 10;
/// How often a request is tried, and how long at most is waited before the next time.
pub const REGISTRY_TRIES_MAX: u32 = 4;
pub const REGISTRY_RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);
pub const REGISTRY_CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// A connection on which nothing comes for this long is broken.
pub const REGISTRY_STALL_MAX: Duration = Duration::from_secs(30);
/// For one document and for one layer, with all tries.
pub const REGISTRY_DOCUMENT_DEADLINE: Duration = Duration::from_secs(120);
pub const REGISTRY_LAYER_DEADLINE: Duration = Duration::from_secs(1800);
/// A path in an image is as long as the kernel takes one, a name as long as a file system.
pub const IMAGE_PATH_BYTES_MAX: usize = 4096;
pub const IMAGE_FILE_NAME_BYTES_MAX: usize = 255;
/// Directories in directories: more than people make, and few enough to walk.
pub const IMAGE_PATH_DEPTH_MAX: usize = 512;
/// Links of an image that are followed to find one place, as the kernel follows them.
pub const IMAGE_LINKS_FOLLOWED_MAX: usize = 40;
/// Entries of all layers of an image; the largest in use have a tenth of it.
pub const IMAGE_ENTRIES_MAX: usize = 1_000_000;
/// Names, links and attributes of all of them as they are held in memory, about.
pub const IMAGE_METADATA_BYTES_MAX: usize = 768 << 20;
/// Names that are looked up on the ways to all entries, over links.
pub const IMAGE_WALK_STEPS_MAX: usize = 50_000_000;
/// What all layers hold when they are unpacked, holes included.
pub const IMAGE_UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// A long name or an extended header of one entry.
pub const IMAGE_EXTENSION_BYTES_MAX: u64 = 1 << 20;
/// Extended attributes of one file: all together, as the kernel has it for a list of names.
pub const IMAGE_ATTRIBUTES_BYTES_MAX: usize = 64 << 10;
/// Files that the disk of an image is cut into: each is read through one more map by an engine.
pub const IMAGE_PARTS_MAX: usize = 8;
/// A part of a disk begins and ends at a multiple of this, which is the unit of an engine's maps.
pub const IMAGE_PART_UNIT_BYTES: u64 = 64 << 10;
/// From the first question to a registry to the disk.
pub const IMAGE_DEADLINE: Duration = Duration::from_secs(60 * 60);
/// Templates that were ordered over the API, of all projects of a node together.
pub const ORDERED_TEMPLATES_MAX: usize = 1000;
/// From the beginning of the bake of one of them to its end: others wait for it.
pub const ORDERED_BAKE_DEADLINE: Duration = Duration::from_secs(20 * 60);
/// What may be said of the use of a disk: variables, program, how to see whether it is ready.
pub const IMAGE_USE_BYTES_MAX: usize = 64 << 10;
/// Of one project: images that it has ordered, and versions of templates of its own.
pub const PROJECT_IMAGES_MAX: i64 = 32;
pub const PROJECT_TEMPLATE_VERSIONS_MAX: i64 = 200;
/// Templates of one project that are being made, or wait for it.
pub const PROJECT_BAKES_MAX: usize = 4;
/// What is kept of how a version came to be.
pub const PROVENANCE_BYTES_MAX: usize = 64 << 10;
/// Everything that the program which reads an image may say.
pub const IMAGE_REPORT_BYTES_MAX: u64 = 16 << 20;

// Dockerfiles, and what is copied by them.
/// The text of a Dockerfile. Long ones in use have a tenth of it.
pub const DOCKERFILE_BYTES_MAX: usize = 64 << 10;
/// Stages of a Dockerfile, and instructions of all stages together.
pub const DOCKERFILE_STAGES_MAX: usize = 50;
pub const DOCKERFILE_STEPS_MAX: usize = 500;
/// What is shown of an instruction to people, and of a word in an error.
pub const DOCKERFILE_STEP_CHARACTERS_MAX: usize = 200;
pub const DOCKERFILE_EXCERPT_CHARACTERS_MAX: usize = 80;
/// `${a:-${b:-...}}` in each other: every level is a call.
pub const DOCKERFILE_NESTING_MAX: usize = 16;
/// All that variables become in one stage: a few lines could double a value again and again.
pub const DOCKERFILE_EXPANDED_BYTES_MAX: usize = 4 << 20;
/// Environment variables that a step starts with; every step has a copy of them.
pub const DOCKERFILE_ENVIRONMENT_BYTES_MAX: usize = 128 << 10;
/// Sources of one COPY: each is compared with every entry of the build context.
pub const DOCKERFILE_SOURCES_MAX: usize = 256;
/// Entries that one COPY takes from the build context.
pub const DOCKERFILE_SELECTED_MAX: usize = 1_000_000;
/// A `.dockerignore`: its text, and its patterns, each of which is compared with every entry.
pub const DOCKERIGNORE_BYTES_MAX: usize = 64 << 10;
pub const DOCKERIGNORE_PATTERNS_MAX: usize = 1000;

// Builds of templates that the server runs.
/// All files of one build context together. Larger ones are built where they are.
pub const BUILD_CONTEXT_BYTES_MAX: u64 = 256 << 20;
pub const BUILD_CONTEXT_FILES_MAX: usize = 10_000;
/// One field of the form, and the one that says the modes of all files.
pub const BUILD_FIELD_BYTES_MAX: usize = 256 << 10;
pub const BUILD_MODES_BYTES_MAX: usize = 2 << 20;
/// Of the form that was read and not understood yet.
pub const BUILD_FORM_AHEAD_BYTES_MAX: usize = 256 << 10;
/// From the first byte of the form to the last.
pub const BUILD_UPLOAD_DEADLINE: Duration = Duration::from_secs(600);
/// Under way, uploads included: of one project, and of all. Each may keep a context on the disk.
pub const BUILDS_OF_PROJECT_MAX: usize = 2;
pub const BUILDS_MAX: usize = 8;
const _: () = assert!(BUILDS_OF_PROJECT_MAX < BUILDS_MAX);
/// Builds of one project that are remembered; the oldest are forgotten.
pub const BUILDS_REMEMBERED_MAX: usize = 100;
/// Ended builds of all projects whose events are remembered.
pub const BUILD_LOGS_REMEMBERED_MAX: usize = 64;
/// Events of one build; beyond it the oldest lines of its steps go.
pub const BUILD_EVENTS_BYTES_MAX: usize = 1 << 20;
/// Why a build failed, and the last lines of a step that did.
pub const BUILD_ERROR_BYTES_MAX: usize = 4 << 10;
