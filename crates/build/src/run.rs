//! RUN and WORKDIR in a builder.

use dayfly_client::FileBody;
use dayfly_dockerfile::{RunCommand, Step, StepWork};

use crate::builder::{Builder, Ended, StepCommand};
use crate::error::BuildError;
use crate::event::Listener;
use crate::owner::{self, Owner};

/// Where a script of a RUN lies while it runs.
const SCRIPT_DIRECTORY: &str = "/tmp/.dayfly-build";
const SCRIPT: &str = "script";

/// Runs what a RUN says.
pub(crate) async fn run(
    builder: &Builder<'_>,
    step: &Step,
    tell: Listener<'_>,
) -> Result<Ended, BuildError> {
    let StepWork::Run {
        command,
        environment,
        user,
        directory,
        ..
    } = &step.work
    else {
        return Ok(Ended::well());
    };
    let words = match command {
        RunCommand::Words(words) => words.clone(),
        RunCommand::Shell { shell, text } => {
            let mut words = shell.clone();
            words.push(text.clone());
            words
        }
        RunCommand::Script(text) => {
            place_file(builder, SCRIPT_DIRECTORY, SCRIPT, 0o755, text).await?;
            vec![format!("{SCRIPT_DIRECTORY}/{SCRIPT}")]
        }
    };
    let command_of_step = StepCommand {
        words,
        environment: environment.clone(),
        user: user.clone(),
        directory: Some(directory.clone()),
    };
    let ended = builder.run(&command_of_step, tell).await?;
    if matches!(command, RunCommand::Script(_)) {
        builder
            .must(step.line, &["rm", "-rf", SCRIPT_DIRECTORY])
            .await?;
    }
    Ok(ended)
}

/// Puts a file into a directory, which is made if it is not there.
pub(crate) async fn place_file(
    builder: &Builder<'_>,
    directory: &str,
    name: &str,
    mode: u32,
    text: &str,
) -> Result<(), BuildError> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(text.len() as u64);
    let written = archive
        .append_data(&mut header, name, text.as_bytes())
        .and_then(|()| archive.into_inner());
    let bytes = written.map_err(|error| BuildError::Template {
        reason: error.to_string(),
    })?;
    builder.unpack(directory, FileBody::from_bytes(bytes)).await
}

/// Makes a directory, with all above it. What was not there belongs to the user. An empty archive needs
/// no program in the image.
pub(crate) async fn make_directory(
    builder: &Builder<'_>,
    line: usize,
    path: &str,
    user: Option<&str>,
) -> Result<(), BuildError> {
    const END_OF_ARCHIVE: [u8; 1024] = [0; 1024];
    let made = owner::missing(builder, path).await?;
    builder
        .unpack(path, FileBody::from_bytes(END_OF_ARCHIVE.to_vec()))
        .await?;
    let owner = Owner::said(user, Owner::Root);
    owner::correct(builder, line, path, &[], &made, &owner).await
}
