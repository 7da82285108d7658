//! `dayfly create`.

use crate::args::CreateArgs;
use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::CommandError;
use crate::pairs;
use crate::sandbox::creation;
use crate::signals::StopSignals;

pub(crate) async fn create(session: &Session<'_>, args: CreateArgs) -> Result<u8, CommandError> {
    let mut request = creation::request(session, &args.creation).await?;
    request.env = pairs::given(&args.env);
    request.persistent = args.persistent.then_some(true);
    let mut signals = StopSignals::install()?;
    let sandbox = creation::create(session, &args.creation, &request, &mut signals).await?;
    if session.printer.is_json() {
        session.printer.json(&sandbox)?;
    } else {
        session.printer.line(&crate::text::visible(&sandbox.id))?;
    }
    Ok(exit_status::OK)
}
