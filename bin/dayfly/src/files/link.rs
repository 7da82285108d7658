//! `dayfly fs link`: an address of one file for those who have no key.

use std::time::Duration;

use dayfly_api::{CreateFileLink, FileLink, FileLinkOperation};
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::CommandError;
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
    let (method, id) = (text::visible(&link.method), text::visible(&link.id));
    session.printer.note(&format!(
        "{method}, for {left}; `dayfly token rm {id}` ends it before"
    ));
    Ok(exit_status::OK)
}
