//! What can be asked about what sandboxes reach.

use clap::{Subcommand, ValueEnum};
use dayfly_api::{NetworkMode, NetworkWish, RuleWish};

use crate::failure::CommandError;

/// The preset that is a mode.
const PUBLIC_PRESET: &str = "preset:public";

/// What a sandbox may reach.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct NetworkArgs {
    /// Allow this host and deny all others: pypi.org, *.example.com, 93.184.216.0/24, each with
    /// :PORT if need be, or preset:NAME; may be given again.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    /// Network mode; with `observe`, --allow lists what is expected.
    #[arg(long, value_name = "MODE")]
    pub(crate) network: Option<ModeWord>,
}

/// The modes that need no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeWord {
    /// No network access.
    Deny,
    /// Every public address.
    Public,
    /// Every public address; the log says what a list would have denied.
    Observe,
}

impl From<ModeWord> for NetworkMode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Deny => Self::Deny,
            ModeWord::Public => Self::Public,
            ModeWord::Observe => Self::Observe,
        }
    }
}

impl NetworkArgs {
    /// What the flags ask for; `None` when there are none.
    pub(crate) fn wish(&self) -> Result<Option<NetworkWish>, CommandError> {
        let rules: Vec<RuleWish> = self.allow.iter().map(RuleWish::text).collect();
        let mode = match self.network {
            Some(ModeWord::Observe) => NetworkMode::Observe,
            Some(word) if rules.is_empty() => word.into(),
            Some(ModeWord::Deny | ModeWord::Public) => {
                return Err(CommandError::Usage {
                    what: "--allow means nothing beside --network deny or public".to_owned(),
                    hint: "leave --network out for a list, or use --network observe with it",
                });
            }
            None if self.allow == [PUBLIC_PRESET] => {
                return Ok(Some(NetworkWish {
                    mode: NetworkMode::Public,
                    rules: Vec::new(),
                }));
            }
            None if rules.is_empty() => return Ok(None),
            None => NetworkMode::Allowlist,
        };
        Ok(Some(NetworkWish { mode, rules }))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetCommand {
    /// Show the network policy of a sandbox.
    Show {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Replace the network policy; connections that it no longer allows are closed.
    Set {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        network: NetworkArgs,
    },
    /// Allow more hosts.
    Allow {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// pypi.org, *.example.com, 93.184.216.0/24, each with :PORT if need be, or preset:NAME.
        #[arg(value_name = "HOST", required = true)]
        names: Vec<String>,
    },
    /// Deny all network access.
    Deny {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print DNS queries and connections, and whether each was allowed.
    Log {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Follow new decisions, one per line.
        #[arg(long, short)]
        follow: bool,
        /// Only records after this sequence number.
        #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
        after: u64,
    },
    /// Suggest the smallest allowlist for what a sandbox was seen to use.
    Suggest {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Apply it to the sandbox.
        #[arg(long)]
        apply: bool,
    },
    /// List presets (named lists of hosts), or the hosts of one.
    Presets {
        /// Name of a preset.
        #[arg(value_name = "PRESET")]
        name: Option<String>,
    },
    /// Show or replace the default network policy of new sandboxes.
    Default {
        #[command(flatten)]
        network: NetworkArgs,
    },
}

pub(crate) const NET_HELP: &str = "\
A sandbox has no network access unless its create, or the project's default, allows some. `log`
shows for each decision its time, whether it was allowed, the kind, the name and port, the rule that
allowed it or the reason that it was denied, and the bytes sent and received.

Examples:
  dayfly create --allow preset:package-registries --allow api.example.com
  dayfly net log -f ID
  dayfly net allow ID '*.example.com' 93.184.216.34:22
  id=$(dayfly create --network observe); dayfly exec $id -- make test
  dayfly net suggest $id --apply";

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(network: Option<ModeWord>, allow: &[&str]) -> Option<(&'static str, usize)> {
        let args = NetworkArgs {
            allow: allow.iter().map(|name| (*name).to_owned()).collect(),
            network,
        };
        let wish = args.wish().ok()?;
        Some(wish.map_or(("none", 0), |wish| (wish.mode.as_str(), wish.rules.len())))
    }

    #[test]
    fn flags_make_one_policy() {
        assert_eq!(wish(None, &[]), Some(("none", 0)));
        assert_eq!(wish(None, &["a.test", "b.test"]), Some(("allowlist", 2)));
        assert_eq!(wish(None, &["preset:public"]), Some(("public", 0)));
        assert_eq!(wish(Some(ModeWord::Deny), &[]), Some(("deny", 0)));
        assert_eq!(
            wish(Some(ModeWord::Observe), &["a.test"]),
            Some(("observe", 1))
        );
        assert_eq!(wish(Some(ModeWord::Public), &["a.test"]), None);
        assert_eq!(wish(Some(ModeWord::Deny), &["a.test"]), None);
    }
}
