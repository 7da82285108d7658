//! Adding the server to the configuration of a client.

use std::path::{Path, PathBuf};

use super::args::{InstallArgs, ServeArgs};
use super::clients::{ClientFile, Format, Launch, SERVER};
use super::config_file::{ConfigFile, ConfigFileError, check_owner};
use super::json_text::with_member;
use super::serve;
use crate::args::GlobalArgs;
use crate::durations::seconds_up;
use crate::env_vars::{self, Environment};
use crate::failure::CommandError;
use crate::printer::Printer;

const PRINT_HINT: &str = "`--print` shows what to add by hand";

/// Writes or prints the configuration.
pub(crate) fn install(
    args: &InstallArgs,
    global: &GlobalArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    // What the server would refuse must not be written down.
    serve::settings(&args.serve)?;
    let file = ClientFile::of(args.client, environment).ok_or_else(|| {
        refused("cannot tell where the configuration is: HOME is not set".to_owned())
    })?;
    let launch = launch(&args.serve, global)?;
    if args.print {
        printer.data(&printed(&file.format, &launch))?;
        return Ok(0);
    }
    if let Some(home) = &environment.home {
        check_owner(home).map_err(said)?;
    }
    let found = ConfigFile::read(&file.path).map_err(said)?;
    let path = found.path();
    let old = found.text().unwrap_or_default();
    let new = merged(path, &file.format, old, &launch)?;
    if found.text() == Some(new.as_str()) {
        printer.note(&format!("{} has it already", path.display()));
        return Ok(0);
    }
    let copy = found.replace(&new).map_err(said)?;
    printer.note(&format!("{} is written", path.display()));
    if let Some(copy) = copy {
        printer.note(&format!("what was there is in {}", copy.display()));
    }
    if environment.api_key.is_some() {
        let name = env_vars::API_KEY;
        printer.warning(&format!(
            "{name} is not written down; the client must have it too, or run `dayfly login`"
        ));
    }
    Ok(0)
}

fn refused(what: String) -> CommandError {
    CommandError::Refused {
        what,
        hint: PRINT_HINT,
    }
}

fn said(error: ConfigFileError) -> CommandError {
    let what = error.to_string();
    match error {
        ConfigFileError::Io { source, .. } => CommandError::local(what, source),
        ConfigFileError::Foreign { .. } => CommandError::Refused {
            what,
            hint: "run it as the user whose client it is, without sudo",
        },
        ConfigFileError::Dangling { .. }
        | ConfigFileError::TooLong { .. }
        | ConfigFileError::Changed { .. } => refused(what),
    }
}

/// This program, with the flags that were given now. The key is not among them.
fn launch(args: &ServeArgs, global: &GlobalArgs) -> Result<Launch, CommandError> {
    let program = std::env::current_exe()
        .map_err(|source| CommandError::local("cannot tell where this program is", source))?;
    let mut arguments = vec!["mcp".to_owned()];
    let mut add = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            arguments.extend([flag.to_owned(), value]);
        }
    };
    add("--url", global.url.clone());
    let key_file = global.key_file.as_deref().map(absolute);
    add(
        "--key-file",
        key_file.map(|path| path.display().to_string()),
    );
    add("--context", global.context.clone());
    add("--name", args.name.clone());
    add("--template", args.template.clone());
    for host in &args.allow {
        add("--allow", Some(host.clone()));
    }
    add("--ttl", args.ttl.map(|ttl| seconds_up(ttl).to_string()));
    if args.all_sandboxes {
        arguments.push("--all-sandboxes".to_owned());
    }
    Ok(Launch {
        program: program.display().to_string(),
        arguments,
    })
}

/// The client starts the program somewhere else.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn printed(format: &Format, launch: &Launch) -> String {
    match format {
        Format::Json { servers } => {
            let value = serde_json::json!({ *servers: { SERVER: launch.json() } });
            format!("{value:#}\n")
        }
        Format::Toml { servers } => toml_table(servers, launch),
    }
}

fn toml_table(servers: &str, launch: &Launch) -> String {
    format!("[{servers}.{SERVER}]\n{}", launch.toml())
}

fn merged(
    path: &Path,
    format: &Format,
    old: &str,
    launch: &Launch,
) -> Result<String, CommandError> {
    if old.trim().is_empty() {
        return Ok(printed(format, launch));
    }
    match format {
        Format::Json { servers } => with_member(old, servers, SERVER, &launch.json())
            .map_err(|error| refused(format!("{} is left as it is: {error}", path.display()))),
        Format::Toml { servers } => merged_toml(path, old, servers, launch),
    }
}

fn merged_toml(
    path: &Path,
    old: &str,
    servers: &str,
    launch: &Launch,
) -> Result<String, CommandError> {
    let left = |why: &str| refused(format!("{} is left as it is: {why}", path.display()));
    let mut wanted: toml::Table = toml::from_str(old).map_err(|_| left("it is not TOML"))?;
    let empty = toml::Value::Table(toml::Table::new());
    let table = wanted.entry(servers).or_insert(empty);
    let table = table
        .as_table_mut()
        .ok_or_else(|| left("it has servers that are no table"))?;
    let ours = toml::Value::Table(launch.toml());
    match table.insert(SERVER.to_owned(), ours.clone()) {
        Some(known) if known == ours => return Ok(old.to_owned()),
        Some(_) => {
            let why =
                format!("it has another [{servers}.{SERVER}], which you have to remove first");
            return Err(left(&why));
        }
        None => {}
    }
    let gap = if old.ends_with('\n') { "\n" } else { "\n\n" };
    let new = format!("{old}{gap}{}", toml_table(servers, launch));
    match toml::from_str::<toml::Table>(&new) {
        Ok(read) if read == wanted => Ok(new),
        Ok(_) | Err(_) => Err(left("it cannot be changed safely")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> Launch {
        Launch {
            program: "/usr/bin/dayfly".to_owned(),
            arguments: vec!["mcp".to_owned(), "--name".to_owned(), "a \"b\"".to_owned()],
        }
    }

    fn toml_of(old: &str) -> Result<String, CommandError> {
        let format = Format::Toml {
            servers: "mcp_servers",
        };
        merged(Path::new("config.toml"), &format, old, &launch())
    }

    #[test]
    fn a_toml_file_keeps_its_comments_and_gets_one_table() {
        let old = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"o\"\n";
        let new = toml_of(old).unwrap();
        assert!(new.starts_with(old), "{new}");
        let read: toml::Table = toml::from_str(&new).unwrap();
        let args = &read["mcp_servers"][SERVER]["args"];
        assert_eq!(args[2].as_str(), Some("a \"b\""));
        assert_eq!(toml_of(&new).unwrap(), new);
    }

    #[test]
    fn a_toml_file_that_would_change_otherwise_is_left_alone() {
        for old in [
            "not toml",
            "mcp_servers = 3\n",
            "mcp_servers = {}\n",
            "[mcp_servers.dayfly]\ncommand = \"other\"\n",
        ] {
            assert!(toml_of(old).is_err(), "{old}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for servers in ["servers", "mcpServers"] {
            let text = printed(&Format::Json { servers }, &launch());
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value[servers][SERVER]["command"], "/usr/bin/dayfly");
        }
    }
}
