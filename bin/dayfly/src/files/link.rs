//! `dayfly fs link` and `revoke`: an address of one file for those who have no key.

use std::time::Duration;

use dayfly_api::{CreateFileLink, FileLink, FileLinkOperation};
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::files::args::GuestPlace;
use crate::files::fs::failed;
use crate::sandbox::prefixes;
use crate::{ages, durations, exit_status, text};

pub(super) async fn create(
    session: &Session<'_>,
    user: Option<&str>,
    place: &GuestPlace,
    is_upload: bool,
    ttl: Option<Duration>,
) -> Result<u8, CommandError> {
    if user.is_some() {
        return Err(CommandError::Usage {
            what: "a link has no --user: it reads and writes as the user agent".to_owned(),
            hint: "`dayfly fs chmod` lets that user have the file",
        });
    }
    let id = prefixes::resolve(&session.client, &place.sandbox).await?;
    let request = CreateFileLink {
        path: place.path.clone(),
        operation: is_upload.then_some(FileLinkOperation::Upload),
        ttl_seconds: ttl.map(durations::seconds_up),
    };
    let made = session.client.create_file_link(&id, &request).await;
    let link = made.map_err(failed("link to", &id, &place.path))?;
    let address = format!("{}{}", session.client.url(), link.address);
    if session.printer.is_json() {
        session.printer.json(&FileLink { address, ..link })?;
        return Ok(exit_status::OK);
    }
    session.printer.line(&text::visible(&address))?;
    let left = ages::until(Some(&link.expires_at), OffsetDateTime::now_utc());
    let (method, link) = (text::visible(&link.method), text::visible(&link.id));
    session.printer.note(&format!(
        "{method}, for {left}; `dayfly fs revoke {id} {link}` ends it before"
    ));
    Ok(exit_status::OK)
}

pub(super) async fn revoke(
    session: &Session<'_>,
    sandbox: &str,
    link: &str,
) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, sandbox).await?;
    let revoked = session.client.revoke_file_link(&id, link).await;
    revoked.map_err(|source| {
        let what = format!("cannot revoke link {}", text::visible(link));
        CommandError::call(what, source).about(Subject::FileLink)
    })?;
    if session.printer.is_json() {
        session
            .printer
            .json(&serde_json::json!({"revoked": link}))?;
        return Ok(exit_status::OK);
    }
    session.printer.line(&text::visible(link))?;
    Ok(exit_status::OK)
}
