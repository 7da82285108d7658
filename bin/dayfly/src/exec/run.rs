//! `dayfly run`: a command in a sandbox of its own, which is deleted on every path.

use std::time::Duration;

use dayfly_api::CreateSandbox;
use dayfly_types::limits::TTL_SECONDS_DEFAULT;

use crate::args::RunArgs;
use crate::dispatch::Session;
use crate::durations;
use crate::exec::guest_output::GuestOutput;
use crate::exec::process;
use crate::failure::CommandError;
use crate::sandbox::creation;
use crate::signals::StopSignals;

/// What a sandbox lives longer than the command that it was made for.
const TTL_MARGIN: Duration = Duration::from_secs(60);

pub(crate) async fn run(session: &Session<'_>, args: &RunArgs) -> Result<u8, CommandError> {
    let exec_request = process::request(&args.process, &args.command)?;
    let create_request = create_request(session, args).await?;
    let mut signals = StopSignals::install()?;
    let sandbox = creation::create(session, &args.creation, &create_request, &mut signals).await?;
    let mut output = GuestOutput::new(session.printer.is_json());
    let ending = tokio::select! {
        ending = process::follow(session, &sandbox.id, &exec_request, &mut output) => ending,
        signal = signals.next() => Err(CommandError::Interrupted { signal }),
    };
    // From here on the sandbox is dealt with first; what the command did is told afterwards.
    let is_deleted = if args.keep {
        session
            .printer
            .note(&format!("kept sandbox {}", sandbox.id));
        false
    } else {
        if matches!(ending, Err(CommandError::Interrupted { .. })) {
            session
                .printer
                .note(&format!("stopping: deleting sandbox {}", sandbox.id));
        }
        creation::delete(session, &sandbox.id, &mut signals).await
    };
    process::conclude(session, &sandbox.id, &ending?, &output, Some(is_deleted))
}

async fn create_request(
    session: &Session<'_>,
    args: &RunArgs,
) -> Result<CreateSandbox, CommandError> {
    let mut request = creation::request(session, &args.creation).await?;
    // A command that may take longer than the default must not lose its sandbox half way.
    if let (None, Some(timeout)) = (request.ttl_seconds, args.process.timeout) {
        let needed = durations::seconds_up(timeout.saturating_add(TTL_MARGIN));
        request.ttl_seconds = (needed > TTL_SECONDS_DEFAULT).then_some(needed);
    }
    Ok(request)
}
