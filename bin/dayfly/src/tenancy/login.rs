//! `dayfly login` and `dayfly context`: which servers there are.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use dayfly_client::{ApiKey, Client, ClientConfig};

use crate::args::GlobalArgs;
use crate::env_vars::Environment;
use crate::exec::terminal;
use crate::failure::CommandError;
use crate::printer::{self, Printer};
use crate::table::Table;
use crate::tenancy::args::{ContextCommand, LoginArgs};
use crate::tenancy::context_file::{self, Context, ContextFile};
use crate::tenancy::{local_login, sign_in};
use crate::{exit_status, settings, text};

/// Asks for the key of a server, and stores both.
pub(crate) async fn login(
    args: &LoginArgs,
    global: &GlobalArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    match &args.server {
        Some(_) if args.project.is_some() && !args.is_by_provider() => Err(CommandError::Usage {
            what: "--project goes with --sso or --id-token-file".to_owned(),
            hint: "a key is of one project; `dayfly whoami` says of which",
        }),
        Some(server) if !args.local => {
            settings::required_context_path(environment)?;
            let key = if args.is_by_provider() {
                sign_in::key(server, args, printer).await?
            } else {
                read_key()?
            };
            store(server, key, &args.name, global, environment, printer).await
        }
        Some(_) | None => local_login::login(args, global, environment, printer).await,
    }
}

/// Checks a key with its server, and stores both.
pub(crate) async fn store(
    server: &str,
    key: String,
    name: &str,
    global: &GlobalArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let path = settings::required_context_path(environment)?;
    let parsed = ApiKey::parse(&key).map_err(|source| CommandError::Usage {
        what: source.to_string(),
        hint: "a key is one word that begins with dfk_; `dayfly token create` makes one",
    })?;
    let url = server.trim_end_matches('/').to_owned();
    let mut client = Client::new(ClientConfig {
        url: url.clone(),
        key: Some(parsed),
    })?;
    if global.verbose {
        client = client.observed(printer::request);
    }
    let me = client.me().await;
    let me = me.map_err(|source| CommandError::call(format!("cannot log in to {url}"), source))?;
    let mut file = context_file::read(&path)
        .map_err(settings::SettingsError::from)?
        .unwrap_or_default();
    let context = Context {
        url,
        key: Some(key),
        key_file: None,
    };
    file.contexts.insert(name.to_owned(), context);
    file.current = Some(name.to_owned());
    save(&path, &file)?;
    if printer.is_json() {
        printer.json(&me)?;
    } else {
        let project = text::visible(&me.project);
        printer.note(&format!("logged in to project {project} as {name}"));
    }
    Ok(exit_status::OK)
}

/// The key from standard input; typed without being shown.
fn read_key() -> Result<String, CommandError> {
    let failed = |source| CommandError::local("cannot read the key", source);
    let stdin = io::stdin();
    let hidden = if stdin.is_terminal() {
        let mut stderr = io::stderr();
        let _ = write!(stderr, "API key: ");
        let _ = stderr.flush();
        Some(terminal::hide_typing().map_err(failed)?)
    } else {
        None
    };
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(failed)?;
    if hidden.is_some() {
        let _ = writeln!(io::stderr());
    }
    Ok(line.trim().to_owned())
}

pub(crate) fn context(
    command: &ContextCommand,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let path = settings::required_context_path(environment)?;
    let mut file = context_file::read(&path)
        .map_err(settings::SettingsError::from)?
        .unwrap_or_default();
    let known = |file: &ContextFile, name: &str| {
        if file.contexts.contains_key(name) {
            return Ok(());
        }
        Err(settings::SettingsError::NoContext {
            name: name.to_owned(),
            path: path.clone(),
        })
    };
    match command {
        ContextCommand::Ls => list(&file, printer)?,
        ContextCommand::Use { name } => {
            known(&file, name)?;
            file.current = Some(name.clone());
            save(&path, &file)?;
            tell_current(&file, printer)?;
        }
        ContextCommand::Rm { name } => {
            known(&file, name)?;
            file.contexts.remove(name);
            if file.current.as_ref() == Some(name) {
                file.current = None;
            }
            save(&path, &file)?;
            tell_current(&file, printer)?;
        }
    }
    Ok(exit_status::OK)
}

/// For programs; a person sees that nothing was complained about.
fn tell_current(file: &ContextFile, printer: &Printer) -> Result<(), CommandError> {
    if printer.is_json() {
        printer.json(&serde_json::json!({"current": file.current}))?;
    }
    Ok(())
}

fn list(file: &ContextFile, printer: &Printer) -> Result<(), CommandError> {
    let rows = file.contexts.iter().map(|(name, context)| {
        let is_current = file.current.as_ref() == Some(name);
        (name.clone(), context.url.clone(), is_current)
    });
    if printer.is_json() {
        let rows: Vec<serde_json::Value> = rows
            .map(|(name, url, current)| {
                serde_json::json!({"name": name, "url": url, "current": current})
            })
            .collect();
        return printer.json(&rows);
    }
    let mut table = Table::new(&["CURRENT", "NAME", "URL"]);
    for (name, url, is_current) in rows {
        let mark = if is_current { "*" } else { "" };
        table.push(vec![mark.to_owned(), name, url]);
    }
    printer.table(&table)?;
    if file.contexts.is_empty() {
        printer.note("no servers; `dayfly login URL` adds one");
    }
    Ok(())
}

fn save(path: &std::path::Path, file: &ContextFile) -> Result<(), CommandError> {
    let what = format!("cannot write {}", path.display());
    context_file::write(path, file).map_err(|source| CommandError::local(what, source))
}
