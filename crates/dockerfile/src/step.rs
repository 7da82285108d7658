//! What a stage is made of: steps that are done one after the other, each in the state that the
//! one before it left.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::StageConfig;

/// What a stage is built on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageBase {
    /// A reference as it is written, with its variables expanded.
    Image(String),
    /// An earlier stage of the same Dockerfile, counted from 0.
    Stage(usize),
    /// `FROM scratch`: nothing.
    Scratch,
}

/// The steps of one stage, and how programs are started after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePlan {
    /// One for each instruction, in their order.
    pub steps: Vec<Step>,
    /// After the last of them.
    pub config: StageConfig,
}

/// One instruction of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it begins in the Dockerfile, counted from 1.
    pub line: usize,
    /// The instruction as it is written, on one line and for people; a long one is cut.
    pub text: String,
    /// What has to be done.
    pub work: StepWork,
}

/// What a step does to the files of its stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StepWork {
    /// RUN.
    Run {
        /// What is run; the step has failed when it does.
        command: RunCommand,
        /// All variables that are in force: those of the base, ENV and ARG.
        environment: BTreeMap<String, String>,
        /// None means root.
        user: Option<String>,
        /// Absolute.
        directory: String,
        /// What is there beside the files of the stage.
        mounts: Vec<RunMount>,
    },
    /// COPY and ADD.
    Copy {
        /// Where the files are.
        from: CopyFrom,
        /// Below the root of what is copied from, without a slash before them; empty for all of
        /// it. They may have wildcards. Empty where `from` has the files itself.
        sources: Vec<String>,
        /// Absolute, and without a slash at its end unless it is the root.
        destination: String,
        /// Whether the destination is a directory by the way it is written. Otherwise a file is
        /// copied to it; or into it, if a directory is there already.
        destination_is_directory: bool,
        /// `--chown`: names or numbers, perhaps with a group. None means root.
        owner: Option<String>,
        /// `--chmod`; None keeps what files have.
        mode: Option<u32>,
        /// ADD: archives among the sources are unpacked.
        unpacks: bool,
    },
    /// WORKDIR: the directory is made if it is not there.
    MakeDirectory {
        /// Absolute.
        path: String,
        /// Who owns what is made; None means root.
        user: Option<String>,
    },
    /// Only the config changes: ENV, ARG, USER, CMD and others.
    Nothing,
}

/// What RUN runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCommand {
    /// A program and its arguments.
    Words(Vec<String>),
    /// A text for a shell: the last argument after those of `shell`. Documents that the text reads
    /// are in it.
    Shell {
        /// The shell and its arguments.
        shell: Vec<String>,
        /// What it is to run.
        text: String,
    },
    /// A document that begins with `#!`: an executable file of this content is run.
    Script(String),
}

/// Something that is there while one RUN runs, and not in the files of the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RunMount {
    /// A directory that outlives builds.
    Cache {
        /// Mounts with the same id are the same directory.
        id: String,
        /// Absolute.
        target: String,
        /// What happens when two want it at once.
        sharing: CacheSharing,
        /// Of the directory, when it is made.
        mode: u32,
        /// Likewise.
        uid: u32,
        /// Likewise.
        gid: u32,
        /// Nothing can be written.
        read_only: bool,
    },
    /// An empty file system in memory.
    Temporary {
        /// Absolute.
        target: String,
        /// The most that it holds, if that is said.
        size_bytes: Option<u64>,
    },
    /// Files of somewhere else. What is written there is gone after the RUN.
    Bind {
        /// Where the files are.
        from: MountFrom,
        /// Below the root of it; empty for all of it.
        source: String,
        /// Absolute.
        target: String,
        /// The command may write there.
        writable: bool,
    },
}

/// What happens when two builds want the same cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheSharing {
    /// Both use it at once.
    Shared,
    /// The second gets one of its own.
    Private,
    /// The second waits.
    Locked,
}

/// Where a bind mount comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MountFrom {
    /// The build context.
    Context,
    /// An earlier stage, counted from 0.
    Stage(usize),
    /// A reference as it is written.
    Image(String),
}

/// Where a COPY takes its files from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyFrom {
    /// The build context.
    Context,
    /// An earlier stage, counted from 0.
    Stage(usize),
    /// A reference as it is written.
    Image(String),
    /// Documents of the Dockerfile itself, as files with mode 0644.
    Inline(Vec<InlineFile>),
}

/// A document of a COPY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InlineFile {
    /// What the file is called in a destination that is a directory. Without a slash.
    pub name: String,
    /// With its variables expanded, unless its name is quoted.
    pub content: String,
}
