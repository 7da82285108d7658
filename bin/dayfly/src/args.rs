//! What can be asked. No logic is here: only names, types and help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use dayfly_api::VolumeMount;

use crate::args_state::{
    ForkArgs, PromoteArgs, RollbackArgs, SandboxArgs, SnapshotCommand, TimeoutAction, TtlArgs,
    VolumeCommand,
};
use crate::places::Place;
use crate::{durations, env_vars, exit_status, mounts, pairs};

/// Disposable computers for AI agents.
#[derive(Debug, Parser)]
#[command(name = "dayfly", version, max_term_width = 100)]
#[command(after_help = format!("{}\n\n{}\n\n{EXAMPLES}", exit_status::HELP, env_vars::HELP))]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Address of the server.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub(crate) url: Option<String>,
    /// File that holds the key.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    pub(crate) key_file: Option<PathBuf>,
    /// Entry of the context file to use.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub(crate) context: Option<String>,
    /// Print one JSON document on standard output; errors are a JSON line on standard error.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Print no words beside errors and warnings; `ls` prints ids alone.
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a fresh sandbox and delete it afterwards.
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Create a sandbox and print its id.
    Create(CreateArgs),
    /// List sandboxes.
    #[command(visible_alias = "list")]
    Ls,
    /// Show one sandbox.
    Info(InfoArgs),
    /// Run a command in a sandbox.
    #[command(after_help = EXEC_HELP)]
    Exec(ExecArgs),
    /// Copy a file into or out of a sandbox.
    #[command(after_help = COPY_HELP)]
    Cp(CopyArgs),
    /// Delete sandboxes. One that is gone already is a success.
    #[command(visible_alias = "delete")]
    Rm(RemoveArgs),
    /// Stop a sandbox's processors; its memory stays where it is.
    Pause(SandboxArgs),
    /// Let a paused sandbox go on.
    Resume(SandboxArgs),
    /// Move a sandbox to disk; the next call that needs it wakes it.
    Hibernate(SandboxArgs),
    /// Bring a hibernated sandbox back.
    Wake(SandboxArgs),
    /// Show or change how long a sandbox lives.
    #[command(after_help = TTL_HELP)]
    Ttl(TtlArgs),
    /// Snapshots: memory and disk of one moment.
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Take a sandbox back to one of its snapshots.
    Rollback(RollbackArgs),
    /// Make children that continue from this moment of a sandbox, and print their ids.
    #[command(after_help = FORK_HELP)]
    Fork(ForkArgs),
    /// Keep one child of a fork; prints the ids of those that were deleted.
    Promote(PromoteArgs),
    /// Volumes: disks that outlive sandboxes.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Templates: what sandboxes are made from.
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Show the host: capacity, sandboxes, parked engines.
    Node,
    /// Show the versions of this program and of the server.
    Version,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) creation: CreationArgs,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Do not delete the sandbox afterwards; its id goes to standard error.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub(crate) creation: CreationArgs,
    /// Never deleted or hibernated for idleness, and no time to live unless --ttl says one.
    #[arg(long)]
    pub(crate) persistent: bool,
    /// Label of your own; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pub(crate) metadata: Vec<(String, String)>,
}

/// What makes a sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct CreationArgs {
    /// Template to start from [default: the server's].
    #[arg(long, short, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Start from this snapshot: an id, or the beginning of one.
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "template")]
    pub(crate) from_snapshot: Option<String>,
    /// Delete the sandbox after this time: 90, 30s, 5m, 2h [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
    /// How long it may do nothing [default: for ever].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) idle: Option<Duration>,
    /// What happens when it did nothing for that long [default: delete].
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_timeout: Option<TimeoutAction>,
    /// Attach a volume, at /volumes/NAME when no path is given; may be given again.
    #[arg(long, value_name = "NAME[:PATH][:ro]", value_parser = mounts::parse)]
    pub(crate) volume: Vec<VolumeMount>,
    /// Processors that it may use at most, such as 0.5 [default: the template's].
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<f64>,
    /// GiB of disk [default: the template's].
    #[arg(long, value_name = "N")]
    pub(crate) disk_gb: Option<f64>,
    /// Fail at once when the template is still baking or the host has no room.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// How a command runs in a sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    /// Environment variable of the command; may be given again.
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pub(crate) env: Vec<(String, String)>,
    /// Directory to run in [default: /workspace].
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(crate) cwd: Option<String>,
    /// User to run as [default: agent].
    #[arg(long, short, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Kill the command after this time: 1.5, 30s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Read standard input to its end, as text, and give it to the command.
    #[arg(long, short = 'i')]
    pub(crate) stdin: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// A local path, `-` for standard input, or ID:PATH.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Place,
    /// A local path, `-` for standard output, or ID:PATH.
    #[arg(value_name = "DESTINATION")]
    pub(crate) destination: Place,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Ids, or the beginnings of them.
    #[arg(
        value_name = "ID",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) ids: Vec<String>,
    /// Delete every sandbox of the project.
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// List templates.
    #[command(visible_alias = "list")]
    Ls,
    /// Show one template.
    Info {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

const EXAMPLES: &str = "\
Examples:
  dayfly run -- python3 -c 'print(6 * 7)'
  id=$(dayfly create --ttl 10m); dayfly cp main.py $id:/workspace/
  dayfly exec $id -- python3 main.py; dayfly rm $id";

const RUN_HELP: &str = "\
Ends as the command did; `dayfly help` lists the exit statuses. Ctrl-C and SIGTERM stop the
command and delete the sandbox. With --json the output is not streamed: one object follows at
the end, with sandbox_id, stdout, stderr, exit_code, reason, signal, duration_ms, truncated and
sandbox_deleted.

Examples:
  dayfly run -- python3 -c 'print(6 * 7)'
  dayfly run --timeout 30s --env DEBUG=1 -- sh -c 'make test'
  dayfly run --stdin -- python3 - < script.py";

const EXEC_HELP: &str = "\
Ends as the command did; `dayfly help` lists the exit statuses. With --json the output is not
streamed: one object follows at the end, with sandbox_id, stdout, stderr, exit_code, reason,
signal, duration_ms and truncated.";

const TTL_HELP: &str = "\
Without a change it shows what holds now. What is not named stays. A new time to live counts from
now.

Examples:
  dayfly ttl ID 2h
  dayfly ttl ID none --idle 10m --on-timeout hibernate";

const FORK_HELP: &str = "\
The sandbox stands still for a moment and goes on. Each child has an id, an address, a clock and
randomness of its own; what programs had drawn before is the same in all. When some children
cannot be made, the others are printed and the exit status is 125.";

const COPY_HELP: &str = "\
A path in a sandbox that is not absolute starts at /workspace. A local file with a colon in its
name is ./NAME. Directories are not copied.

Examples:
  dayfly cp main.py ID:/workspace/
  dayfly cp ID:/workspace/result.csv .
  dayfly cp ID:/var/log/syslog - | less";
