//! What can be asked about a sandbox's state, snapshots, forks and volumes.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use dayfly_api::OnTimeout;

use crate::network::args::NetworkArgs;
use crate::tenancy::limit_changes::LimitChange;
use crate::{durations, sizes};

/// One sandbox.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    /// Id of the sandbox, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Id of the snapshot, or the beginning of one.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// How many children.
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,
    /// When one child cannot be made, keep none.
    #[arg(long)]
    pub(crate) all_or_nothing: bool,
    /// Also run the guest's reseed hooks, for random generators of programs.
    #[arg(long)]
    pub(crate) reseed: bool,
    /// Delete each child after this time: 90, 30s, 5m, 2h [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PromoteArgs {
    /// Id of the child to keep, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Delete the other children of the same fork.
    #[arg(long)]
    pub(crate) cleanup: bool,
    /// Refuse unless the child is of this fork.
    #[arg(long, value_name = "TREE")]
    pub(crate) tree: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TtlArgs {
    /// Id, or the beginning of one.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Delete the sandbox after this time from now: 90, 30s, 5m, 2h, none.
    #[arg(value_name = "TIME|none")]
    pub(crate) ttl: Option<LimitChange>,
    /// How long it may do nothing.
    #[arg(long, value_name = "TIME|none")]
    pub(crate) idle: Option<LimitChange>,
    /// What happens when it did nothing for that long.
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_timeout: Option<TimeoutAction>,
    /// Whether it is exempt from that.
    #[arg(long, value_name = "true|false")]
    pub(crate) persistent: Option<bool>,
}

/// What happens to an idle sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeoutAction {
    Delete,
    Hibernate,
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
    /// Take a snapshot of a sandbox, which goes on, and print its id.
    Create {
        /// Id, or the beginning of one.
        #[arg(value_name = "ID")]
        id: String,
        /// Label of your own.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Delete the snapshot after this time: 90, 30s, 5m, 2h [default: never].
        #[arg(long, value_name = "TIME", value_parser = durations::parse)]
        retain: Option<Duration>,
    },
    /// List snapshots, newest first.
    #[command(visible_alias = "list")]
    Ls {
        /// Only those of this sandbox: an id, or the beginning of one.
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Delete snapshots. One that is gone already is a success.
    #[command(visible_alias = "delete")]
    Rm {
        /// Ids, or the beginnings of them.
        #[arg(value_name = "SNAPSHOT", required = true)]
        snapshots: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Make a volume. One that is there with the same size is a success.
    Create {
        #[arg(value_name = "NAME")]
        name: String,
        /// Such as 512M or 10G.
        #[arg(value_name = "SIZE", value_parser = sizes::parse_mebibytes)]
        size: u64,
    },
    /// List volumes.
    #[command(visible_alias = "list")]
    Ls,
    /// Delete volumes with what is on them. One that is gone already is a success.
    #[command(visible_alias = "delete")]
    Rm {
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Make a volume larger.
    Grow {
        #[arg(value_name = "NAME")]
        name: String,
        /// The new size, such as 20G.
        #[arg(value_name = "SIZE", value_parser = sizes::parse_mebibytes)]
        size: u64,
    },
}
