//! What an image, or a stage so far, says of how its programs are started.

use std::collections::BTreeMap;
use std::time::Duration;

/// The shell of an image that names none.
const SHELL_DEFAULT: [&str; 2] = ["/bin/sh", "-c"];

/// How programs are started on a base, and after the steps of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageConfig {
    /// Environment variables of the base and of ENV.
    pub environment: BTreeMap<String, String>,
    /// ARGs with the values that they have at the end of a stage: a stage FROM this one inherits
    /// them. Those of an image are not known to anybody, so they are empty.
    pub arguments: BTreeMap<String, String>,
    /// A name or a number, perhaps with a group; None means root.
    pub user: Option<String>,
    /// Absolute; None means the root directory.
    pub directory: Option<String>,
    /// What a command that is one text is given to.
    pub shell: Vec<String>,
    /// ENTRYPOINT, with the shell before it if it is one text.
    pub entry_point: Vec<String>,
    /// CMD, likewise.
    pub command: Vec<String>,
    /// HEALTHCHECK; None where there is none, or where it is turned off.
    pub health: Option<StageHealth>,
}

impl Default for StageConfig {
    /// As of an empty image.
    fn default() -> Self {
        Self {
            environment: BTreeMap::new(),
            arguments: BTreeMap::new(),
            user: None,
            directory: None,
            shell: SHELL_DEFAULT.map(str::to_owned).to_vec(),
            entry_point: Vec::new(),
            command: Vec::new(),
            health: None,
        }
    }
}

impl StageConfig {
    pub(crate) fn shell_or_default(&self) -> Vec<String> {
        match self.shell.is_empty() {
            true => SHELL_DEFAULT.map(str::to_owned).to_vec(),
            false => self.shell.clone(),
        }
    }
}

/// HEALTHCHECK. Where a time or a number is None, whoever runs the image decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageHealth {
    /// What is run.
    pub command: StageHealthCommand,
    /// From one run to the next.
    pub interval: Option<Duration>,
    /// After which a run has failed.
    pub timeout: Option<Duration>,
    /// For which failures do not count after the start.
    pub start_period: Option<Duration>,
    /// The interval during that time.
    pub start_interval: Option<Duration>,
    /// Failures in a row that mean that it is not well.
    pub retries: Option<u32>,
}

/// The command of a HEALTHCHECK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageHealthCommand {
    /// A program and its arguments.
    Words(Vec<String>),
    /// For the shell of the config, whichever that is when the command runs.
    Shell(String),
}
