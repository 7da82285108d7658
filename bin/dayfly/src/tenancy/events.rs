//! `dayfly events`.

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::tenancy::args::EventsArgs;
use crate::{signals, text};

pub(crate) async fn events(session: &Session<'_>, args: EventsArgs) -> Result<u8, CommandError> {
    signals::until_left(follow_events(session, args)).await
}

async fn follow_events(session: &Session<'_>, args: EventsArgs) -> Result<u8, CommandError> {
    let failed = |source| CommandError::call("cannot read events", source);
    let followed = session.client.follow_events(args.after).await;
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
        let line = format!(
            "{:<24}  {:<40}  {:<12}  {reason}",
            event.at, event.sandbox_id, event.state
        );
        session.printer.line(&text::visible(line.trim_end()))?;
    }
}
