//! `dayfly volume`.

use dayfly_api::{CreateVolume, GrowVolume, Volume};
use time::OffsetDateTime;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::sandbox::args::VolumeCommand;
use crate::sandbox::removal;
use crate::sandbox::removal::Kind;
use crate::table::Table;
use crate::{ages, exit_status, text};

pub(crate) async fn volume(
    session: &Session<'_>,
    command: &VolumeCommand,
) -> Result<u8, CommandError> {
    match command {
        VolumeCommand::Create { name, size } => create(session, name, *size).await,
        VolumeCommand::Ls => list(session).await,
        VolumeCommand::Rm { names } => remove(session, names.clone()).await,
        VolumeCommand::Grow { name, size } => grow(session, name, *size).await,
    }
}

async fn create(session: &Session<'_>, name: &str, size_mb: u64) -> Result<u8, CommandError> {
    let request = CreateVolume {
        name: name.to_owned(),
        size_mb: Some(size_mb),
        size_gb: None,
    };
    let volume = session
        .client
        .create_volume(&request)
        .await
        .map_err(|source| {
            CommandError::call(format!("cannot create volume {name}"), source)
                .about(Subject::Volume)
        })?;
    tell(session, &volume)
}

async fn grow(session: &Session<'_>, name: &str, size_mb: u64) -> Result<u8, CommandError> {
    let request = GrowVolume {
        size_mb: Some(size_mb),
        size_gb: None,
    };
    let volume = session
        .client
        .grow_volume(name, &request)
        .await
        .map_err(|source| {
            CommandError::call(format!("cannot grow volume {name}"), source).about(Subject::Volume)
        })?;
    tell(session, &volume)
}

fn tell(session: &Session<'_>, volume: &Volume) -> Result<u8, CommandError> {
    if session.printer.is_json() {
        session.printer.json(volume)?;
    } else {
        session.printer.line(&text::visible(&volume.name))?;
    }
    Ok(exit_status::OK)
}

async fn list(session: &Session<'_>) -> Result<u8, CommandError> {
    let volumes = session
        .client
        .list_volumes()
        .await
        .map_err(|source| CommandError::call("cannot list volumes", source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&volumes)?;
        return Ok(exit_status::OK);
    }
    if printer.is_quiet() {
        let names = volumes
            .iter()
            .map(|volume| text::visible(&volume.name) + "\n");
        printer.data(&names.collect::<String>())?;
        return Ok(exit_status::OK);
    }
    printer.table(&table(&volumes))?;
    if volumes.is_empty() {
        printer.note("no volumes; `dayfly volume create` makes one");
    }
    Ok(exit_status::OK)
}

fn table(volumes: &[Volume]) -> Table {
    let now = OffsetDateTime::now_utc();
    let mut table = Table::new(&["NAME", "SIZE", "USED", "AGE", "WRITER", "READERS"]);
    for volume in volumes {
        table.push(vec![
            volume.name.clone(),
            format!("{} MiB", volume.size_mb),
            format!("{} MiB", volume.used_bytes >> 20),
            ages::since(&volume.created_at, now),
            volume.writer.clone().unwrap_or_else(|| "-".to_owned()),
            volume.readers.len().to_string(),
        ]);
    }
    table
}

async fn remove(session: &Session<'_>, names: Vec<String>) -> Result<u8, CommandError> {
    removal::remove_all(session, Kind::Volume, names).await
}
