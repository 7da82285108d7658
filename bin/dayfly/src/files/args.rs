//! What can be asked about files.

use std::str::FromStr;
use std::time::Duration;

use clap::Subcommand;

use crate::durations;
use crate::files::places::Place;

#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// A local path, `-` for standard input, or ID:PATH.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Place,
    /// A local path, `-` for standard output, or ID:PATH.
    #[arg(value_name = "DESTINATION")]
    pub(crate) destination: Place,
    /// User of the sandbox whose permissions count [default: agent].
    #[arg(long, short, value_name = "USER")]
    pub(crate) user: Option<String>,
}

/// Where paths that are not absolute start.
const WORKSPACE: &str = "/workspace";

/// A place in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestPlace {
    /// An id, or the beginning of one.
    pub(crate) sandbox: String,
    pub(crate) path: String,
}

/// Why a text is no place in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give it as ID:PATH")]
pub(crate) struct NotInSandbox;

impl FromStr for GuestPlace {
    type Err = NotInSandbox;

    fn from_str(text: &str) -> Result<Self, NotInSandbox> {
        match text.parse() {
            Ok(Place::Guest { sandbox, path }) if !text.ends_with(':') => Ok(Self {
                sandbox,
                path: if path.is_empty() {
                    WORKSPACE.to_owned()
                } else {
                    path
                },
            }),
            Ok(Place::Guest { .. } | Place::Local(_) | Place::Standard) => Err(NotInSandbox),
        }
    }
}

impl GuestPlace {
    /// As [`FromStr`], but a sandbox alone stands for one path of it.
    fn parse_or(text: &str, path: &str) -> Result<Self, NotInSandbox> {
        if let Ok(place) = text.parse() {
            return Ok(place);
        }
        let sandbox = text.strip_suffix(':').unwrap_or(text);
        if sandbox.is_empty() || sandbox == "-" || sandbox.contains(['/', ':']) {
            return Err(NotInSandbox);
        }
        Ok(Self {
            sandbox: sandbox.to_owned(),
            path: path.to_owned(),
        })
    }
}

/// A place in a sandbox, or all of its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WholeOrPlace(pub(crate) GuestPlace);

impl FromStr for WholeOrPlace {
    type Err = NotInSandbox;

    fn from_str(text: &str) -> Result<Self, NotInSandbox> {
        GuestPlace::parse_or(text, "/").map(Self)
    }
}

/// A directory in a sandbox, or the one that its commands run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceOrPlace(pub(crate) GuestPlace);

impl FromStr for WorkspaceOrPlace {
    type Err = NotInSandbox;

