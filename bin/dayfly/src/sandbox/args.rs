//! What can be asked about a sandbox's state, snapshots, forks and volumes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use dayfly_api::{OnTimeout, PromiseClass};

use crate::network::args::NetworkArgs;
use crate::tenancy::limit_changes::LimitChange;
use crate::{durations, pairs, sizes};

/// One sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WakeArgs {
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    /// Environment variable in place of those that the sandbox has; KEY alone has the value that it
    /// has here. May be given again.
    #[arg(long, short, value_name = "KEY[=VALUE]", value_parser = pairs::variable)]
    pub(crate) env: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Name or id of the snapshot, or a unique prefix of the id.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: String,
    /// Environment variable in place of those that the sandbox has; KEY alone has the value that it
    /// has here. May be given again.
    #[arg(long, short, value_name = "KEY[=VALUE]", value_parser = pairs::variable)]
    pub(crate) env: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Number of children.
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,
    /// When one child cannot be created, keep none.
    #[arg(long)]
    pub(crate) all_or_nothing: bool,
    /// Also run the guest's reseed hooks, for random number generators of programs.
    #[arg(long)]
    pub(crate) reseed: bool,
    /// Time to live of each child, such as 90 (seconds), 30s, 5m, 2h [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Label of each child, for `ls --metadata`; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pairs::parse)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Environment variable of each child in place of those of the sandbox; KEY alone has the value
    /// that it has here. May be given again.
    #[arg(long, short, value_name = "KEY[=VALUE]", value_parser = pairs::variable)]
    pub(crate) env: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExploreArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Command line to try, for a shell; may be given again.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) candidate: Vec<String>,
    /// File with more of them, one in a line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) candidates: Option<PathBuf>,
    /// Command line that prints the score, a number in its last line, in the child after the
    /// candidate; the highest wins [default: 1 for a candidate with exit status 0, else 0].
    #[arg(long, value_name = "COMMAND")]
    pub(crate) score: Option<String>,
    /// How many candidates run at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    pub(crate) parallel: usize,
    /// Score that is good enough: once there is one, the others are not begun or waited for.
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true, value_parser = score)]
    pub(crate) stop_at: Option<f64>,
    /// Promote the winner: the time to live that --ttl gave to it becomes the default.
    #[arg(long)]
    pub(crate) promote: bool,
    /// Timeout of each command, such as 1.5 (seconds), 30s, 5m, 2h.
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Time to live of each child, such as 90 (seconds), 30s, 5m, 2h [default: that of the
    /// sandbox, or 1h].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or("give a whole number, 1 or more")
}

fn score(text: &str) -> Result<f64, &'static str> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or("give a number")
}

#[derive(Debug, clap::Args)]
pub(crate) struct PromoteArgs {
    /// The child to keep: its id, or a unique prefix of it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Delete the other children (siblings) of the same fork; prints their ids.
    #[arg(long)]
    pub(crate) cleanup: bool,
    /// Refuse unless the child is of this fork.
    #[arg(long, value_name = "TREE")]
    pub(crate) tree: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TtlArgs {
    /// Sandbox: its name, its id, or a unique prefix of the id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Time to live from now, such as 90 (seconds), 30s, 5m, 2h, or none.
    #[arg(value_name = "TIME|none")]
    pub(crate) ttl: Option<LimitChange>,
    /// Idle timeout, such as 90 (seconds), 30s, 5m, 2h, or none.
    #[arg(long, value_name = "TIME|none")]
    pub(crate) idle: Option<LimitChange>,
    /// What to do at the idle timeout.
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_timeout: Option<TimeoutAction>,
    /// Whether it is exempt from the idle timeout.
    #[arg(long, value_name = "true|false")]
    pub(crate) persistent: Option<bool>,
}

/// What happens to an idle sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeoutAction {
    Delete,
    Hibernate,
}

/// What a host promises a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassChoice {
    Reserved,
    Shared,
}

impl From<ClassChoice> for PromiseClass {
    fn from(choice: ClassChoice) -> Self {
        match choice {
            ClassChoice::Reserved => Self::Reserved,
            ClassChoice::Shared => Self::Shared,
        }
    }
}

impl From<TimeoutAction> for OnTimeout {
    fn from(action: TimeoutAction) -> Self {
        match action {
            TimeoutAction::Delete => Self::Delete,
            TimeoutAction::Hibernate => Self::Hibernate,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Take a snapshot of a running sandbox and print the id of the snapshot.
    Create {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Name, unique in the project: `dayfly create --from-snapshot NAME`.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Delete the snapshot after this time, such as 30s, 5m, 2h, 7d [default: never].
        #[arg(long, value_name = "TIME", value_parser = durations::parse)]
        retain: Option<Duration>,
    },
    /// List snapshots, newest first.
    #[command(visible_alias = "list")]
    Ls {
        /// Only snapshots of this sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Delete snapshots; deleting one twice is no error.
    #[command(visible_alias = "delete")]
    Rm {
        /// Names, ids, or unique prefixes of ids.
        #[arg(value_name = "SNAPSHOT", required = true)]
        snapshots: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Create a volume; one of the same name and size is no error.
    Create {
        /// Name of the volume.
        #[arg(value_name = "VOLUME")]
        name: String,
        /// Size, such as 512M or 10G.
        #[arg(value_name = "SIZE", value_parser = sizes::parse_mebibytes)]
        size: u64,
    },
    /// List volumes.
    #[command(visible_alias = "list")]
    Ls,
    /// Delete volumes and all their data; deleting one twice is no error.
    #[command(visible_alias = "delete")]
    Rm {
        /// Names of the volumes.
        #[arg(value_name = "VOLUME", required = true)]
        names: Vec<String>,
    },
    /// Resize a volume to a larger size.
    Grow {
        /// Name of the volume.
        #[arg(value_name = "VOLUME")]
        name: String,
        /// The new size, such as 20G.
        #[arg(value_name = "SIZE", value_parser = sizes::parse_mebibytes)]
        size: u64,
    },
}
