//! `dayfly events`.

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::tenancy::args::EventsArgs;
use crate::{signals, table, text};

pub(crate) async fn events(session: &Session<'_>, args: EventsArgs) -> Result<u8, CommandError> {
    signals::until_left(follow_events(session, args)).await
}

async fn follow_events(session: &Session<'_>, args: EventsArgs) -> Result<u8, CommandError> {
    let failed = |source| CommandError::call("cannot read events", source);
    let projects = args.whose.choice();
    let followed = session.client.follow_events(projects, args.after).await;
    let mut follow = followed.map_err(failed)?;
    loop {
        let event = follow.next().await.map_err(failed)?;
        if session.printer.is_json() {
            // One object in a line: more may follow for ever.
            let line = serde_json::to_string(&event).unwrap_or_default();
            session.printer.line(&line)?;
            continue;
        }
        let reason = event.reason.as_deref().unwrap_or_default();
        let at = table::padded(&text::visible(&event.at), 24);
        let id = table::padded(&text::visible(&event.sandbox_id), 40);
        let state = session.printer.status(&text::visible(&event.state), 12);
        let whose = table::padded_project(event.project.as_deref());
        let line = format!("{at}  {whose}{id}  {state}  {}", text::visible(reason));
        session.printer.line(line.trim_end())?;
    }
}
