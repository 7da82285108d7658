//! `dayflyd backup check`: reads every byte of a backup.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use dayfly_backup::{BackupSource, BackupTarget, read};
use dayfly_control::store::check_database;
use dayfly_installation::output::print;
use dayfly_installation::runtime;

use super::progress::Progress;
use super::{Described, STREAM, render};
use crate::args::CheckBackupArguments;

/// Says what is in a backup that is whole, and fails for one that is not.
pub(crate) async fn run(arguments: &CheckBackupArguments) -> Result<ExitCode> {
    let progress = Progress::new("checked", runtime::stop_on_signal()?);
    let checked = read_all(&arguments.from, None, progress).await?;
    if arguments.from != Path::new(STREAM) {
        let database = arguments.from.join("data/control/dayfly.db");
        check_database(&database)
            .await
            .context("the database of the backup is refused")?;
    }
    print(arguments.json, &checked, |checked| {
        format!("every byte is what was backed up\n{}", render(checked))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a backup from a directory or the standard input, and unpacks it where that is asked for.
pub(crate) async fn read_all(
    from: &Path,
    into: Option<BackupTarget>,
    mut progress: Progress,
) -> Result<Described> {
    let source = if from == Path::new(STREAM) {
        BackupSource::Stream(Box::new(std::io::BufReader::new(std::io::stdin())))
    } else {
        BackupSource::Directory(from.to_owned())
    };
    let work = move || read(source, into.as_ref(), &mut |bytes| progress.saw(bytes));
    let manifest = tokio::task::spawn_blocking(work).await??;
    Described::of(&manifest, from)
}
