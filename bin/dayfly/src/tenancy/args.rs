//! What can be asked about servers, projects, keys and what was done with them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use clap_complete::Shell;
use dayfly_client::ProjectChoice;
use time::OffsetDateTime;

use crate::{durations, moments};

/// What needs no server that is known already.
#[derive(Debug, Subcommand)]
pub(crate) enum LocalCommand {
    /// Save the address and API key of a server.
    #[command(after_help = LOGIN_HELP)]
    Login(LoginArgs),
    /// List and choose saved servers.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Print a shell completion script: bash, zsh, fish.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(CompletionArgs),
    /// Write manual pages.
    #[command(hide = true)]
    Manual(ManualArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// Address of the server.
    #[arg(value_name = "URL", required_unless_present = "local")]
    pub(crate) server: Option<String>,
    /// Name for it in `dayfly context`.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) name: String,
    /// Use the daemon on this host with its administrator's key, for the user who called sudo.
    #[arg(long)]
    pub(crate) local: bool,
    /// Data directory of that daemon [default: as /etc/dayfly/dayflyd.toml says].
    #[arg(long, value_name = "DIR", requires = "local")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Sign in as a person, with the server's OpenID provider, by a code that is entered in a browser.
    #[arg(long, conflicts_with = "local")]
    pub(crate) sso: bool,
    /// Sign in with an ID token of that provider from this file; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["local", "sso"])]
    pub(crate) id_token_file: Option<PathBuf>,
    /// Which project, for people who have roles in several.
    #[arg(long, value_name = "PROJECT", conflicts_with = "local")]
    pub(crate) project: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List saved servers.
    #[command(visible_alias = "list")]
    Ls,
    /// Choose the server to use from now on.
    Use {
        /// Name of the saved server.
        #[arg(value_name = "CONTEXT")]
        name: String,
    },
    /// Remove a saved server and its API key.
    Rm {
        /// Name of the saved server.
        #[arg(value_name = "CONTEXT")]
        name: String,
    },
}

/// Whose things are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct WhoseArgs {
    /// Of another project, as an operator.
    #[arg(long, value_name = "PROJECT", conflicts_with = "all_projects")]
    pub(crate) project: Option<String>,
    /// Of all projects, as an operator.
    #[arg(long)]
    pub(crate) all_projects: bool,
}

