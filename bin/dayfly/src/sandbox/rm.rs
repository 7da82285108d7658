//! `dayfly rm`.

use dayfly_client::{ProjectChoice, SandboxFilter};

use crate::args::RemoveArgs;
use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::sandbox::prefixes;
use crate::sandbox::removal;
use crate::sandbox::removal::Kind;

pub(crate) async fn remove(session: &Session<'_>, args: &RemoveArgs) -> Result<u8, CommandError> {
    let among = SandboxFilter {
        projects: match &args.project {
            Some(project) => ProjectChoice::One(project.clone()),
            None => ProjectChoice::Own,
        },
        ..SandboxFilter::default()
    };
    let ids = if args.all {
        let ids = all_ids(session, &among).await?;
        if !ids.is_empty() && !args.yes && !is_confirmed(session, ids.len())? {
            session.printer.note("nothing was deleted");
            return Ok(exit_status::OK);
        }
        ids
    } else {
        // All names are settled before the first delete, so that a typing error deletes nothing.
        let mut ids = Vec::new();
        for text in &args.ids {
            ids.push(prefixes::resolve_in(&session.client, &among, text).await?);
        }
        ids
    };
    let kind = match &args.project {
        Some(project) => Kind::SandboxOf(project),
        None => Kind::Sandbox,
    };
    removal::remove_all(session, kind, ids).await
}

async fn all_ids(
    session: &Session<'_>,
    among: &SandboxFilter,
) -> Result<Vec<String>, CommandError> {
    let sandboxes = session
        .client
        .find_sandboxes(among)
        .await
        .map_err(|source| CommandError::call("cannot list sandboxes", source))?;
    Ok(sandboxes.into_iter().map(|sandbox| sandbox.id).collect())
}

fn is_confirmed(session: &Session<'_>, count: usize) -> Result<bool, CommandError> {
    let deed = format!("delete all {count} sandboxes");
    session.printer.confirm(&deed, &format!("{deed}?"))
}
