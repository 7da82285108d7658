//! What can be asked. No logic is here: only names, types and help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use dayfly_api::VolumeMount;

use crate::args_help::{
    ATTACH_HELP, COPY_HELP, EXAMPLES, EXEC_HELP, FILES_HELP, FORK_HELP, RUN_HELP, TTL_HELP,
};
use crate::files::args::{CopyArgs, FilesArgs};
use crate::network::args::{NET_HELP, NetCommand, NetworkArgs};
use crate::ports::args::{PORT_HELP, PortCommand};
use crate::sandbox::args::{
    ForkArgs, PromoteArgs, RollbackArgs, SandboxArgs, SnapshotCommand, TimeoutAction, TtlArgs,
    VolumeCommand,
};
use crate::tenancy::args::{AuditArgs, EventsArgs, LocalCommand, ProjectCommand, TokenCommand};
use crate::volume::mounts;
use crate::{durations, env_vars, exit_status, pairs};

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
    Ls(LsArgs),
    /// Show what sandboxes use, again and again.
    Top(TopArgs),
    /// Show one sandbox.
    Info(InfoArgs),
    /// Run a command in a sandbox.
    #[command(after_help = EXEC_HELP)]
    Exec(ExecArgs),
    /// Open a shell in a sandbox: short for `exec -it` with the best shell that it has.
    Shell(ShellArgs),
    /// Go on with a command that was started before, by anybody.
    #[command(after_help = ATTACH_HELP)]
    Attach(AttachArgs),
    /// List the commands of a sandbox, those that ended included.
    Ps(SandboxArgs),
    /// Send a signal to a command of a sandbox.
    Kill(KillArgs),
    /// Print what a sandbox has kept of the output of its commands, or of one.
    Logs(LogsArgs),
    /// Copy a file or a directory into or out of a sandbox.
    #[command(after_help = COPY_HELP)]
    Cp(CopyArgs),
    /// List, make, move, remove and watch files of a sandbox.
    #[command(after_help = FILES_HELP)]
    Fs(FilesArgs),
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
    /// Show and change what sandboxes reach.
    #[command(subcommand, after_help = NET_HELP)]
    Net(NetCommand),
    /// Show what listens in sandboxes, and open it to others.
    #[command(subcommand, after_help = PORT_HELP)]
    Port(PortCommand),
    /// Volumes: disks that outlive sandboxes.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Templates: what sandboxes are made from.
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Keys of the project.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Projects, and what they use.
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Show who did what, newest first.
    Audit(AuditArgs),
    /// Follow what happens to sandboxes.
    Events(EventsArgs),
    #[command(flatten)]
    Local(LocalCommand),
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

/// Which sandboxes are wanted.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct LsArgs {
    /// Only those in this state, such as running or hibernated.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only those of this template.
    #[arg(long, short = 'T', value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Only those with this label; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pub(crate) metadata: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Show it once and end, as without a terminal.
    #[arg(long)]
    pub(crate) once: bool,
    /// Time between two looks: 1s, 5s.
    #[arg(long, value_name = "TIME", value_parser = durations::parse, default_value = "2s")]
    pub(crate) every: Duration,
}

/// What makes a sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct CreationArgs {
    /// Template to start from [default: the server's].
    #[arg(long, short = 'T', value_name = "NAME")]
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
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// Fail at once when the template is still baking or the host has no room.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// How a command runs in a sandbox.
#[derive(Debug, Default, clap::Args)]
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
    /// Pass standard input on to the command.
    #[arg(long, short = 'i', visible_alias = "interactive")]
    pub(crate) stdin: bool,
    /// Run the command in a terminal of its own, joined with this one.
    #[arg(long, short = 't')]
    pub(crate) tty: bool,
    /// MiB of memory for the command and its children; over it they are killed.
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_mb: Option<u64>,
    /// Processor time for the command and its children; over it they are killed.
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) cpu_time: Option<Duration>,
    /// Processes and threads of the command at once.
    #[arg(long, value_name = "N")]
    pub(crate) max_processes: Option<u64>,
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
    /// Start the command, print its exec id, and leave it running.
    #[arg(long, short, conflicts_with_all = ["stdin", "tty"])]
    pub(crate) detach: bool,
    /// Program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShellArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// User to run as [default: agent].
    #[arg(long, short, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Directory to begin in [default: /workspace].
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(crate) cwd: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AttachArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command, as `dayfly ps` names it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec_id: String,
    /// Where to begin in its standard output.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) offset: u64,
    /// Also print what a command in a terminal has printed before.
    #[arg(long)]
    pub(crate) all: bool,
    /// Pass standard input on to the command.
    #[arg(long, short = 'i')]
    pub(crate) stdin: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KillArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command, as `dayfly ps` names it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec_id: String,
    /// The signal's number [default: 9, which ends everything that the command started].
    #[arg(long, short, value_name = "N")]
    pub(crate) signal: Option<i32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command, as `dayfly ps` names it [default: all of them].
    #[arg(value_name = "EXEC")]
    pub(crate) exec_id: Option<String>,
    /// Standard error instead of standard output; with -f beside it.
    #[arg(long)]
    pub(crate) stderr: bool,
    /// Wait for what comes, until the commands have ended.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Where to begin in standard output.
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "exec_id")]
    pub(crate) offset: u64,
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
    /// Have a template baked, unless it is.
    Bake {
        #[arg(value_name = "NAME")]
        name: String,
        /// Wait until it is ready.
        #[arg(long)]
        wait: bool,
    },
}
