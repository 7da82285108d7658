//! What can be asked about servers, projects, keys and what was done with them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::durations;

/// What needs no server that is known already.
#[derive(Debug, Subcommand)]
pub(crate) enum LocalCommand {
    /// Store the address and key of a server.
    #[command(after_help = LOGIN_HELP)]
    Login(LoginArgs),
    /// Servers that are known, and which is used.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Print the script that completes commands: bash, zsh, fish.
    Completions(CompletionArgs),
    /// Write manual pages.
    #[command(hide = true)]
    Manual(ManualArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// Address of the server.
    #[arg(value_name = "URL")]
    pub(crate) server: String,
    /// What to call it in `dayfly context`.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) name: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List the servers that are known.
    #[command(visible_alias = "list")]
    Ls,
    /// Use this one from now on.
    Use {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Forget one, with its key.
    Rm {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// See what there is.
    Read,
    /// Make, change and delete sandboxes, snapshots and volumes.
    Create,
    /// Everything inside sandboxes.
    Exec,
    /// Keys, defaults and the audit record of the project.
    Admin,
    /// Projects.
    Operator,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a key and print it. It is shown this once.
    Create {
        /// What to call it.
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        /// What it may be used for; may be given again [default: as the key that makes it].
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<ScopeArg>,
        /// Only for this sandbox: an id, or the beginning of one.
        #[arg(long, value_name = "SANDBOX")]
        sandbox: Option<String>,
        /// How long it works: 90, 30s, 5m, 2h [default: until it is revoked].
        #[arg(long, value_name = "TIME", value_parser = durations::parse)]
        ttl: Option<Duration>,
        /// Of another project, for operators.
        #[arg(long, value_name = "PROJECT", conflicts_with = "sandbox")]
        project: Option<String>,
    },
    /// List keys, without their secrets.
    #[command(visible_alias = "list")]
    Ls,
    /// Revoke keys. They are refused from then on.
    Rm {
        /// What the keys begin with, as `dayfly token ls` shows it.
        #[arg(required = true, value_name = "PREFIX")]
        prefixes: Vec<String>,
        /// Also end the keys and links that they made, and that those made.
        #[arg(long)]
        descendants: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Make a project.
    Create {
        #[arg(value_name = "PROJECT")]
        id: String,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// List projects and what they may use.
    #[command(visible_alias = "list")]
    Ls,
    /// Change what a project may use.
    Set {
        #[arg(value_name = "PROJECT")]
        id: String,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Show what this project uses, and may use.
    Usage,
}

/// Limits: a number, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

fn limit(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let number = text.parse().map_err(|_| "give a number or `none`")?;
    Ok(Limit(Some(number)))
}

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LimitArgs {
    /// Sandboxes at once, asleep or not; `none` for as many as there is room for.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) sandboxes: Option<Limit>,
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) vcpus: Option<Limit>,
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) memory_mb: Option<Limit>,
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) snapshot_mb: Option<Limit>,
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) volume_mb: Option<Limit>,
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) requests_per_second: Option<Limit>,
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) disk_mb: Option<Limit>,
    /// Whether the audit record keeps what commands print.
    #[arg(long, value_name = "BOOL")]
    pub(crate) keeps_output: Option<bool>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// Only what was about this sandbox, snapshot, volume or key.
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
    /// At most this many entries, newest first.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub(crate) limit: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Begin behind this cursor; 0 is the oldest that is kept [default: now].
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionArgs {
    pub(crate) shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// Directory for the pages.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

pub(crate) const LOGIN_HELP: &str = "\
The key is asked for, or read from standard input; it is stored in a file that only you can read.

Examples:
  dayfly login https://dayfly.example
  ssh host sudo cat /var/lib/dayfly/admin.key | dayfly login http://host:7070 --name lab
  dayfly context use lab";
