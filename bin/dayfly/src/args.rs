//! What can be asked. No logic is here: only names, types and help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ColorChoice, Parser, Subcommand};
use dayfly_api::VolumeMount;
use time::OffsetDateTime;

use crate::args_help::{
    ATTACH_HELP, COPY_HELP, EXAMPLES, EXEC_HELP, EXPLORE_HELP, FILES_HELP, FORK_HELP, RUN_HELP,
    TTL_HELP,
};
use crate::exec::signal_names;
use crate::export::args::{EXPORT_HELP, ExportArgs};
use crate::files::args::{CopyArgs, FilesArgs};
use crate::mcp::args::{MCP_HELP, McpArgs};
use crate::network::args::{NET_HELP, NetCommand, NetworkArgs};
use crate::ports::args::{PORT_HELP, PortCommand};
use crate::sandbox::args::{
    ClassChoice, ExploreArgs, ForkArgs, PromoteArgs, RollbackArgs, SandboxArgs, SnapshotCommand,
    TimeoutAction, TtlArgs, VolumeCommand, WakeArgs,
};
use crate::template::args::TemplateCommand;
use crate::tenancy::args::{
    AUDIT_HELP, AuditArgs, EventsArgs, LocalCommand, ProjectCommand, TokenCommand, WhoseArgs,
};
use crate::volume::mounts;
use crate::{durations, env_vars, exit_status, moments, pairs};

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
    /// File that holds the API key.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    pub(crate) key_file: Option<PathBuf>,
    /// Saved server to use, as `dayfly context ls` names it.
    #[arg(
        long,
        global = true,
        value_name = "CONTEXT",
        help_heading = "Global options"
    )]
    pub(crate) context: Option<String>,
    /// Print one JSON document on standard output; errors are one JSON line on standard error.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Print errors and warnings only; `ls` prints ids only.
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Print each request on standard error: method, path, status, time and request id.
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
    /// When to use colours.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value_t = ColorChoice::Auto,
        hide_default_value = true,
        help_heading = "Global options"
    )]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a new sandbox, then delete the sandbox.
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Create a sandbox and print its id.
    Create(CreateArgs),
    /// List sandboxes.
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Live CPU and memory of sandboxes.
    Top(TopArgs),
    /// Show the details of a sandbox.
    Info(InfoArgs),
    /// Run a command in a sandbox.
    #[command(after_help = EXEC_HELP)]
    Exec(ExecArgs),
    /// Open an interactive shell in a sandbox, like `exec -it ID -- bash`.
    Shell(ShellArgs),
    /// Attach to a running command: follow its output, and its exit status.
    #[command(after_help = ATTACH_HELP)]
    Attach(AttachArgs),
    /// List the commands of a sandbox, running and ended.
    Ps(SandboxArgs),
    /// Kill a command of a sandbox, or send it another signal.
    Kill(KillArgs),
    /// Print or follow the output of commands.
    Logs(LogsArgs),
    /// Copy files and directories into or out of a sandbox.
    #[command(after_help = COPY_HELP)]
    Cp(CopyArgs),
    /// List, create, move, remove and watch files in a sandbox.
    #[command(after_help = FILES_HELP)]
    Fs(FilesArgs),
    /// Delete sandboxes; deleting one twice is no error.
    #[command(visible_alias = "delete")]
    Rm(RemoveArgs),
    /// Freeze a sandbox; its memory stays in RAM.
    Pause(SandboxArgs),
    /// Continue a paused sandbox.
    Resume(SandboxArgs),
    /// Save a sandbox to disk and free its memory; the next request wakes it.
    Hibernate(SandboxArgs),
    /// Restore a hibernated sandbox.
    Wake(WakeArgs),
    /// Show or change the time to live and the idle timeout of a sandbox.
    #[command(after_help = TTL_HELP)]
    Ttl(TtlArgs),
    /// Take, list and delete snapshots: memory and disk at one moment.
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Restore a sandbox to one of its snapshots.
    Rollback(RollbackArgs),
    /// Clone a running sandbox, memory included; print the ids of the children.
    #[command(after_help = FORK_HELP)]
    Fork(ForkArgs),
    /// Try commands in clones of a sandbox and keep the best; print its id.
    #[command(after_help = EXPLORE_HELP)]
    Explore(ExploreArgs),
    /// Keep one child of a fork; with --cleanup delete its siblings.
    Promote(PromoteArgs),
    /// Network policy of sandboxes: show, allow, deny, log.
    #[command(subcommand, after_help = NET_HELP)]
    Net(NetCommand),
    /// Listening ports of sandboxes, and links (preview URLs) to them.
    #[command(subcommand, after_help = PORT_HELP)]
    Port(PortCommand),
    /// MCP server: sandboxes as tools of Claude, Cursor, VS Code, Codex.
    #[command(after_help = MCP_HELP)]
    Mcp(McpArgs),
    /// Volumes: persistent disks that outlive sandboxes.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Templates: the images that sandboxes start from.
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Projects, their limits and usage.
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Audit log: who did what, newest first.
    #[command(after_help = AUDIT_HELP)]
    Audit(AuditArgs),
    /// Follow state changes of sandboxes.
    Events(EventsArgs),
    /// Export audit log, events and egress of all projects to file or webhook.
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    #[command(flatten)]
    Local(LocalCommand),
    /// Show the host: capacity, sandboxes, parked engines.
    Node,
    /// Show the server, project and API key in use, and the scopes of the key.
    Whoami,
    /// Show the versions of this program and of the server.
    Version,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) creation: CreationArgs,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Keep the sandbox afterwards; its id goes to standard error.
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
    /// Environment variable of every command and context of the sandbox; KEY alone has the value
    /// that it has here. May be given again.
    #[arg(long, short, value_name = "KEY[=VALUE]", value_parser = pairs::variable)]
    pub(crate) env: Vec<(String, String)>,
    /// No idle timeout, and no time to live unless --ttl sets one.
    #[arg(long)]
    pub(crate) persistent: bool,
}