impl WhoseArgs {
    pub(crate) fn choice(&self) -> ProjectChoice {
        match &self.project {
            Some(project) => ProjectChoice::One(project.clone()),
            None if self.all_projects => ProjectChoice::All,
            None => ProjectChoice::Own,
        }
    }
}

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// List and inspect. Every key has it.
    Read,
    /// Create, change and delete sandboxes, snapshots and volumes.
    Create,
    /// Commands, files and ports in sandboxes.
    Exec,
    /// Audit log of the project.
    Audit,
    /// API keys, network default and audit log of the project.
    Admin,
    /// Projects, their limits, and the host.
    Operator,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create an API key and print it. It is shown only once.
    Create {
        /// Label of the key.
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        /// Scope (permission) of the key; may be given again [default: as the key that creates it].
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<ScopeArg>,
        /// Restrict it to this sandbox: its name, its id, or a unique prefix of the id.
        #[arg(long, value_name = "ID")]
        sandbox: Option<String>,
        /// Expires after this time, such as 30s, 5m, 2h, 30d [default: never].
        #[arg(long, value_name = "TIME", value_parser = durations::parse)]
        ttl: Option<Duration>,
        /// Create it in another project, as an operator.
        #[arg(long, value_name = "PROJECT", conflicts_with = "sandbox")]
        project: Option<String>,
    },
    /// List API keys, without their secrets.
    #[command(visible_alias = "list")]
    Ls {
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Revoke API keys.
    Rm {
        /// Prefix of the key, as `dayfly token ls` shows it.
        #[arg(required = true, value_name = "PREFIX")]
        prefixes: Vec<String>,
        /// Also revoke the keys and links that they created, and that those created.
        #[arg(long)]
        descendants: bool,
        /// Of another project, as an operator.
        #[arg(long, value_name = "PROJECT")]
        project: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Create a project.
    Create {
        /// Name of the project.
        #[arg(value_name = "NAME")]
        id: String,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// List projects and their limits.
    #[command(visible_alias = "list")]
    Ls,
    /// Change the limits of a project.
    Set {
        /// Name of the project.
        #[arg(value_name = "PROJECT")]
        id: String,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Suspend a project: its keys and links are refused until it is resumed.
    Suspend {
        /// Name of the project.
        #[arg(value_name = "PROJECT")]
        id: String,
        /// Why; shown to whoever uses a key of the project.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Hibernate its sandboxes too [default: what runs goes on].
        #[arg(long)]
        stop: bool,
    },
    /// Let a suspended project go on.
    Resume {
        /// Name of the project.
        #[arg(value_name = "PROJECT")]
        id: String,
    },
    /// Delete a project that has no sandboxes, snapshots and volumes.
    Rm {
        /// Name of the project.
        #[arg(value_name = "PROJECT")]
        id: String,
        /// Delete its sandboxes, snapshots and volumes with it.
        #[arg(long)]
        force: bool,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
    },
    /// Show usage and limits of this project, or what it used by the hour.
    Usage {
        /// Show what was used in each hour instead, for billing.
        #[arg(long)]
        by_hour: bool,
        /// Only hours that end after then [default: 1d]: 2h or 7d ago, 2026-01-31.
        #[arg(long, value_name = "WHEN", value_parser = moments::parse, requires = "by_hour")]
        since: Option<OffsetDateTime>,
        /// Only hours that begin before then.
        #[arg(long, value_name = "WHEN", value_parser = moments::parse, requires = "by_hour")]
        until: Option<OffsetDateTime>,
        #[command(flatten)]
        whose: WhoseArgs,
    },
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
    /// Limit of sandboxes, hibernated ones included; `none` for no limit.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) sandboxes: Option<Limit>,
    /// Limit of vCPUs.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) vcpus: Option<Limit>,
    /// Limit of memory, in MiB.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) memory_mb: Option<Limit>,
    /// Limit of snapshots, in MiB.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) snapshot_mb: Option<Limit>,
    /// Limit of volumes, in MiB.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) volume_mb: Option<Limit>,
    /// Rate limit of requests.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) requests_per_second: Option<Limit>,
    /// Limit of disks of sandboxes, in MiB.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) disk_mb: Option<Limit>,
    /// Whether the audit log keeps the output of commands.
    #[arg(long, value_name = "BOOL")]
    pub(crate) keeps_output: Option<bool>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// Only entries about this sandbox, snapshot, volume or key.
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
    /// At most this many entries, the newest [default: 50; with --since or --until all].
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only entries since then: 10m or 2h ago, 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "WHEN", value_parser = moments::parse)]
    pub(crate) since: Option<OffsetDateTime>,
    /// Only entries until then.
    #[arg(long, value_name = "WHEN", value_parser = moments::parse)]
    pub(crate) until: Option<OffsetDateTime>,
    /// Follow new entries, oldest first, until Ctrl-C; with --json one object per line.
    #[arg(long, short, conflicts_with = "until")]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Start after this cursor; 0 is the oldest event that is kept [default: now].
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionArgs {
    /// Shell to print the script for.
    pub(crate) shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// Directory for the pages.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

pub(crate) const LOGIN_HELP: &str = "\
Prompts for the API key, or reads it from standard input, and stores it in a file that only you can
read.

Examples:
  dayfly login https://dayfly.example
  dayfly login https://dayfly.example --sso
  sudo dayfly login --local
  ssh host sudo cat /var/lib/dayfly/admin.key | dayfly login http://host:7070 --name lab
  dayfly context use lab";

pub(crate) const AUDIT_HELP: &str = "\
Examples:
  dayfly audit --since 1h
  dayfly audit --since 2026-01-30 --until 2026-01-31 --json > day.json
  dayfly audit -f --json | tee -a audit.jsonl";

pub(crate) const COMPLETIONS_HELP: &str = "\
Ids, templates, snapshots, volumes and saved servers are completed by asking the server. The packages
install these scripts already.

Install:
  bash  mkdir -p ~/.local/share/bash-completion/completions
        dayfly completions bash > ~/.local/share/bash-completion/completions/dayfly
  zsh   mkdir -p ~/.zfunc; dayfly completions zsh > ~/.zfunc/_dayfly
        and in ~/.zshrc, before compinit: fpath+=(~/.zfunc)
  fish  dayfly completions fish > ~/.config/fish/completions/dayfly.fish";
