//! Runs a command and says how it ended. What each does is in a file of its own.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use dayfly_installation::output::{EXIT_FAILED, print};
use dayfly_installation::runtime::block_on;

use crate::args::{
    AdminKeyCommand, BackupArguments, BackupCommand, Command, ConfigArguments, ConfigCommand,
    DatabaseCommand, DoctorArguments, EnginesCommand, ImageCommand, PurgeArguments,
    RecipeArguments, RecipeCommand, StopArguments,
};
use crate::{
    admin_key, backup, bench, doctor, engines, image, internal_network, manual, operator,
    pause_guard, purge, recipe_check, registries, restore, settings, stop, tls,
};

/// Something was found that keeps this host from working, or is not as it should be.
const EXIT_UNFIT: u8 = 1;

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Doctor(arguments) => return block_on(examine(arguments)),
        Command::Bench(arguments) => match bench::become_it(&arguments.given)? {},
        Command::Stop(arguments) => return block_on(stop(arguments)),
        Command::Database(DatabaseCommand::Accept(arguments)) => {
            let decided = block_on(operator::accept_database(arguments))?;
            print(arguments.json, &decided, operator::render)?;
        }
        Command::Forget(arguments) => {
            let decided = block_on(operator::forget(arguments))?;
            print(arguments.json, &decided, operator::render)?;
        }
        Command::Config(ConfigCommand::Check(arguments)) => check_settings(arguments)?,
        Command::Recipe(RecipeCommand::Check(arguments)) => return check_recipes(arguments),
        Command::Image(ImageCommand::Export(arguments)) => image::export(arguments)?,
        Command::Image(ImageCommand::Import(arguments)) => image::import(arguments)?,
        Command::Engines(command) => look_at_engines(command)?,
        Command::Backup(arguments) => return back_up(arguments),
        Command::Restore(arguments) => {
            let restored = block_on(restore::run(arguments))?;
            print(arguments.json, &restored, restore::render)?;
        }
        Command::AdminKey(AdminKeyCommand::Rotate(arguments)) => {
            let rotated = block_on(admin_key::rotate(arguments))?;
            print(arguments.json, &rotated, admin_key::render)?;
        }
        Command::Tls(command) => tls::run(command)?,
        Command::Purge(arguments) => return block_on(purge(arguments)),
        Command::Manual(arguments) => manual::write(&arguments.directory)?,
        Command::GuardPause(arguments) => pause_guard::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn examine(arguments: &DoctorArguments) -> Result<ExitCode> {
    let report = doctor::run(arguments).await?;
    print(arguments.json, &report, doctor::text::render)?;
    let is_well = report.is_well(arguments.production);
    Ok(code_of(is_well, EXIT_UNFIT))
}

async fn stop(arguments: &StopArguments) -> Result<ExitCode> {
    let stopped = stop::run(arguments).await?;
    print(arguments.json, &stopped, stop::render)?;
    Ok(code_of(stopped.failed.is_empty(), EXIT_FAILED))
}

fn check_settings(arguments: &ConfigArguments) -> Result<()> {
    let mut given = vec![OsString::from(env!("CARGO_PKG_NAME"))];
    if let Some(file) = &arguments.config {
        given.extend(["--config".into(), file.into()]);
    }
    let found = settings::resolve(&given)?;
    settings::check(&found.arguments)?;
    internal_network::check(&found.arguments.internal_network)?;
    registries::check(&found.arguments.registry)?;
    Ok(print(arguments.json, &found.report, settings::render)?)
}

fn check_recipes(arguments: &RecipeArguments) -> Result<ExitCode> {
    let report = recipe_check::run(&arguments.files);
    print(arguments.json, &report, recipe_check::render)?;
    Ok(code_of(report.is_well(), EXIT_UNFIT))
}

fn look_at_engines(command: &EnginesCommand) -> Result<()> {
    match command {
        EnginesCommand::Ls(arguments) => {
            print(arguments.json, &engines::list(arguments)?, engines::render)?;
        }
        EnginesCommand::Retire(arguments) => {
            let retired = engines::retire(arguments)?;
            print(
                arguments.installation.json,
                &retired,
                engines::render_retired,
            )?;
        }
    }
    Ok(())
}

fn back_up(arguments: &BackupArguments) -> Result<ExitCode> {
    match &arguments.command {
        None => block_on(backup::run(&arguments.make)),
        Some(BackupCommand::Check(arguments)) => block_on(backup::check::run(arguments)),
    }
}

async fn purge(arguments: &PurgeArguments) -> Result<ExitCode> {
    let purged = purge::run(arguments).await?;
    print(arguments.json, &purged, purge::render)?;
    Ok(code_of(purged.is_done(), EXIT_UNFIT))
}

fn code_of(is_well: bool, otherwise: u8) -> ExitCode {
    ExitCode::from(if is_well { 0 } else { otherwise })
}
