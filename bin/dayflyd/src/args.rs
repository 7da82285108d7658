//! The command line of the daemon. No logic.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use dayfly_control::{PreviewDomain, SignInSettings};
use dayfly_snapshots::Registries;
use dayfly_types::LogFormat;
use dayfly_types::egress::InternalNetworks;
use dayfly_types::limits::EGRESS_BYTES_PER_SECOND;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::as_text;
use crate::disk_pace::DiskPaceArguments;
use crate::egress_proxy::EgressProxy;
use crate::egress_uplink::EgressUplink;
use crate::internal_network;
use crate::registries::RegistriesParser;
use crate::sharing::SharingArguments;
use crate::sign_in;

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
    /// Gives up what cannot be read. This cannot be undone.
    Forget(ForgetArguments),
    /// Says which settings hold, and where each comes from.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Looks at recipes of templates.
    #[command(subcommand)]
    Recipe(RecipeCommand),
    /// Carries built disk images of templates between hosts.
    #[command(subcommand)]
    Image(ImageCommand),
    /// Copies everything that cannot be made again, while the daemon runs or not.
    Backup(BackupArguments),
    /// Makes a data directory from a backup.
    Restore(RestoreArguments),
    /// Makes certificates for a host that has no other authority.
    #[command(subcommand)]
    Tls(TlsCommand),
    /// Replaces the administrator's key.
    #[command(subcommand)]
    AdminKey(AdminKeyCommand),
    /// Ends every sandbox of a data directory and removes it with all that is in it.
    Purge(PurgeArguments),
    /// Writes manual pages, and completions for shells, into a directory. For packages.
    #[command(hide = true)]
    Manual(ManualArguments),
    /// Shows the builds of the engine that are kept, and gives one up.
    #[command(subcommand)]
    Engines(EnginesCommand),
    /// Started by the node beside a capture.
    #[command(name = crate::pause_guard::COMMAND, hide = true)]
    GuardPause(GuardArguments),
}

