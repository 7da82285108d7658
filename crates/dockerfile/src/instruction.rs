//! Instructions as they are written: variables not expanded, everything else read and checked.

use crate::config::StageHealth;
use crate::step::{CacheSharing, MountFrom};

/// A stage: FROM, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StageText {
    pub(crate) line: usize,
    pub(crate) image: String,
    pub(crate) platform: Option<String>,
    /// In lower case.
    pub(crate) name: Option<String>,
    pub(crate) instructions: Vec<Instruction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) line: usize,
    /// On one line, for people.
    pub(crate) text: String,
    pub(crate) kind: InstructionKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InstructionKind {
    Arguments(Vec<(String, Option<String>)>),
    Environment(Vec<(String, String)>),
    Run {
        command: CommandText,
        mounts: Vec<MountText>,
    },
    Copy(CopyText),
    Directory(String),
    User(String),
    Command(CommandText),
    EntryPoint(CommandText),
    Shell(Vec<String>),
    Health(Option<StageHealth>),
    /// Accepted, and nothing here depends on it.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandText {
    Words(Vec<String>),
    Shell(String),
    /// A document that begins with `#!`.
    Script(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyText {
    pub(crate) from: CopyFromText,
    pub(crate) sources: Vec<String>,
    pub(crate) destination: String,
    pub(crate) owner: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) unpacks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyFromText {
    Tree(MountFrom),
    Inline(Vec<InlineText>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InlineText {
    pub(crate) name: String,
    pub(crate) content: String,
    pub(crate) expands: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountText {
    pub(crate) kind: MountKind,
    pub(crate) target: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MountKind {
    Cache {
        id: Option<String>,
        sharing: CacheSharing,
        mode: u32,
        uid: u32,
        gid: u32,
        read_only: bool,
    },
    Temporary {
        size_bytes: Option<u64>,
    },
    Bind {
        from: MountFrom,
        source: String,
        writable: bool,
    },
}

impl InstructionKind {
    /// Every tree of files that the instruction needs beside its own.
    pub(crate) fn trees(&self) -> Vec<&MountFrom> {
        match self {
            Self::Run { mounts, .. } => mounts.iter().filter_map(MountText::tree).collect(),
            Self::Copy(copy) => match &copy.from {
                CopyFromText::Tree(from) => vec![from],
                CopyFromText::Inline(_) => Vec::new(),
            },
            Self::Arguments(_)
            | Self::Environment(_)
            | Self::Directory(_)
            | Self::User(_)
            | Self::Command(_)
            | Self::EntryPoint(_)
            | Self::Shell(_)
            | Self::Health(_)
            | Self::Other => Vec::new(),
        }
    }
}

impl MountText {
    fn tree(&self) -> Option<&MountFrom> {
        match &self.kind {
            MountKind::Bind { from, .. } => Some(from),
            MountKind::Cache { .. } | MountKind::Temporary { .. } => None,
        }
    }
}
