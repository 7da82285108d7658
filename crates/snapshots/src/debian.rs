//! Runs the program that makes Debian roots, `mmdebstrap`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::program::{Program, ProgramError};
use crate::progress::ProgressReporter;
use crate::sources::Sources;

/// The release that images are made of.
pub(crate) const RELEASE: &str = "bookworm";
/// Where newer kernels for it are.
pub(crate) const BACKPORTS: &str = "bookworm-backports";
/// Downloads over a slow line included.
const LIMIT: Duration = Duration::from_secs(45 * 60);
const QUESTION_LIMIT: Duration = Duration::from_secs(30);

/// What the program says when it begins a step, and how far the work is then. The shares are
/// those of a fast line; what matters is that they grow.
const STEPS: [(&str, &str, u8); 7] = [
    ("I: running apt-get update", "reading package lists", 2),
    ("I: downloading packages", "downloading packages", 10),
    ("I: extracting archives", "unpacking packages", 35),
    (
        "I: installing essential packages",
        "installing essential packages",
        45,
    ),
    (
        "I: installing remaining packages",
        "installing packages",
        60,
    ),
    ("I: running --customize-hook", "setting up", 90),
    ("I: cleaning package lists", "cleaning up", 97),
];

/// Why a root could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DebianError {
    #[error("cannot write the build file {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a Debian root")]
    Build(#[source] ProgramError),
}

/// A Debian root to make.
#[derive(Debug)]
pub(crate) struct DebianRoot<'a> {
    /// An empty directory for build files; the root appears in it as `root`.
    pub(crate) work: &'a Path,
    pub(crate) sources: &'a Sources,
    pub(crate) variant: &'a str,
    pub(crate) packages: &'a [String],
    /// Further options of `mmdebstrap`.
    pub(crate) options: Vec<String>,
}

impl DebianRoot<'_> {
    /// Makes the root and returns its path.
    pub(crate) async fn make(self, progress: &ProgressReporter) -> Result<PathBuf, DebianError> {
        let root = self.work.join("root");
        let apt_options = self.work.join("apt-options");
        write(&apt_options, &host_apt_options().await)?;
        let mut program = isolated("mmdebstrap", LIMIT)
            .arguments(["--mode=root", "--format=directory"])
            .argument(format!("--variant={}", self.variant))
            .argument(format!("--aptopt={}", apt_options.display()))
            .argument("--aptopt=APT::Install-Recommends \"false\"")
            .arguments(&self.options)
            .directory(self.work);
        if !self.packages.is_empty() {
            program = program.argument(format!("--include={}", self.packages.join(",")));
        }
        program = program.argument(RELEASE).argument(&root);
        for path in self.write_sources()? {
            program = program.argument(path);
        }
        program
            .run(|line| report(line, progress))
            .await
            .map_err(DebianError::Build)?;
        Ok(root)
    }

    fn write_sources(&self) -> Result<Vec<PathBuf>, DebianError> {
        let texts = [
            ("archives.sources", self.sources.stanza_text()),
            ("archives.list", self.sources.line_text()),
        ];
        let mut paths = Vec::new();
        for (name, text) in texts {
            if !text.is_empty() {
                let path = self.work.join(name);
                write(&path, &text)?;
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

/// A program in mount and process namespaces of its own. When it is killed the kernel ends
/// everything that it started and undoes its mounts, so that removing its directory can never
/// reach the host's `/dev` or `/proc` through one that was left.
fn isolated(name: &str, limit: Duration) -> Program {
    Program::new("unshare", limit)
        .arguments([
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--mount-proc",
        ])
        .arguments(["--fork", "--kill-child", "--", name])
}

/// How the host's own package manager reaches its archives: proxies and the like.
async fn host_apt_options() -> String {
    let mut text = String::new();
    let dump = Program::new("apt-config", QUESTION_LIMIT).argument("dump");
    let result = dump
        .run(|line| {
            if line.starts_with("Acquire::http::") || line.starts_with("Acquire::https::") {
                text.push_str(line);
                text.push('\n');
            }
        })
        .await;
    if let Err(error) = result {
        tracing::debug!(%error, "the host's package manager does not say how it is set up");
        return String::new();
    }
    text
}

fn report(line: &str, progress: &ProgressReporter) {
    if let Some((_, step, percent)) = STEPS.iter().find(|(start, ..)| line.starts_with(start)) {
        progress.report(step, *percent);
    }
}

fn write(path: &Path, text: &str) -> Result<(), DebianError> {
    std::fs::write(path, text).map_err(|source| DebianError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_only_grow() {
        assert!(STEPS.is_sorted_by_key(|(_, _, percent)| *percent));
    }
}
