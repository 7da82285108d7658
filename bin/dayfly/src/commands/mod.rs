//! One file for each command, and what several of them share: [`creation`] and [`process`].

mod cp;
mod create;
mod creation;
mod exec;
mod info;
mod ls;
mod node;
mod process;
mod rm;
mod run;
mod template;
mod version;

use dayfly_client::{Client, ClientConfig};

use crate::args::{Args, Command};
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::printer::Printer;
use crate::settings::Settings;

/// What every command works with.
pub(crate) struct Session<'p> {
    pub(crate) client: Client,
    pub(crate) printer: &'p Printer,
}

/// Carries out a command; gives the exit status.
pub(crate) async fn dispatch(
    args: Args,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let settings = Settings::load(&args.global, environment)?;
    let is_key_needed = !matches!(args.command, Command::Version);
    if is_key_needed {
        settings.require_key()?;
    }
    let client = Client::new(ClientConfig {
        url: settings.url,
        key: settings.key,
    })?;
    let session = Session { client, printer };
    match args.command {
        Command::Run(args) => run::run(&session, &args).await,
        Command::Create(args) => create::create(&session, args).await,
        Command::Ls => ls::list(&session).await,
        Command::Info(args) => info::show(&session, &args).await,
        Command::Exec(args) => exec::exec(&session, &args).await,
        Command::Cp(args) => cp::copy(&session, args).await,
        Command::Rm(args) => rm::remove(&session, &args).await,
        Command::Template(command) => template::template(&session, &command).await,
        Command::Node => node::show(&session).await,
        Command::Version => version::show(&session).await,
    }
}
