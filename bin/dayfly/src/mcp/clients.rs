//! Where MCP clients keep their configuration, and what it must say.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args::ClientWord;
use crate::env_vars::Environment;

/// What our server is called there.
pub(crate) const SERVER: &str = "dayfly";

/// The configuration of one client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientFile {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

/// How it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with the servers in an object of this name.
    Json { servers: &'static str },
    /// TOML, with a table for each server in a table of this name.
    Toml { servers: &'static str },
}

/// How a client starts our server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl ClientFile {
    /// The user's own; `None` when the environment does not say where that is.
    pub(crate) fn of(client: ClientWord, environment: &Environment) -> Option<Self> {
        let home = environment.home.as_deref()?;
        let (path, format) = match client {
            ClientWord::Claude => (home.join(".claude.json"), json_in("mcpServers")),
            ClientWord::Cursor => (home.join(".cursor/mcp.json"), json_in("mcpServers")),
            ClientWord::Vscode => (
                config_home(home, environment).join("Code/User/mcp.json"),
                json_in("servers"),
            ),
            ClientWord::Codex => (
                home.join(".codex/config.toml"),
                Format::Toml {
                    servers: "mcp_servers",
                },
            ),
        };
        Some(Self { path, format })
    }
}

const fn json_in(servers: &'static str) -> Format {
    Format::Json { servers }
}

/// Where programs with windows keep their settings.
fn config_home(home: &Path, environment: &Environment) -> PathBuf {
    if std::env::consts::OS == "macos" {
        return home.join("Library/Application Support");
    }
    let named = environment.xdg_config_home.clone();
    named.unwrap_or_else(|| home.join(".config"))
}

impl Launch {
    /// As JSON has it. All of the clients take the type, and some need it.
    pub(crate) fn json(&self) -> Value {
        json!({"type": "stdio", "command": self.program, "args": self.arguments})
    }

    /// As a table of TOML.
    pub(crate) fn toml(&self) -> toml::Table {
        let arguments = self.arguments.iter().cloned().map(toml::Value::String);
        toml::Table::from_iter([
            (
                "command".to_owned(),
                toml::Value::String(self.program.clone()),
            ),
            ("args".to_owned(), toml::Value::Array(arguments.collect())),
        ])
    }
}
