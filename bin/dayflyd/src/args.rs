//! The command line of the daemon. No logic.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dayfly_control::PreviewDomain;
use dayfly_types::limits::EGRESS_BYTES_PER_SECOND;

/// Gives AI agents disposable computers: every sandbox is a microVM restored from a snapshot.
///
/// Without a command it runs the daemon in the foreground until SIGTERM. Sandboxes go on running
/// when it stops, and the next start takes them over.
#[derive(Debug, Parser)]
#[command(name = "dayflyd", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Says whether this host is fit, what its isolation is, and what is left over.
    Doctor(DoctorArguments),
    /// Measures the product beside the bare engine, in one run.
    // Its help is the bench's own, and so comes with the arguments.
    #[command(name = crate::bench::COMMAND, disable_help_flag = true)]
    Bench(BenchArguments),
    /// Deletes running sandboxes of all projects. Never a volume, a snapshot or a hibernated one.
    Stop(StopArguments),
    /// Says which database a node works for.
    #[command(subcommand)]
    Database(DatabaseCommand),
    /// Gives up what cannot be read. It cannot be had back.
    Forget(ForgetArguments),
    /// Looks at recipes of templates.
    #[command(subcommand)]
    Recipe(RecipeCommand),
    /// Started by the node beside a capture.
    #[command(name = crate::pause_guard::COMMAND, hide = true)]
    GuardPause(GuardArguments),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunArguments {
    /// Where everything is kept. Made at the first start.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/dayfly")]
    pub(crate) data_dir: PathBuf,
    /// Where the API is served.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub(crate) listen: SocketAddr,
    /// Engines that wait for a create, for each template.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) parked_engines: usize,
    /// Slots that wait for an engine.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) parked_slots: usize,
    /// Memory kept for the host, in MiB. Default: a tenth, at least 1024.
    #[arg(long, value_name = "MIB")]
    pub(crate) memory_reserve: Option<u64>,
    /// Disk kept for the host, in MiB. Default: a twentieth of what is free, at least 1024.
    #[arg(long, value_name = "MIB")]
    pub(crate) disk_reserve: Option<u64>,
    /// Let several projects share this host although its guests are only emulated. Emulation does
    /// not keep projects apart.
    #[arg(long)]
    pub(crate) allow_shared_emulation: bool,
    /// Templates to bake at the start, with commas between, or `all`. Others are baked when
    /// somebody asks for them.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "base"
    )]
    pub(crate) templates: Vec<String>,
    /// How traffic of sandboxes leaves this host: `nat` (a link of its own to the host, which
    /// forwards), `none`, or `netns:PATH` (a network namespace that was prepared for it).
    #[arg(long, value_name = "KIND", default_value = "nat", value_parser = EgressUplink::parse)]
    pub(crate) egress_uplink: EgressUplink,
    /// Whom names are asked from. Repeat for more. Default: the resolvers of this host.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) egress_resolver: Vec<SocketAddr>,
    /// Bytes that one sandbox may send in a second, and as many that it may receive. 0: no limit.
    #[arg(long, value_name = "BYTES", default_value_t = EGRESS_BYTES_PER_SECOND)]
    pub(crate) egress_rate: u64,
    /// Under which domain services in sandboxes have host names, PORT-SANDBOX.DOMAIN; with
    /// something in front of the API, the address that visitors use: https://DOMAIN:PORT.
    #[arg(long, value_name = "DOMAIN", default_value_t)]
    pub(crate) preview_domain: PreviewDomain,
    /// The parts of role `all`, which the daemon starts by itself.
    #[arg(long, value_enum, default_value_t = Role::All, hide = true)]
    pub(crate) role: Role,
    /// Digest of the administrator's key, handed to the control role where no list of processes
    /// shows it.
    #[arg(skip)]
    pub(crate) admin_key_sha256: Option<String>,
    /// The process that a role ends with.
    #[arg(long, hide = true)]
    pub(crate) supervisor: Option<i32>,
}

/// How traffic leaves the host, as it is written on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EgressUplink {
    None,
    Nat,
    Namespace(PathBuf),
}

impl EgressUplink {
    fn parse(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("netns:")) {
            ("none", _) => Ok(Self::None),
            ("nat", _) => Ok(Self::Nat),
            (_, Some(path)) if path.starts_with('/') => Ok(Self::Namespace(PathBuf::from(path))),
            _ => Err("one of nat, none, netns:/PATH".to_owned()),
        }
    }
}

impl std::fmt::Display for EgressUplink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Nat => formatter.write_str("nat"),
            Self::Namespace(path) => write!(formatter, "netns:{}", path.display()),
        }
    }
}

impl From<EgressUplink> for dayfly_host::net::Uplink {
    fn from(uplink: EgressUplink) -> Self {
        match uplink {
            EgressUplink::None => Self::None,
            EgressUplink::Nat => Self::Nat,
            EgressUplink::Namespace(path) => Self::Namespace(path),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    All,
    Control,
    Node,
}

impl Role {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Control => "control",
            Self::Node => "node",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Also look at what this data directory's daemon left.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Boot no guest: say what the daemon found when it last tried on this host.
    #[arg(long, requires = "data_dir")]
    pub(crate) no_probe: bool,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// As they are, for the program that knows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) given: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// Delete every running sandbox.
    #[arg(long, required = true)]
    pub(crate) all: bool,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Accepts the database that is there, new, older or foreign, as the right one of this node.
    Accept(DatabaseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DatabaseArguments {
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArguments {
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// A sandbox whose record cannot be read, see `dayflyd doctor`.
    #[arg(long, value_name = "ID")]
    pub(crate) unreadable: String,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecipeCommand {
    /// Says whether recipes can be baked, as far as their text tells, and why not.
    Check(RecipeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RecipeArguments {
    /// Files with recipes, or directories of them.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GuardArguments {
    pub(crate) slot: u32,
    pub(crate) run_directory: PathBuf,
    pub(crate) pid: i32,
    pub(crate) start_time_ticks: u64,
}
