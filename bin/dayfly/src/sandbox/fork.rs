//! `dayfly fork`.

use dayfly_api::{ForkOptions, ForkSandbox, Forked};

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::sandbox::args::ForkArgs;
use crate::sandbox::prefixes;
use crate::{durations, exit_status, pairs, text};

pub(crate) async fn fork(session: &Session<'_>, args: &ForkArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let options = ForkOptions {
        all_or_nothing: args.all_or_nothing.then_some(true),
        reseed_user_space: args.reseed.then_some(true),
        ttl_seconds: args.ttl.map(durations::seconds_up),
        metadata: pairs::given(&args.metadata),
        env: pairs::given(&args.env),
        network: args.network.wish()?,
        ..ForkOptions::default()
    };
    let request = ForkSandbox {
        count: Some(args.count),
        options,
    };
    let forked = session
        .client
        .fork_sandbox(&id, &request)
        .await
        .map_err(|source| CommandError::call(format!("cannot fork sandbox {id}"), source))?;
    tell(session, &forked)?;
    Ok(if forked.failures.is_empty() {
        exit_status::OK
    } else {
        exit_status::FAILED
    })
}

fn tell(session: &Session<'_>, forked: &Forked) -> Result<(), CommandError> {
    let printer = session.printer;
    if printer.is_json() {
        return printer.json(forked);
    }
    let ids = forked
        .children
        .iter()
        .map(|child| text::visible(&child.id) + "\n");
    printer.data(&ids.collect::<String>())?;
    for (id, why) in &forked.failures {
        let (id, why) = (text::visible(id), text::visible(why));
        printer.warning(&format!("child {id} was not made: {why}"));
    }
    let pause_ms = forked.capture.pause_ms;
    printer.note(&format!("the sandbox was paused for {pause_ms} ms"));
    Ok(())
}
