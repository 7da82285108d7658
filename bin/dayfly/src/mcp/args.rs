//! What can be asked of the MCP server.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use crate::durations;

pub(crate) const MCP_HELP: &str = "\
Without a command it serves one client over standard input and output, until the client
closes its end. The client's sandbox is made at the first call of a tool and deleted at the
end; with --name it is kept and used again.

Examples:
  dayfly mcp install claude                  configure Claude Code
  dayfly mcp install cursor --allow pypi.org --allow files.pythonhosted.org
  dayfly mcp install codex --name work       one sandbox that stays
  dayfly mcp install vscode --print          print the configuration only";

/// How the MCP server is asked for.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
}

/// What the sandbox of the client is like.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args)]
pub(crate) struct ServeArgs {
    /// Use the sandbox of this name, created when it does not exist, and keep it afterwards.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Template to start from [default: code-interpreter].
    #[arg(long, short = 'T', value_name = "TEMPLATE")]
    pub(crate) template: Option<String>,
    /// Allow this host and deny all others: pypi.org, *.example.com, 93.184.216.0/24, each with
    /// :PORT if need be, or preset:NAME; may be given again [default: as the project says].
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    /// How long the sandbox outlives a client that vanished [default: 30m]; with --name, its time
    /// to live [default: none].
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Let the client use every sandbox that the key may use [default: its own, and those that it
    /// created].
    #[arg(long)]
    pub(crate) all_sandboxes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add this server to the configuration of an MCP client.
    Install(InstallArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    /// Client to configure.
    #[arg(value_name = "CLIENT")]
    pub(crate) client: ClientWord,
    /// Print the configuration instead of writing it.
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// Clients whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientWord {
    /// Claude Code: ~/.claude.json.
    Claude,
    /// Cursor: ~/.cursor/mcp.json.
    Cursor,
    /// Visual Studio Code: mcp.json of the user.
    Vscode,
    /// Codex: ~/.codex/config.toml.
    Codex,
}
