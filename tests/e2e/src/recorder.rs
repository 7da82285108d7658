//! What programs in jails really ask the kernel for, from their first instruction on.
//!
//! Programs are copied beside a launcher that runs the real one under a tracer. The tracer follows
//! it into its namespaces and changes nothing but the time that everything takes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::Setting;

const TRACER: &str = "/usr/bin/strace";
const LAUNCHER: &str = "dayfly-jail";
const TRACED: &str = "dayfly-jail-itself";

/// A copy of the programs under test that leaves a record of every jail.
#[derive(Debug)]
pub struct Recorder {
    directory: TempDir,
}

/// Calls by name; `ioctl`, `fcntl` and `prctl` with their command.
pub type Calls = BTreeSet<String>;

impl Recorder {
    /// `None` where there is no tracer.
    ///
    /// # Errors
    /// When the programs cannot be copied.
    pub fn new(setting: &Setting) -> Result<Option<Self>> {
        if !Path::new(TRACER).exists() {
            return Ok(None);
        }
        let directory = tempfile::Builder::new()
            .prefix("recorder-")
            .tempdir_in("/var/tmp")?;
        let recorder = Self { directory };
        std::fs::create_dir(recorder.programs())?;
        std::fs::create_dir(recorder.records())?;
        for entry in std::fs::read_dir(&setting.programs)? {
            let entry = entry?;
            let name = match entry.file_name() {
                name if name == LAUNCHER => TRACED.into(),
                name => name,
            };
            std::fs::copy(entry.path(), recorder.programs().join(name))?;
        }
        recorder.write_launcher()?;
        Ok(Some(recorder))
    }

    fn programs(&self) -> PathBuf {
        self.directory.path().join("programs")
    }

    fn records(&self) -> PathBuf {
        self.directory.path().join("records")
    }

    /// The tracer makes itself a grandchild, so that the launch ends as it does without it.
    fn write_launcher(&self) -> Result<()> {
        let launcher = self.programs().join(LAUNCHER);
        let text = format!(
            "#!/bin/sh\nexec {TRACER} -D -f -qq -s 0 -o {}/$$ {}\n",
            self.records().display(),
            self.programs().join(TRACED).display(),
        );
        std::fs::write(&launcher, text)?;
        std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// The same setting with the programs that leave a record.
    #[must_use]
    pub fn setting(&self, setting: &Setting) -> Setting {
        Setting {
            programs: self.programs(),
            ..setting.clone()
        }
    }

    /// What was called, by the name of the program that was executed in the jail.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn calls(&self) -> Result<BTreeMap<String, Calls>> {
        let mut found: BTreeMap<String, Calls> = BTreeMap::new();
        for entry in std::fs::read_dir(self.records())? {
            let bytes = std::fs::read(entry?.path())?;
            let (program, calls) =
                read(&String::from_utf8_lossy(&bytes)).context("a record without a program")?;
            found.entry(program).or_default().extend(calls);
        }
        Ok(found)
    }
}

/// One record: lines of a pid and a call. The first pid is the launcher's, and what the second one
/// called before it executed the program is the launcher's as well.
fn read(text: &str) -> Option<(String, Calls)> {
    let lines = text.lines().filter_map(|line| {
        let (pid, rest) = line.split_once(' ')?;
        Some((pid, rest.trim_start()))
    });
    let launcher = lines.clone().next()?.0;
    let mut inside = lines.filter(|(pid, _)| *pid != launcher);
    let executed = inside.find(|(_, rest)| rest.starts_with("execve("))?.1;
    let program = executed.split('"').nth(1)?.rsplit('/').next()?.to_owned();
    let mut calls: Calls = inside.filter_map(|(_, rest)| name_of(rest)).collect();
    calls.insert("execve".to_owned());
    Some((program, calls))
}

fn name_of(rest: &str) -> Option<String> {
    let (name, arguments) = rest.split_once('(')?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let command = match name {
        "ioctl" | "fcntl" => arguments.split([',', ')']).nth(1),
        "prctl" => arguments.split([',', ')']).next(),
        _ => None,
    };
    Some(match command.map(str::trim) {
        Some(command) => {
            let command = command.split(' ').next().unwrap_or(command);
            format!("{name} {command}")
        }
        None => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "\
10 openat(AT_FDCWD, \"\"..., O_RDONLY) = 3
11 mount(\"\"..., \"\"..., NULL, MS_BIND, NULL) = 0
11 execve(\"/usr/bin/engine\", [\"\"...], 0x5 /* 0 vars */) = 0
12 ioctl(8, TUNSETIFF, 0x7ffec3688f60) = 0
11 prctl(PR_SET_TIMERSLACK, 1) = 0
11 <... futex resumed>) = 0
11 fcntl(9, F_GETFL <unfinished ...>
11 +++ exited with 0 +++
";

    #[test]
    fn what_the_launcher_did_does_not_count() {
        let (program, calls) = read(RECORD).unwrap();
        assert_eq!(program, "engine");
        let wanted = [
            "execve",
            "fcntl F_GETFL",
            "ioctl TUNSETIFF",
            "prctl PR_SET_TIMERSLACK",
        ];
        assert_eq!(calls.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    }
}