    fn from_str(text: &str) -> Result<Self, NotInSandbox> {
        GuestPlace::parse_or(text, WORKSPACE).map(Self)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct FilesArgs {
    /// User of the sandbox whose permissions count [default: agent].
    #[arg(long, short, value_name = "USER", global = true)]
    pub(crate) user: Option<String>,
    #[command(subcommand)]
    pub(crate) command: FilesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// List a directory.
    #[command(visible_alias = "list")]
    Ls {
        /// A directory [default: /workspace].
        #[arg(value_name = "ID[:PATH]")]
        place: WorkspaceOrPlace,
        /// Depth of the listing; symbolic links are not followed.
        #[arg(long, short, value_name = "N", default_value_t = 1)]
        depth: u32,
        /// At most this many entries [default: all].
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Only entries after this name.
        #[arg(long, value_name = "NAME")]
        after: Option<String>,
    },
    /// Show type, size and owner of a path; symbolic links are not followed.
    Stat {
        /// Path in a sandbox.
        #[arg(value_name = "ID:PATH")]
        place: GuestPlace,
    },
    /// Create directories.
    Mkdir {
        /// Paths in a sandbox.
        #[arg(value_name = "ID:PATH", required = true)]
        places: Vec<GuestPlace>,
        /// Also create parent directories; one that exists is no error.
        #[arg(long, short)]
        parents: bool,
        /// Permission bits, such as 0755.
        #[arg(long, short, value_name = "MODE")]
        mode: Option<String>,
    },
    /// Move or rename a file or directory within a sandbox.
    Mv {
        /// Path in a sandbox.
        #[arg(value_name = "ID:PATH")]
        from: GuestPlace,
        /// The new path.
        #[arg(value_name = "PATH")]
        to: String,
        /// Replace what is there.
        #[arg(long, short)]
        force: bool,
    },
    /// Remove files, or empty directories.
    Rm {
        /// Paths in a sandbox.
        #[arg(value_name = "ID:PATH", required = true)]
        places: Vec<GuestPlace>,
        /// Also directories and everything in them.
        #[arg(long, short)]
        recursive: bool,
    },
    /// Change permission bits.
    Chmod {
        /// In octal, such as 0644.
        #[arg(value_name = "MODE")]
        mode: String,
        /// Paths in a sandbox.
        #[arg(value_name = "ID:PATH", required = true)]
        places: Vec<GuestPlace>,
    },
    /// Watch a directory: print changes as they happen, one per line.
    Watch {
        /// A directory [default: /workspace].
        #[arg(value_name = "ID[:PATH]")]
        place: WorkspaceOrPlace,
        /// Also subdirectories.
        #[arg(long, short)]
        recursive: bool,
    },
    /// Create a link to a file: an address that works without an API key.
    Link {
        /// File in a sandbox.
        #[arg(value_name = "ID:PATH")]
        place: GuestPlace,
        /// For an upload, by PUT, instead of a download.
        #[arg(long)]
        upload: bool,
        /// Expires after this time, such as 30s, 5m, 2h, at most 7d [default: 1h].
        #[arg(long, value_name = "TIME", value_parser = durations::parse)]
        ttl: Option<Duration>,
    },
    /// Revoke a link to a file, at once, with the key that created it.
    Revoke {
        /// Sandbox: its name, its id, or a unique prefix of the id.
        #[arg(value_name = "ID")]
        id: String,
        /// The link, as `dayfly fs link` names it.
        #[arg(value_name = "LINK")]
        link: String,
    },
    /// List files that changed since the sandbox was created, or since a snapshot.
    Changes {
        /// All of the disk, or only what is below a path.
        #[arg(value_name = "ID[:PATH]")]
        place: WholeOrPlace,
        /// Snapshot of the sandbox, or a unique prefix of its id [default: its creation].
        #[arg(long, value_name = "SNAPSHOT")]
        since: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_sandbox_has_a_path() {
        let place: GuestPlace = "sb-a:/x:y".parse().unwrap();
        assert_eq!(
            (place.sandbox.as_str(), place.path.as_str()),
            ("sb-a", "/x:y")
        );
        for text in ["", "-", "/x", "./a:b", "sb-a", "sb-a:"] {
            assert_eq!(text.parse::<GuestPlace>(), Err(NotInSandbox), "{text}");
        }
    }

    #[test]
    fn a_sandbox_alone_is_its_workspace_where_a_directory_is_listed() {
        for text in ["sb-a", "sb-a:", "sb-a:./", "sb-a:/workspace"] {
            let WorkspaceOrPlace(place) = text.parse().unwrap();
            let found = (place.sandbox.as_str(), place.path.as_str());
            assert_eq!(found, ("sb-a", "/workspace"), "{text}");
        }
        for text in ["", "-", ":", "/x", "./x"] {
            assert!(text.parse::<WorkspaceOrPlace>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_sandbox_alone_is_all_of_its_disk() {
        for text in ["sb-a", "sb-a:", "sb-a:/"] {
            let WholeOrPlace(place) = text.parse().unwrap();
            assert_eq!((place.sandbox.as_str(), place.path.as_str()), ("sb-a", "/"));
        }
        assert!("/x".parse::<WholeOrPlace>().is_err());
    }
}
