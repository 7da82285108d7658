//! One file for each command, and what several of them share: [`creation`],
//! [`process`] and [`removal`].

mod cp;
mod create;
mod creation;
mod exec;
mod fork;
mod info;
mod ls;
mod node;
mod process;
mod promote;
mod removal;
mod rm;
mod run;
mod snapshot;
mod state;
mod template;
mod ttl;
mod version;
mod volume;

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
        Command::Pause(args) => state::change(&session, &args, state::Change::Pause).await,
        Command::Resume(args) => state::change(&session, &args, state::Change::Resume).await,
        Command::Hibernate(args) => state::change(&session, &args, state::Change::Hibernate).await,
        Command::Wake(args) => state::change(&session, &args, state::Change::Wake).await,
        Command::Rollback(args) => state::rollback(&session, &args).await,
        Command::Ttl(args) => ttl::ttl(&session, &args).await,
        Command::Snapshot(command) => snapshot::snapshot(&session, &command).await,
        Command::Fork(args) => fork::fork(&session, &args).await,
        Command::Promote(args) => promote::promote(&session, args).await,
        Command::Volume(command) => volume::volume(&session, &command).await,
        Command::Template(command) => template::template(&session, &command).await,
        Command::Node => node::show(&session).await,
        Command::Version => version::show(&session).await,
    }
}
