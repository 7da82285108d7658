//! Which command is carried out by what. Each part of the product has its commands and their
//! arguments in a directory of its own.

use dayfly_client::{Client, ClientConfig};

use crate::args::{Args, Command, GlobalArgs};
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::mcp::args::{McpArgs, McpCommand};
use crate::printer::{self, Printer};
use crate::sandbox::state;
use crate::settings::Settings;
use crate::tenancy::args::LocalCommand;
use crate::{
    exec, export, files, mcp, network, ports, sandbox, server, snapshot, template, tenancy, volume,
};

/// What every command works with.
pub(crate) struct Session<'p> {
    pub(crate) client: Client,
    pub(crate) printer: &'p Printer,
}

/// Carries out what needs no server that is known already.
async fn local(
    command: &LocalCommand,
    global: &GlobalArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    match command {
        LocalCommand::Login(args) => {
            tenancy::login::login(args, global, environment, printer).await
        }
        LocalCommand::Context(command) => tenancy::login::context(command, environment, printer),
        LocalCommand::Completions(args) => server::manual::completions(args.shell, printer),
        LocalCommand::Manual(args) => server::manual::manual(&args.directory),
    }
}

/// Carries out a command; gives the exit status.
pub(crate) async fn dispatch(
    args: Args,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    if let Command::Local(command) = &args.command {
        return local(command, &args.global, environment, printer).await;
    }
    if let Command::Mcp(McpArgs {
        command: Some(McpCommand::Install(wish)),
        ..
    }) = &args.command
    {
        return mcp::install::install(wish, &args.global, environment, printer);
    }
    let settings = Settings::load(&args.global, environment)?;
    let is_key_needed = !matches!(args.command, Command::Version);
    if is_key_needed {
        settings.require_key()?;
    }
    let mut client = Client::new(ClientConfig {
        url: settings.url,
        key: settings.key,
    })?;
    if args.global.verbose {
        client = client.observed(printer::request);
    }
    let session = Session { client, printer };
    match args.command {
        Command::Run(args) => exec::run::run(&session, &args).await,
        Command::Create(args) => sandbox::create::create(&session, args).await,
        Command::Top(args) => sandbox::top::top(&session, &args).await,
        Command::Ls(arguments) => sandbox::ls::list(&session, arguments).await,
        Command::Info(args) => sandbox::info::show(&session, &args).await,
        Command::Exec(args) => exec::start::exec(&session, &args).await,
        Command::Shell(args) => exec::start::shell(&session, &args).await,
        Command::Attach(args) => exec::start::attach(&session, &args).await,
        Command::Ps(args) => exec::ps::list(&session, &args).await,
        Command::Kill(args) => exec::ps::kill(&session, &args).await,
        Command::Logs(args) => exec::logs::logs(&session, &args).await,
        Command::Cp(args) => files::cp::copy(&session, args).await,
        Command::Fs(args) => files::fs::files(&session, &args).await,
        Command::Rm(args) => sandbox::rm::remove(&session, &args).await,
        Command::Pause(args) => state::change(&session, &args, state::Change::Pause).await,
        Command::Resume(args) => state::change(&session, &args, state::Change::Resume).await,
        Command::Hibernate(args) => state::change(&session, &args, state::Change::Hibernate).await,
        Command::Wake(args) => state::wake(&session, &args).await,
        Command::Rollback(args) => state::rollback(&session, &args).await,
        Command::Ttl(args) => sandbox::ttl::ttl(&session, &args).await,
        Command::Snapshot(command) => snapshot::commands::snapshot(&session, &command).await,
        Command::Fork(args) => sandbox::fork::fork(&session, &args).await,
        Command::Explore(args) => sandbox::explore::explore(&session, &args).await,
        Command::Promote(args) => sandbox::promote::promote(&session, args).await,
        Command::Net(command) => network::net::net(&session, &command).await,
        Command::Port(command) => ports::links::port(&session, &command).await,
        Command::Mcp(args) => mcp::serve::serve(&session, &args.serve).await,
        Command::Volume(command) => volume::commands::volume(&session, &command).await,
        Command::Template(command) => template::commands::template(&session, &command).await,
        Command::Token(command) => tenancy::token::token(&session, command).await,
        Command::Project(command) => tenancy::project::project(&session, &command).await,
        Command::Audit(args) => tenancy::audit::audit(&session, &args).await,
        Command::Events(args) => tenancy::events::events(&session, args).await,
        Command::Export(args) => export::export(&session, &args).await,
        Command::Local(command) => local(&command, &args.global, environment, printer).await,
        Command::Node => server::node::show(&session).await,
        Command::Whoami => server::whoami::show(&session).await,
        Command::Version => server::version::show(&session).await,
    }
}
