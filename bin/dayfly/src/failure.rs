//! Why a command failed, and how the program ends then.

use std::io;

use dayfly_client::{ClientError, InvalidConfig};

use crate::exit_status;
use crate::sandbox::prefixes::PrefixError;
use crate::settings::SettingsError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{what}")]
    Usage { what: String, hint: &'static str },
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    #[error("{what}")]
    Call {
        what: String,
        about: Subject,
        #[source]
        source: ClientError,
    },
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// Something on this machine.
    #[error("{what}")]
    Local {
        what: String,
        #[source]
        source: io::Error,
    },
    /// Asked for, understood, and not done.
    #[error("{what}")]
    Refused { what: String, hint: &'static str },
    #[error("cannot write to standard output")]
    Output {
        #[source]
        source: io::Error,
    },
    #[error("the command ran past its time limit")]
    TimedOut,
    #[error("stopped by signal {signal}")]
    Interrupted { signal: u8 },
}

/// What a call was about: where to look when there is no such thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Sandbox,
    /// What a sandbox is made from: template, snapshot, volumes.
    Origin,
    Template,
    Snapshot,
    Volume,
    File,
    /// A command that runs, or ran, in a sandbox.
    Command,
    Link,
    FileLink,
    Key,
    Project,
}

impl Subject {
    /// Which command shows what there is.
    pub(crate) fn where_to_look(self) -> &'static str {
        match self {
            Self::Sandbox => "`dayfly ls` shows the sandboxes",
            Self::Origin => {
                "`dayfly template ls`, `dayfly snapshot ls` and `dayfly volume ls` show what exists"
            }
            Self::Template => "`dayfly template ls` shows the templates",
            Self::Snapshot => "`dayfly snapshot ls` shows the snapshots, `dayfly ls` the sandboxes",
            Self::Volume => "`dayfly volume ls` shows the volumes",
            Self::File => {
                "`dayfly fs ls ID:DIRECTORY` shows the files of a sandbox, `dayfly ls` the sandboxes"
            }
            Self::Command => {
                "`dayfly ps ID` shows the commands of a sandbox, `dayfly ls` the sandboxes"
            }
            Self::Link => "`dayfly port links ID` shows the links, `dayfly ls` the sandboxes",
            Self::FileLink => {
                "`dayfly token ls` shows the links to files, and `dayfly token rm` ends those of others"
            }
            Self::Key => "`dayfly token ls` shows the keys",
            Self::Project => "`dayfly project ls` shows the projects",
        }
    }
}

impl CommandError {
    pub(crate) fn call(what: impl Into<String>, source: ClientError) -> Self {
        Self::Call {
            what: what.into(),
            about: Subject::Sandbox,
            source,
        }
    }

    /// Names what a call was about, when that is not a sandbox.
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        if let Self::Call { about, .. } = &mut self {
            *about = subject;
        }
        self
    }

    pub(crate) fn local(what: impl Into<String>, source: io::Error) -> Self {
        Self::Local {
            what: what.into(),
            source,
        }
    }

    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Usage { .. } => exit_status::USAGE,
            Self::TimedOut => exit_status::TIMED_OUT,
            Self::Interrupted { signal } => exit_status::of_signal(*signal),
            Self::Output { source } if source.kind() == io::ErrorKind::BrokenPipe => {
                exit_status::BROKEN_PIPE
            }
            Self::Call { source, .. } | Self::Prefix(PrefixError::List { source, .. }) => {
                exit_status::of_call(source)
            }
            Self::Settings(SettingsError::NoKey { .. }) => exit_status::KEY_REFUSED,
            Self::Output { .. }
            | Self::Settings(_)
            | Self::Config(_)
            | Self::Prefix(_)
            | Self::Local { .. }
            | Self::Refused { .. } => exit_status::FAILED,
        }
    }

    /// Whether the program says nothing: whoever closed the pipe knows.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
