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
    pub entry_point: Vec<String>,
    pub command: Vec<String>,
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
    pub command: StageHealthCommand,
    pub interval: Option<Duration>,
    pub timeout: Option<Duration>,
    pub start_period: Option<Duration>,
    pub start_interval: Option<Duration>,
    pub retries: Option<u32>,
}

/// The command of a HEALTHCHECK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageHealthCommand {
    Words(Vec<String>),
    /// For the shell of the config, whichever that is when the command runs.
    Shell(String),
}