/// The settings of the daemon. Each is a flag, an environment variable and a key of the settings
/// file, with the same name; whatever comes first here wins.
///
/// The whole of it is handed to the processes that the daemon starts.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct RunArguments {
    /// The file with settings. Default: /etc/dayfly/dayflyd.toml, if it is there.
    #[arg(long, value_name = "FILE", env = "DAYFLYD_CONFIG")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
    /// Where everything is kept. Made at the first start.
    #[arg(
        long,
        value_name = "DIR",
        env = "DAYFLYD_DATA_DIR",
        default_value = "/var/lib/dayfly"
    )]
    pub(crate) data_dir: PathBuf,
    /// Where the API is served.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "DAYFLYD_LISTEN",
        default_value = "127.0.0.1:7070"
    )]
    pub(crate) listen: SocketAddr,
    /// Serve plain HTTP on an address that other hosts can reach: whoever is on the way reads keys.
    /// For a reverse proxy on another host that speaks TLS.
    #[arg(long, env = "DAYFLYD_PLAIN_HTTP")]
    pub(crate) plain_http: bool,
    /// Where the API and previews are served over TLS. Needs a certificate and its key.
    #[arg(long, value_name = "ADDRESS", env = "DAYFLYD_TLS_LISTEN")]
    pub(crate) tls_listen: Option<SocketAddr>,
    /// The certificate in PEM form, with those that lead to its authority. Read again on SIGHUP.
    #[arg(long, value_name = "FILE", env = "DAYFLYD_TLS_CERTIFICATE")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Its private key in PEM form.
    #[arg(long, value_name = "FILE", env = "DAYFLYD_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Where Prometheus reads `/metrics`, in plain HTTP and without a key. Default: nowhere.
    #[arg(long, value_name = "ADDRESS", env = "DAYFLYD_METRICS_LISTEN")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// What a line of the log is: `text`, or `json`, one object on each line.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "DAYFLYD_LOG_FORMAT",
        default_value = LogFormat::Text.as_str(),
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(LogFormat::NAMES)
            .try_map(|name| name.parse::<LogFormat>())
    )]
    pub(crate) log_format: LogFormat,
    /// Engines that wait for a create, for each template.
    #[arg(
        long,
        value_name = "N",
        env = "DAYFLYD_PARKED_ENGINES",
        default_value_t = 2
    )]
    pub(crate) parked_engines: usize,
    /// Slots that wait for an engine.
    #[arg(
        long,
        value_name = "N",
        env = "DAYFLYD_PARKED_SLOTS",
        default_value_t = 2
    )]
    pub(crate) parked_slots: usize,
    /// Memory kept for the host, in MiB. Default: a tenth, at least 1024.
    #[arg(long, value_name = "MIB", env = "DAYFLYD_MEMORY_RESERVE")]
    pub(crate) memory_reserve: Option<u64>,
    /// Disk kept for the host, in MiB. Default: a twentieth of what is free, at least 1024.
    #[arg(long, value_name = "MIB", env = "DAYFLYD_DISK_RESERVE")]
    pub(crate) disk_reserve: Option<u64>,
    #[command(flatten)]
    pub(crate) sharing: SharingArguments,
    /// Let several projects share this host although its guests are only emulated. Emulation does
    /// not keep projects apart.
    #[arg(long, env = "DAYFLYD_ALLOW_SHARED_EMULATION")]
    pub(crate) allow_shared_emulation: bool,
    /// Templates to bake at the start, with commas between, or `all`. Others are baked when
    /// somebody asks for them.
    #[arg(
        long,
        value_name = "NAMES",
        env = "DAYFLYD_TEMPLATES",
        value_delimiter = ',',
        default_value = "base"
    )]
    pub(crate) templates: Vec<String>,
    /// A directory that keeps built disk images beside the data directory's own.
    #[arg(long, value_name = "DIR", env = "DAYFLYD_IMAGE_CACHE")]
    pub(crate) image_cache: Option<PathBuf>,
    /// How traffic of sandboxes leaves this host: `nat` (a link of its own to the host, which
    /// forwards), `none`, or `netns:PATH` (a network namespace that was prepared for it).
    #[arg(
        long,
        value_name = "KIND",
        env = "DAYFLYD_EGRESS_UPLINK",
        default_value = "nat"
    )]
    #[serde(with = "as_text")]
    pub(crate) egress_uplink: EgressUplink,
    /// DNS server for names that sandboxes may reach. Repeat for more. Default: those of this host.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "DAYFLYD_EGRESS_RESOLVER",
        value_delimiter = ','
    )]
    pub(crate) egress_resolver: Vec<SocketAddr>,
    /// Bytes that one sandbox may send in a second, and as many that it may receive. 0: no limit.
    #[arg(
        long,
        value_name = "BYTES",
        env = "DAYFLYD_EGRESS_RATE",
        default_value_t = EGRESS_BYTES_PER_SECOND
    )]
    pub(crate) egress_rate: u64,
    #[command(flatten)]
    pub(crate) disk_pace: DiskPaceArguments,
    /// HTTP proxy that connections of sandboxes to public addresses go through, by CONNECT:
    /// http://ADDRESS:PORT. Default: none.
    #[arg(long, value_name = "URL", env = "DAYFLYD_EGRESS_PROXY")]
    pub(crate) egress_proxy: Option<EgressProxy>,
    /// Networks inside private space that sandboxes of some projects may reach, as a list in JSON; in
    /// the file they are tables, `[[internal_network]]`. Each has a name, projects, ranges, ports,
    /// and perhaps hosts. A sandbox still needs a rule.
    #[arg(
        long,
        value_name = "JSON",
        env = "DAYFLYD_INTERNAL_NETWORK",
        value_parser = internal_network::parse,
        default_value = "[]"
    )]
    pub(crate) internal_network: InternalNetworks,
    /// Registries of images, as a list in JSON; in the file they are tables, `[[registry]]`. Each has
    /// a host, and perhaps a user with a password_file, an authority (a file with certificates), and
    /// projects whose images are fetched with them too.
    #[arg(
        long,
        value_name = "JSON",
        env = "DAYFLYD_REGISTRY",
        value_parser = RegistriesParser,
        default_value = "[]"
    )]
    #[serde(default)]
    pub(crate) registry: Registries,
    /// How people sign in, as JSON; in the file it is a table, `[sign_in]`: issuer and client_id of an
    /// OpenID provider, and a list of grants, `[[sign_in.grant]]`, which say who has which role in
    /// which project. Default: nobody can.
    #[arg(
        long,
        value_name = "JSON",
        env = "DAYFLYD_SIGN_IN",
        value_parser = sign_in::parse
    )]
    pub(crate) sign_in: Option<SignInSettings>,
    /// Under which domain services in sandboxes have host names, PORT-SANDBOX.DOMAIN; with
    /// a reverse proxy in front of the API, the address that visitors use: https://DOMAIN:PORT.
    #[arg(
        long,
        value_name = "DOMAIN",
        env = "DAYFLYD_PREVIEW_DOMAIN",
        default_value_t
    )]
    #[serde(with = "as_text")]
    pub(crate) preview_domain: PreviewDomain,
    /// Host names under which clients reach the API, for those of MCP: under others `/mcp` is
    /// refused, except for addresses and localhost. May be given again.
    #[arg(
        long,
        value_name = "NAME",
        env = "DAYFLYD_API_HOST",
        value_delimiter = ','
    )]
    pub(crate) api_host: Vec<String>,
    /// Reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, as ranges such as
    /// 10.0.0.5/32. Repeat for more.
    #[arg(
        long,
        value_name = "RANGE",
        env = "DAYFLYD_TRUSTED_PROXY",
        value_delimiter = ','
    )]
    pub(crate) trusted_proxy: Vec<IpNet>,
    /// How long a guest may take to say something when the daemon looks for KVM. More on a host
    /// that is itself emulated.
    #[arg(
        long,
        value_name = "N",
        env = "DAYFLYD_PROBE_SECONDS",
        default_value_t = 6,
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    pub(crate) probe_seconds: u64,
    /// Members of this group of the host use the default project without a key of their own.
    #[arg(long, value_name = "GROUP", env = "DAYFLYD_LOCAL_GROUP")]
    pub(crate) local_group: Option<String>,
    /// The parts of role `all`, which the daemon starts by itself.
    #[arg(long, value_enum, default_value_t = Role::All, hide = true)]
    #[serde(skip)]
    pub(crate) role: Role,
    /// The process that a role ends with.
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub(crate) supervisor: Option<i32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    #[default]
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
    /// Also end with status 1 when something is not fit for production.
    #[arg(long)]
    pub(crate) production: bool,
    /// Boot no guest where the daemon has not tried one on this host yet.
    #[arg(long, requires = "data_dir")]
    pub(crate) no_probe: bool,
    /// How long a guest may take to say something.
    #[arg(
        long,
        value_name = "N",
        env = "DAYFLYD_PROBE_SECONDS",
        default_value_t = 6,
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    pub(crate) probe_seconds: u64,
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which daemon's things a command is about, and how it prints.
#[derive(Debug, Args)]
pub(crate) struct InstallationArguments {
    /// The daemon's data directory. It may run, and need not have run yet.
    #[arg(
        long,
        value_name = "DIR",
        env = "DAYFLYD_DATA_DIR",
        default_value = "/var/lib/dayfly"
    )]
    pub(crate) data_dir: PathBuf,
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
pub(crate) enum EnginesCommand {
    /// Lists them, with who needs each.
    Ls(InstallationArguments),
    /// Has nothing started in one any more. What it saved is restored by another build of the same
    /// version, where there is one.
    Retire(RetireArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RetireArguments {
    /// The build, or how it begins.
    pub(crate) build: String,
    /// Retires it although something cannot be restored without it.
    #[arg(long)]
    pub(crate) accept_loss: bool,
    #[command(flatten)]
    pub(crate) installation: InstallationArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TlsCommand {
    /// Makes an authority of this host's own, and a certificate signed by it. Replaces nothing.
    Init(TlsArguments),
    /// Makes the next certificate with the same authority, for the same names unless others are given.
    Renew(TlsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TlsArguments {
    /// Where the files are.
    #[arg(long, value_name = "DIR", default_value = "/etc/dayfly/tls")]
    pub(crate) directory: PathBuf,
    /// A name or an address by which clients reach this host; `*.NAME` for previews. Repeat for
    /// more. Default: the name of this host, localhost and 127.0.0.1.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Reads the settings file and the environment as a start would, and starts nothing.
    Check(ConfigArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// The file with settings. Default: /etc/dayfly/dayflyd.toml, if it is there.
    #[arg(long, value_name = "FILE", env = "DAYFLYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Writes the built disk image of a template to a file.
    Export(ExportArguments),
    /// Takes in a disk image that another host has exported, whole or not at all. A bake of its
    /// template then needs no mirror of packages.
    Import(ImportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The template.
    pub(crate) name: String,
    /// Where to; `-` is the standard output.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Look also into this directory of built disk images.
    #[arg(long, value_name = "DIR", env = "DAYFLYD_IMAGE_CACHE")]
    pub(crate) image_cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) installation: InstallationArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Where from; `-` is the standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Refuse any other archive than the one of this digest, which the export said.
    #[arg(long, value_name = "HEX")]
    pub(crate) digest: Option<String>,
    #[command(flatten)]
    pub(crate) installation: InstallationArguments,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArguments {
    #[command(subcommand)]
    pub(crate) command: Option<BackupCommand>,
    #[command(flatten)]
    pub(crate) make: MakeBackupArguments,
}

#[derive(Debug, Args)]
pub(crate) struct MakeBackupArguments {
    #[arg(
        long,
        value_name = "DIR",
        env = "DAYFLYD_DATA_DIR",
        default_value = "/var/lib/dayfly"
    )]
    pub(crate) data_dir: PathBuf,
    /// A directory that does not exist or is empty, or `-` for one archive on standard output.
    #[arg(value_name = "DIR|-", required = true)]
    pub(crate) to: Option<PathBuf>,
    /// With `-` the JSON goes to standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Reads every byte of a backup and says whether it is whole.
    Check(CheckBackupArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CheckBackupArguments {
    /// The directory of a backup, or `-` for an archive on standard input.
    #[arg(value_name = "DIR|-")]
    pub(crate) from: PathBuf,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The data directory that is made. It must not exist, or be empty.
    #[arg(
        long,
        value_name = "DIR",
        env = "DAYFLYD_DATA_DIR",
        default_value = "/var/lib/dayfly"
    )]
    pub(crate) data_dir: PathBuf,
    /// The directory of a backup, or `-` for an archive on standard input.
    #[arg(value_name = "DIR|-")]
    pub(crate) from: PathBuf,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminKeyCommand {
    /// Writes a new key. The old one is refused when this returns.
    Rotate(InstallationArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    // No default: what is removed is named.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// Do it. Without this it only says what would be lost.
    #[arg(long)]
    pub(crate) yes: bool,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct GuardArguments {
    pub(crate) slot: u32,
    pub(crate) run_directory: PathBuf,
    pub(crate) pid: i32,
    pub(crate) start_time_ticks: u64,
}
