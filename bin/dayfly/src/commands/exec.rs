//! `dayfly exec`.

use crate::args::ExecArgs;
use crate::commands::{Session, process};
use crate::failure::CommandError;
use crate::guest_output::GuestOutput;
use crate::prefixes;
use crate::signals::StopSignals;

pub(crate) async fn exec(session: &Session<'_>, args: &ExecArgs) -> Result<u8, CommandError> {
    let request = process::request(&args.process, &args.command).await?;
    let mut signals = StopSignals::install()?;
    let id = tokio::select! {
        id = prefixes::resolve(&session.client, &args.id) => id?,
        signal = signals.next() => return Err(CommandError::Interrupted { signal }),
    };
    let mut output = GuestOutput::new(session.printer.is_json());
    let ending = tokio::select! {
        ending = process::follow(session, &id, &request, &mut output) => ending?,
        // Hanging up ends the command.
        signal = signals.next() => {
            session.printer.note(&format!("stopping the command in {id}"));
            return Err(CommandError::Interrupted { signal });
        }
    };
    process::conclude(session, &id, ending, &output, None)
}
