//! Whether a visitor may come in.
//!
//! Nothing here asks the node, and nothing wakes a sandbox.

use std::sync::Arc;
use std::time::Duration;

use dayfly_types::{ProjectId, SandboxId};
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, request};

use super::address::{Form, PortAddress};
use super::connection::LinkGrant;
use super::preview::PreviewDomain;
use super::token::TOKEN_START;
use super::{cookies, heads, query};
use crate::control::{Control, LookedUp};
use crate::sandbox::read::{FindError, locate};
use crate::store::{PortLinkRow, ProjectState, StoreError};
use crate::tenancy::key::{KEY_START, KeyHash, bearer};
use crate::tenancy::key_ends::KeyEnd;
use crate::tenancy::scope::{Reach, Scope};
use crate::time::now_ms;

const TOKEN_HEADER: &str = "x-dayfly-token";
/// Words of one `Authorization` that are looked up: a scheme, a key, and one that is too many.
const WORDS_MAX: usize = 3;

/// How a visitor came in.
#[derive(Debug)]
pub(super) enum Access {
    /// With a key of the sandbox's project.
    Key { project: ProjectId, end: KeyEnd },
    /// By a link. The token is there when it was in the query and should become a cookie.
    Link {
        project: ProjectId,
        grant: LinkGrant,
        query_token: Option<String>,
    },
}

/// Decides about a request; `None` is a refusal.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn decide(
    control: &Control,
    address: &PortAddress,
    head: &request::Parts,
) -> Result<Option<Access>, StoreError> {
    if let Some(key) = bearer(&head.headers)
        && let LookedUp::Usable(known, end) = control.look_up_key(key).await?
        && known.state == ProjectState::Active
        && may_visit(&known.key.reach, &address.sandbox)
    {
        match locate(control, &known.key.project, &address.sandbox).await {
            Ok(()) => {
                let project = known.key.project;
                return Ok(Some(Access::Key { project, end }));
            }
            Err(FindError::NotFound { .. } | FindError::Gone { .. }) => {}
            Err(FindError::Store { source, .. }) => return Err(source),
        }
    }
    let now = now_ms();
    let links = control
        .store
        .port_links_for_visitor(
            &address.sandbox,
            address.port,
            now,
            control.sign_in_digest(),
        )
        .await?;
    let query_token = head.uri.query().and_then(query::token);
    if let Some(token) = query_token
        && let Some(link) = opened_by(&links, token)
    {
        return Ok(Some(Access::Link {
            project: link.project.clone(),
            grant: grant(link, now),
            query_token: Some(token.to_owned()),
        }));
    }
    let header = heads::text(&head.headers, TOKEN_HEADER);
    let cookies = if is_of_another_page(&control.gateway.settings.preview, address, &head.headers) {
        Vec::new()
    } else {
        cookies::tokens(address, &head.headers)
    };
    let mut tokens = header.into_iter().chain(cookies.iter().map(String::as_str));
    let found = tokens
        .find_map(|token| opened_by(&links, token))
        // The one that lasts longest, so that a visit is not cut while another is still open.
        .or_else(|| {
            let public = links.iter().filter(|link| link.token_hash.is_none());
            public.max_by_key(|link| link.expires_at_ms)
        });
    Ok(found.map(|link| Access::Link {
        project: link.project.clone(),
        grant: grant(link, now),
        query_token: None,
    }))
}

/// Whether a browser says that another site's page, or another page of this site, asks for a part
/// of itself: a picture, a script, a frame. Such questions name no origin. Following a link is not
/// one of them.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let value = |name| heads::text(headers, name);
    let is_elsewhere = matches!(value("sec-fetch-site"), Some("same-site" | "cross-site"));
    let is_followed =
        value("sec-fetch-mode") == Some("navigate") && value("sec-fetch-dest") == Some("document");
    is_elsewhere && !is_followed
}

/// Whether a key may be used for what is inside this sandbox.
fn may_visit(reach: &Reach, sandbox: &SandboxId) -> bool {
    let is_for_it = reach.sandbox.as_ref().is_none_or(|only| only == sandbox);
    is_for_it && reach.file.is_none() && reach.scopes.has(Scope::Exec)
}

/// Whether a page that is not this sandbox's made a browser ask. A cookie goes along with whatever
/// such a page asks for, and the pages of all sandboxes are of one site, so that a browser's own
/// rule lets them pass.
fn is_of_another_page(preview: &PreviewDomain, address: &PortAddress, headers: &HeaderMap) -> bool {
    let is_ours = |origin: &HeaderValue| {
        let host = origin.to_str().ok()?.split_once("://")?.1;
        Some(match address.form {
            Form::Host => preview.parse_host(host)?.0 == address.sandbox,
            Form::Path => headers.get(HOST)?.as_bytes() == host.as_bytes(),
        })
    };
    let is_named_otherwise = headers
        .get_all(ORIGIN)
        .iter()
        .any(|origin| is_ours(origin) != Some(true));
    is_named_otherwise || is_embedded_elsewhere(headers)
}

fn grant(link: &PortLinkRow, now_ms: i64) -> LinkGrant {
    let left = u64::try_from(link.expires_at_ms.saturating_sub(now_ms)).unwrap_or(0);
    LinkGrant {
        link: Arc::from(link.id.as_str()),
        expires_in: Duration::from_millis(left),
    }
}

/// The link that a token opens. Looks at all, so that the time tells nothing.
fn opened_by<'a>(links: &'a [PortLinkRow], token: &str) -> Option<&'a PortLinkRow> {
    let presented = KeyHash::of(token)?;
    links.iter().fold(None, |found, link| {
        let fits = link.token_hash.is_some_and(|hash| hash.matches(presented));
        if fits { Some(link) } else { found }
    })
}

/// Whether the visitor's `Authorization` is meant for the service: it came in otherwise, and what
/// it sent is no key and no token of ours.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn keeps_authorization(
    control: &Control,
    access: &Access,
    headers: &HeaderMap,
) -> Result<bool, StoreError> {
    let is_by_key = matches!(access, Access::Key { .. });
    if is_by_key {
        return Ok(false);
    }
    for value in headers.get_all(AUTHORIZATION) {
        if is_ours(control, value).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn is_ours(control: &Control, value: &HeaderValue) -> Result<bool, StoreError> {
    let bytes = value.as_bytes();
    let holds = |mark: &str| {
        bytes
            .windows(mark.len())
            .any(|window| window == mark.as_bytes())
    };
    if holds(KEY_START) || holds(TOKEN_START) {
        return Ok(true);
    }
    // An operator's own key may look like anything.
    for word in bytes.split(u8::is_ascii_whitespace).take(WORDS_MAX) {
        if let Ok(word) = std::str::from_utf8(word)
            && control.find_key(word).await?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
