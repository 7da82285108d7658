//! What listens in a sandbox, and who may reach it without a key.

use std::sync::Arc;

use dayfly_api::{CreatePortLink, Port, PortLink};
use dayfly_node_api::{NodeCalls, NodeError};
use dayfly_types::limits::{
    PORT_LINK_TTL_SECONDS_DEFAULT, PORT_LINK_TTL_SECONDS_MAX, PORT_LINKS_MAX, SANDBOX_LINKS_MAX,
};
use dayfly_types::port::Listener;
use dayfly_types::{ProjectId, SandboxId};

use crate::control::Control;
use crate::gateway::{ApiAddress, LinkToken, new_link_id};
use crate::input::Invalid;
use crate::sandbox::read::{FindError, locate, row_alive};
use crate::store::{PortLinkRow, PortOf, StoreError};
use crate::tenancy::tokens::Maker;
use crate::time::{deadline_ms, now_ms, rfc3339};

/// Why something about ports was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("the port has no link {link}")]
    NoLink { link: String },
    #[error("a port has at most {PORT_LINKS_MAX} links, and a sandbox {SANDBOX_LINKS_MAX}")]
    TooManyLinks,
    #[error("the key that makes the link is over")]
    MakerEnded,
    #[error("the node does not say what listens")]
    Node(#[from] NodeError),
    #[error("cannot read or write links")]
    Store(#[from] StoreError),
    #[error("cannot draw a token")]
    Randomness(#[source] getrandom::Error),
    #[error("the work on the link stopped")]
    Stopped,
}

/// What listens now. Does not wake a sandbox.
///
/// # Errors
/// [`PortError`].
pub(crate) async fn list(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    api: &ApiAddress,
) -> Result<Vec<Port>, PortError> {
    locate(control, project, id).await?;
    let listening = control.node.ports(id).await?.into_iter();
    let ports = listening.map(|found| present_port(control, id, found, api));
    Ok(ports.collect())
}

/// What listens, with where it is reached.
pub(crate) fn present_port(
    control: &Control,
    id: &SandboxId,
    found: Listener,
    api: &ApiAddress,
) -> Port {
    let preview = &control.gateway.settings.preview;
    Port {
        port: found.port,
        url: preview.host_url(id, found.port, api),
        path_url: preview.path_url(id, found.port, api),
        // Whatever a guest says of itself, it is an address.
        address: found.address.chars().take(64).collect(),
    }
}

/// Opens a port to those who have the token, or to anybody.
///
/// # Errors
/// [`PortError`].
pub(crate) async fn create(
    control: &Control,
    of: &PortOf,
    wish: &CreatePortLink,
    maker: &Maker,
    api: &ApiAddress,
) -> Result<PortLink, PortError> {
    let seconds = wish.ttl_seconds.unwrap_or(PORT_LINK_TTL_SECONDS_DEFAULT);
    if !(1..=PORT_LINK_TTL_SECONDS_MAX).contains(&seconds) {
        let reason = format!("must be from 1 to {PORT_LINK_TTL_SECONDS_MAX}");
        return Err(Invalid::field("ttl_seconds", reason).into());
    }
    row_alive(control, &of.project, &of.sandbox).await?;
    let now = now_ms();
    let store = &control.store;
    let all = store.port_links_of_sandbox(&of.project, &of.sandbox, now);
    let all = all.await?;
    let of_port = all.iter().filter(|link| link.port == of.port).count();
    if of_port >= PORT_LINKS_MAX || all.len() >= SANDBOX_LINKS_MAX {
        return Err(PortError::TooManyLinks);
    }
    let token = match wish.public {
        Some(true) => None,
        Some(false) | None => Some(LinkToken::generate().map_err(PortError::Randomness)?),
    };
    let row = PortLinkRow {
        id: new_link_id(of.port).map_err(PortError::Randomness)?,
        project: of.project.clone(),
        port: of.port,
        made_by: Some(maker.prefix.clone()),
        token_hash: token.as_ref().map(LinkToken::hash),
        created_at_ms: now,
        expires_at_ms: maker
            .no_longer(deadline_ms(Some(seconds), now))
            .unwrap_or(now),
    };
    if !control.store.insert_port_link(&of.sandbox, &row).await? {
        return Err(PortError::MakerEnded);
    }
    let mut link = present(control, &of.sandbox, &row, api);
    if let Some(token) = token {
        for url in [&mut link.url, &mut link.path_url] {
            url.push_str("?dayfly_token=");
            url.push_str(token.reveal());
        }
        link.token = Some(token.reveal().to_owned());
    }
    Ok(link)
}

/// The links of a port that work now.
///
/// # Errors
/// [`PortError`].
pub(crate) async fn links(
    control: &Control,
    of: &PortOf,
    api: &ApiAddress,
) -> Result<Vec<PortLink>, PortError> {
    row_alive(control, &of.project, &of.sandbox).await?;
    let rows = control.store.port_links(of, now_ms()).await?;
    let links = rows
        .iter()
        .map(|row| present(control, &of.sandbox, row, api));
    Ok(links.collect())
}

/// The links of all ports of a sandbox that work now.
///
/// # Errors
/// [`PortError`].
pub(crate) async fn links_of_sandbox(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    api: &ApiAddress,
) -> Result<Vec<PortLink>, PortError> {
    row_alive(control, project, id).await?;
    let rows = control.store.port_links_of_sandbox(project, id, now_ms());
    let rows = rows.await?;
    let links = rows.iter().map(|row| present(control, id, row, api));
    Ok(links.collect())
}

/// Ends a link, and every connection that came by it.
///
/// # Errors
/// [`PortError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work: else a link could be gone and its visitors stay.
pub(crate) async fn revoke(
    control: Arc<Control>,
    of: PortOf,
    link: String,
) -> Result<(), PortError> {
    row_alive(&control, &of.project, &of.sandbox).await?;
    let tasks = control.tasks.clone();
    let work = async move {
        if !control.store.delete_port_link(&of, &link).await? {
            return Err(PortError::NoLink { link });
        }
        control.gateway.revoke(&of.sandbox, &link);
        Ok(())
    };
    tasks.spawn(work).await.unwrap_or(Err(PortError::Stopped))
}

fn present(
    control: &Control,
    sandbox: &SandboxId,
    row: &PortLinkRow,
    api: &ApiAddress,
) -> PortLink {
    let preview = &control.gateway.settings.preview;
    PortLink {
        id: row.id.clone(),
        port: row.port,
        public: row.token_hash.is_none(),
        url: preview.host_url(sandbox, row.port, api),
        path_url: preview.path_url(sandbox, row.port, api),
        token: None,
        made_by: row.made_by.clone(),
        created_at: rfc3339(row.created_at_ms),
        expires_at: rfc3339(row.expires_at_ms),
    }
}