/// Which sandboxes are wanted.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct LsArgs {
    /// Filter by status, such as running or hibernated.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Filter by template.
    #[arg(long, short = 'T', value_name = "TEMPLATE")]
    pub(crate) template: Option<String>,
    /// Filter by label; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pub(crate) metadata: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Show the samples of this sandbox alone: its name, its id, or a unique prefix of the id.
    #[arg(
        value_name = "SANDBOX",
        requires = "since",
        conflicts_with = "all_projects"
    )]
    pub(crate) sandbox: Option<String>,
    /// Show what was used since then, once: 10m or 2h ago, 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "WHEN", value_parser = moments::parse, conflicts_with_all = ["once", "every"])]
    pub(crate) since: Option<OffsetDateTime>,
    /// Print once and exit, as without a terminal.
    #[arg(long)]
    pub(crate) once: bool,
    /// Refresh interval: 1s, 5s.
    #[arg(long, value_name = "TIME", value_parser = durations::parse, default_value = "2s")]
    pub(crate) every: Duration,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
}

/// What makes a sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct CreationArgs {
    /// Template to start from [default: the server's].
    #[arg(long, short = 'T', value_name = "TEMPLATE")]
    pub(crate) template: Option<String>,
    /// Image of a container to start from, such as python:3.12 or ghcr.io/me/app:1.
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["template", "from_snapshot"])]
    pub(crate) image: Option<String>,
    /// Name of your own, which stands for the id until the sandbox is deleted.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Start from this snapshot: its name, its id, or a unique prefix of the id.
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "template")]
    pub(crate) from_snapshot: Option<String>,
    /// Boot from the disk of that snapshot: all of its files and none of its processes. Works also
    /// when its memory can no longer be restored.
    #[arg(long, requires = "from_snapshot")]
    pub(crate) disk_only: bool,
    /// Time to live, such as 90 (seconds), 30s, 5m, 2h; then it is deleted [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Idle timeout, such as 90 (seconds), 30s, 5m, 2h [default: none].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) idle: Option<Duration>,
    /// What to do at the idle timeout [default: delete].
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_timeout: Option<TimeoutAction>,
    /// Mount a volume, at /volumes/NAME when no path is given; may be given again.
    #[arg(long, value_name = "VOLUME[:PATH][:ro]", value_parser = mounts::parse)]
    pub(crate) volume: Vec<VolumeMount>,
    /// Label of your own, for `ls --metadata`; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pub(crate) metadata: Vec<(String, String)>,
    /// CPU limit, such as 0.5; more than the template has is a variant of it, see --memory
    /// [default: the template's].
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<f64>,
    /// Memory of the sandbox in MiB: the template's, or a larger multiple of 128. Another size is
    /// baked when it is first used [default: the template's].
    #[arg(long, value_name = "MIB")]
    pub(crate) memory: Option<u64>,
    /// Disk size in GiB [default: the template's].
    #[arg(long, value_name = "N")]
    pub(crate) disk_gb: Option<f64>,
    /// What the host promises: all of its size, or a working set [default: shared where the host
    /// allows it].
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<ClassChoice>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// Fail at once when the template is still baking or the host has no capacity.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// How a command runs in a sandbox.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ProcessArgs {
    /// Environment variable of the command; KEY alone has the value that it has here. May be given
    /// again.
    #[arg(long, short, value_name = "KEY[=VALUE]", value_parser = pairs::variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Working directory [default: /workspace].
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(crate) cwd: Option<String>,
    /// User to run as [default: agent].
    #[arg(long, short, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Timeout, such as 1.5 (seconds), 30s, 5m, 2h; then the command is killed.
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Pass standard input to the command.
    #[arg(long, short = 'i', visible_alias = "interactive")]
    pub(crate) stdin: bool,
    /// Allocate a terminal (PTY) for the command.
    #[arg(long, short = 't')]
    pub(crate) tty: bool,
    /// Memory limit in MiB for the command and its child processes; over it they are killed.
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_mb: Option<u64>,
    /// CPU time limit, such as 30s, for the command and its child processes; over it they are killed.
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) cpu_time: Option<Duration>,
    /// Limit of processes and threads of the command.
    #[arg(long, value_name = "N")]
    pub(crate) max_processes: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Start the command in the background and print its exec id.
    #[arg(long, short, conflicts_with_all = ["stdin", "tty"])]
    pub(crate) detach: bool,
    /// Program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShellArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// User to run as [default: agent].
    #[arg(long, short, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Working directory [default: /workspace].
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    pub(crate) cwd: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AttachArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command, as `dayfly ps` names it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec_id: String,
    /// Start at this byte of its standard output.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) offset: u64,
    /// Also print earlier output of a command that has a terminal.
    #[arg(long)]
    pub(crate) all: bool,
    /// Pass standard input to the command.
    #[arg(long, short = 'i')]
    pub(crate) stdin: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KillArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command, as `dayfly ps` names it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec_id: String,
    /// TERM, INT, 9 [default: KILL, which ends the command and its child processes].
    #[arg(long, short, value_name = "SIGNAL", value_parser = signal_names::parse)]
    pub(crate) signal: Option<i32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The command, as `dayfly ps` names it [default: all of them].
    #[arg(value_name = "EXEC")]
    pub(crate) exec_id: Option<String>,
    /// Standard error instead of standard output; -f prints both.
    #[arg(long)]
    pub(crate) stderr: bool,
    /// Follow the output until the commands have ended.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Start at this byte of standard output.
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "exec_id")]
    pub(crate) offset: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Sandboxes: names, ids, or unique prefixes of ids.
    #[arg(
        value_name = "ID",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) ids: Vec<String>,
    /// Delete every sandbox of the project.
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Of another project, as an operator.
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Option<String>,
}
