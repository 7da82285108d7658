//! `dayfly project suspend` and `rm`.

use dayfly_api::SuspendProject;
use serde_json::json;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::tenancy::project::failed;
use crate::{exit_status, text};

pub(super) async fn suspend(
    session: &Session<'_>,
    id: &str,
    request: &SuspendProject,
) -> Result<u8, CommandError> {
    let done = session.client.suspend_project(id, request).await;
    let done = done.map_err(failed("suspend", id))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&done)?;
    } else {
        printer.line(&text::visible(&done.project.id))?;
        let count = done.hibernated.len();
        if count > 0 {
            printer.note(&format!("hibernated {count} sandboxes"));
        }
        for id in &done.failed {
            printer.note(&format!("{} still runs", text::visible(id)));
        }
    }
    Ok(match done.failed.is_empty() {
        true => exit_status::OK,
        false => exit_status::FAILED,
    })
}

pub(super) async fn remove(
    session: &Session<'_>,
    id: &str,
    force: bool,
    yes: bool,
) -> Result<u8, CommandError> {
    let (client, printer) = (&session.client, session.printer);
    if force && !yes && !is_confirmed(session, id)? {
        printer.note("nothing was deleted");
        return Ok(exit_status::OK);
    }
    let deleted = match force {
        true => client.delete_project_and_all_of_it(id).await,
        false => client.delete_empty_project(id).await,
    };
    deleted.map_err(failed("delete", id))?;
    if printer.is_json() {
        printer.json(&json!({"deleted": [id], "failed": []}))?;
    } else {
        printer.line(&text::visible(id))?;
    }
    Ok(exit_status::OK)
}

fn is_confirmed(session: &Session<'_>, id: &str) -> Result<bool, CommandError> {
    let id = text::visible(id);
    let question = format!("delete project {id} with all that it has?");
    session
        .printer
        .confirm(&format!("delete everything of {id}"), &question)
}
