//! `dayfly port`: services in sandboxes, and links to them.

use std::time::Duration;

use dayfly_api::{CreatePortLink, Port, PortLink};
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::ports::args::PortCommand;
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::{ages, durations, exit_status, text};

pub(crate) async fn port(session: &Session<'_>, command: &PortCommand) -> Result<u8, CommandError> {
    match command {
        PortCommand::Ls { id } => list(session, id).await?,
        PortCommand::Wait { id, port, timeout } => return wait(session, id, *port, *timeout).await,
        PortCommand::Url { id, port } => address(session, id, *port).await?,
        PortCommand::Link {
            id,
            port,
            ttl,
            public,
            path,
        } => {
            let request = CreatePortLink {
                ttl_seconds: ttl.map(durations::seconds_up),
                public: public.then_some(true),
            };
            let link = create(session, id, *port, &request).await?;
            let url = if *path { &link.path_url } else { &link.url };
            tell(session, &link, url)?;
        }
        PortCommand::Links { id, port } => links(session, id, *port).await?,
        PortCommand::Rm { id, link } => revoke(session, id, link).await?,
    }
    Ok(exit_status::OK)
}

async fn resolve(session: &Session<'_>, id: &str) -> Result<String, CommandError> {
    Ok(prefixes::resolve(&session.client, id).await?)
}

async fn list(session: &Session<'_>, id: &str) -> Result<(), CommandError> {
    let id = resolve(session, id).await?;
    let ports = session.client.ports(&id).await.map_err(|source| {
        CommandError::call(format!("cannot list the ports of sandbox {id}"), source)
    })?;
    let printer = session.printer;
    if printer.is_json() {
        return printer.json(&ports);
    }
    if printer.is_quiet() {
        let lines = ports.iter().map(|port| format!("{}\n", port.port));
        return printer.data(&lines.collect::<String>());
    }
    printer.table(&port_table(ports.as_slice()))?;
    if ports.is_empty() {
        printer.note("nothing listens; a hibernated sandbox shows nothing until it is woken");
    }
    Ok(())
}

/// A timeout has the status that one of a command has.
async fn wait(
    session: &Session<'_>,
    id: &str,
    port: u16,
    limit: Duration,
) -> Result<u8, CommandError> {
    let id = resolve(session, id).await?;
    let waited = session.client.wait_for_port(&id, port, limit).await;
    let found = waited.map_err(|source| {
        CommandError::call(
            format!("cannot wait for port {port} of sandbox {id}"),
            source,
        )
    })?;
    if session.printer.is_json() {
        session.printer.json(&found)?;
    } else {
        session.printer.line(&text::visible(&found.path_url))?;
    }
    Ok(exit_status::OK)
}

/// As `port_url` of the SDKs: no request is made, and nothing has to listen.
async fn address(session: &Session<'_>, id: &str, port: u16) -> Result<(), CommandError> {
    let id = resolve(session, id).await?;
    let url = session.client.port_url(&id, port).map_err(|source| {
        let what = format!("cannot tell the address of port {port} of sandbox {id}");
        CommandError::call(what, source)
    })?;
    if session.printer.is_json() {
        return session
            .printer
            .json(&serde_json::json!({"port": port, "url": url}));
    }
    session.printer.line(&url)?;
    let words = "it needs the API key; `dayfly port link` creates one for those who have none";
    session.printer.note(words);
    Ok(())
}

fn port_table(ports: &[Port]) -> Table {
    let mut table = Table::new(&["PORT", "ADDRESS", "URL"]);
    for port in ports {
        let number = port.port.to_string();
        table.push(vec![number, port.address.clone(), port.url.clone()]);
    }
    table
}

async fn create(
    session: &Session<'_>,
    id: &str,
    port: u16,
    request: &CreatePortLink,
) -> Result<PortLink, CommandError> {
    let id = resolve(session, id).await?;
    let made = session.client.create_port_link(&id, port, request).await;
    made.map_err(|source| {
        let what = format!("cannot make a link to port {port} of sandbox {id}");
        CommandError::call(what, source)
    })
}

fn tell(session: &Session<'_>, link: &PortLink, url: &str) -> Result<(), CommandError> {
    if session.printer.is_json() {
        return session.printer.json(link);
    }
    session.printer.line(&text::visible(url))?;
    let left = ages::until(Some(&link.expires_at), OffsetDateTime::now_utc());
    let who = if link.public {
        "anybody"
    } else {
        "whoever has it"
    };
    let id = text::visible(&link.id);
    session
        .printer
        .note(&format!("link {id}: open to {who} for {left}"));
    Ok(())
}

async fn links(session: &Session<'_>, id: &str, port: Option<u16>) -> Result<(), CommandError> {
    let id = resolve(session, id).await?;
    let links = match port {
        Some(port) => session.client.port_links(&id, port).await,
        None => session.client.sandbox_links(&id).await,
    };
    let links = links.map_err(|source| {
        let what = format!("cannot list the links of sandbox {id}");
        CommandError::call(what, source)
    })?;
    let printer = session.printer;
    if printer.is_json() {
        return printer.json(&links);
    }
    if printer.is_quiet() {
        let lines = links.iter().map(|link| text::visible(&link.id) + "\n");
        return printer.data(&lines.collect::<String>());
    }
    printer.table(&link_table(&links))
}

fn link_table(links: &[PortLink]) -> Table {
    let now = OffsetDateTime::now_utc();
    let mut table = Table::new(&["LINK", "FOR", "AGE", "LEFT", "MADE BY", "URL"]);
    for link in links {
        let who = if link.public { "anybody" } else { "token" };
        table.push(vec![
            link.id.clone(),
            who.to_owned(),
            ages::since(&link.created_at, now),
            ages::until(Some(&link.expires_at), now),
            link.made_by.clone().unwrap_or_else(|| "-".to_owned()),
            link.url.clone(),
        ]);
    }
    table
}

async fn revoke(session: &Session<'_>, id: &str, link: &str) -> Result<(), CommandError> {
    // A link is named after its port.
    let port = link.split('-').next().and_then(|port| port.parse().ok());
    let Some(port) = port else {
        return Err(CommandError::Usage {
            what: format!("{link:?} is no link"),
            hint: "`dayfly port links SANDBOX` lists them",
        });
    };
    let id = resolve(session, id).await?;
    let revoked = session.client.revoke_port_link(&id, port, link).await;
    revoked.map_err(|source| {
        CommandError::call(format!("cannot revoke link {link}"), source).about(Subject::Link)
    })?;
    if session.printer.is_json() {
        return session.printer.json(&serde_json::json!({"revoked": link}));
    }
    session.printer.line(&text::visible(link))
}
