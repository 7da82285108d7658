//! One file for each command, and what several of them share: [`creation`],
//! [`process`] and [`removal`].

mod audit;
mod cp;
mod cp_tree;
mod create;
mod creation;
mod denials;
mod exec;
mod fork;
mod fs;
mod info;
mod login;
mod logs;
mod ls;
mod manual;
mod net;
mod net_log;
mod node;
mod port;
mod process;
mod project;
mod promote;
mod ps;
mod removal;
mod rm;
mod run;
mod snapshot;
mod state;
mod template;
mod token;
mod top;
mod ttl;
mod version;
mod volume;

use dayfly_client::{Client, ClientConfig};

use crate::args::{Args, Command};
use crate::args_tenancy::LocalCommand;
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::printer::Printer;
use crate::settings::Settings;

/// What every command works with.
pub(crate) struct Session<'p> {
    pub(crate) client: Client,
    pub(crate) printer: &'p Printer,
}

/// Carries out what needs no server that is known already.
async fn local(
    command: &LocalCommand,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    match command {
        LocalCommand::Login(args) => login::login(args, environment, printer).await,
        LocalCommand::Context(command) => login::context(command, environment, printer),
        LocalCommand::Completions(args) => manual::completions(args.shell, printer),
        LocalCommand::Manual(args) => manual::manual(&args.directory),
    }
}

/// Carries out a command; gives the exit status.
pub(crate) async fn dispatch(
    args: Args,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    if let Command::Local(command) = &args.command {
        return local(command, environment, printer).await;
    }
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
        Command::Top(args) => top::top(&session, &args).await,
        Command::Ls(arguments) => ls::list(&session, arguments).await,
        Command::Info(args) => info::show(&session, &args).await,
        Command::Exec(args) => exec::exec(&session, &args).await,
        Command::Shell(args) => exec::shell(&session, &args).await,
        Command::Attach(args) => exec::attach(&session, &args).await,
        Command::Ps(args) => ps::list(&session, &args).await,
        Command::Kill(args) => ps::kill(&session, &args).await,
        Command::Logs(args) => logs::logs(&session, &args).await,
        Command::Cp(args) => cp::copy(&session, args).await,
        Command::Fs(args) => fs::files(&session, &args).await,
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
        Command::Net(command) => net::net(&session, &command).await,
        Command::Port(command) => port::port(&session, &command).await,
        Command::Volume(command) => volume::volume(&session, &command).await,
        Command::Template(command) => template::template(&session, &command).await,
        Command::Token(command) => token::token(&session, command).await,
        Command::Project(command) => project::project(&session, &command).await,
        Command::Audit(args) => audit::audit(&session, &args).await,
        Command::Events(args) => audit::events(&session, args).await,
        Command::Local(command) => local(&command, environment, printer).await,
        Command::Node => node::show(&session).await,
        Command::Version => version::show(&session).await,
    }
}
