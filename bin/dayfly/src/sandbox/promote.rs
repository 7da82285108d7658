//! `dayfly promote`.

use dayfly_api::PromoteSandbox;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::sandbox::args::PromoteArgs;
use crate::sandbox::prefixes;
use crate::{exit_status, text};

pub(crate) async fn promote(session: &Session<'_>, args: PromoteArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let request = PromoteSandbox {
        cleanup_siblings: Some(args.cleanup),
        tree_id: args.tree,
    };
    let promoted = session
        .client
        .promote_sandbox(&id, &request)
        .await
        .map_err(|source| CommandError::call(format!("cannot promote sandbox {id}"), source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&promoted)?;
    } else {
        let deleted = promoted.deleted.iter().map(|id| text::visible(id) + "\n");
        printer.data(&deleted.collect::<String>())?;
        for (id, why) in &promoted.failures {
            let (id, why) = (text::visible(id), text::visible(why));
            printer.warning(&format!("sandbox {id} may still exist: {why}"));
        }
        printer.note(&format!("kept sandbox {id}"));
    }
    Ok(if promoted.failures.is_empty() {
        exit_status::OK
    } else {
        exit_status::FAILED
    })
}
