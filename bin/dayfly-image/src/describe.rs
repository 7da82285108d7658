//! What an image says of its use, in the words of the node.

use std::time::Duration;

use dayfly_oci::config::{HealthCheck, HealthTest};
use dayfly_oci::document::Image;
use dayfly_types::GuestDefaults;
use dayfly_types::container_image::{ImageHealthCheck, ImageHealthCommand, MadeImage};

/// What holds where an image leaves it to whoever runs it, as everywhere.
const INTERVAL: Duration = Duration::from_secs(30);
const RETRIES: u32 = 3;
/// Of an instruction, for people.
const INSTRUCTION_CHARACTERS: usize = 200;

pub(crate) fn made(image: &Image) -> MadeImage {
    let config = &image.config;
    MadeImage {
        digest: image.manifest.to_string(),
        layers: image
            .layers
            .iter()
            .map(|layer| layer.digest.to_string())
            .collect(),
        defaults: GuestDefaults {
            user: config.user.clone(),
            directory: config.working_directory.clone(),
            environment: config.environment.iter().cloned().collect(),
        },
        entry_point: config.entrypoint.clone(),
        command: config.command.clone(),
        shell: config.shell.clone(),
        on_build: config.on_build.first().map(|one| shortened(one)),
        health: config.health_check.as_ref().and_then(health),
    }
}

fn shortened(instruction: &str) -> String {
    instruction.chars().take(INSTRUCTION_CHARACTERS).collect()
}

fn health(check: &HealthCheck) -> Option<ImageHealthCheck> {
    let command = match &check.test {
        HealthTest::Off => return None,
        HealthTest::Command(arguments) => ImageHealthCommand::Arguments(arguments.clone()),
        HealthTest::Shell(line) => ImageHealthCommand::Shell(line.clone()),
    };
    let milliseconds = |said: Option<Duration>, otherwise: Duration| {
        u64::try_from(said.unwrap_or(otherwise).as_millis()).unwrap_or(u64::MAX)
    };
    Some(ImageHealthCheck {
        command,
        interval_ms: milliseconds(check.interval, INTERVAL),
        timeout_ms: milliseconds(check.timeout, INTERVAL),
        start_period_ms: milliseconds(check.start_period, Duration::ZERO),
        retries: check.retries.unwrap_or(RETRIES),
    })
}
