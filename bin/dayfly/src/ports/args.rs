//! What can be asked about services in sandboxes.

use std::time::Duration;

use clap::Subcommand;

use crate::durations;

#[derive(Debug, Subcommand)]
pub(crate) enum PortCommand {
    /// List what listens in a sandbox.
    #[command(visible_alias = "list")]
    Ls {
        /// Id, or the beginning of one.
        #[arg(value_name = "SANDBOX")]
        id: String,
    },
    /// Make a link to a port and print its address.
    Url {
        /// Id, or the beginning of one.
        #[arg(value_name = "SANDBOX")]
        id: String,
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        /// How long the link works: 90, 30s, 5m, 2h, at most 7d [default: 1h].
        #[arg(long, value_name = "TIME", value_parser = durations::parse)]
        ttl: Option<Duration>,
        /// Open the port to anybody, without a token.
        #[arg(long)]
        public: bool,
        /// Print the address by path, which needs no host name of its own.
        #[arg(long)]
        path: bool,
    },
    /// List the links of a port, or of all ports.
    Links {
        /// Id, or the beginning of one.
        #[arg(value_name = "SANDBOX")]
        id: String,
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: Option<u16>,
    },
    /// Revoke a link; connections that came by it are cut.
    Rm {
        /// Id, or the beginning of one.
        #[arg(value_name = "SANDBOX")]
        id: String,
        /// The link, as `dayfly port links` names it.
        #[arg(value_name = "LINK")]
        link: String,
    },
}

pub(crate) const PORT_HELP: &str = "\
Nobody reaches a port without the project's key or a link. The address that `url` prints has a
token in it, which whoever opens it in a browser keeps as a cookie; programs send it as the header
`x-dayfly-token`.

Examples:
  dayfly exec -d ID -- python3 -m http.server 8000
  dayfly port url ID 8000
  dayfly port url ID 8000 --public --ttl 10m
  dayfly port rm ID 8000-4k...";
