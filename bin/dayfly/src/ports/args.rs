//! What can be asked about services in sandboxes.

use std::time::Duration;

use clap::Subcommand;

use crate::durations;

#[derive(Debug, Subcommand)]
pub(crate) enum PortCommand {
    /// List listening ports.
    #[command(visible_alias = "list")]
    Ls {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Wait until something listens on a port, and print its address for programs.
    Wait {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Port that a service in the sandbox is to listen on.
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        /// Give up after this time, such as 30s or 5m, at most 10m, with exit status 124.
        #[arg(long, value_name = "TIME", default_value = "1m", value_parser = durations::parse)]
        timeout: Duration,
    },
    /// Print the address of a port, for programs that send the API key.
    Url {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Port that a service in the sandbox listens on.
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
    },
    /// Create a link (preview URL) with a token, and print its address.
    Link {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Port that a service in the sandbox listens on.
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        /// Expires after this time, such as 30s, 5m, 2h, at most 7d [default: 1h].
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
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// Port that a service in the sandbox listens on.
        #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        port: Option<u16>,
    },
    /// Revoke a link; connections that use it are closed.
    Rm {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// The link, as `dayfly port links` names it.
        #[arg(value_name = "LINK")]
        link: String,
    },
}

pub(crate) const PORT_HELP: &str = "\
Nobody reaches a port without the project's API key or a link. `url` prints an address that needs
the key as the header `Authorization: Bearer KEY`. `link` creates an address with a token in it, for
those who have no key: a browser keeps the token as a cookie, programs send it as the header
`x-dayfly-token`.

Examples:
  dayfly exec -d ID -- python3 -m http.server 8000
  dayfly port wait ID 8000
  curl -H \"Authorization: Bearer $DAYFLY_API_KEY\" \"$(dayfly port url ID 8000)\"
  dayfly port link ID 8000
  dayfly port link ID 8000 --public --ttl 10m
  dayfly port rm ID 8000-4k...";
