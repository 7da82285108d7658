//! Real sandboxes through the public door: what a customer sees, and what the kernel says.
//!
//! The tests need root, an engine and a baked `base` template. `DAYFLY_E2E_TEMPLATES` names a data
//! directory that has one (`.ci/run` makes it) and `DAYFLY_E2E_PROGRAMS` the directory of the built
//! programs. Without them every test says that it was skipped; `.ci/run` always sets both.
#![forbid(unsafe_code)]

pub mod daemon;
pub mod engine;
pub mod guest;
pub mod jailed;
pub mod keeper;
pub mod pattern;
pub mod processes;
pub mod recorder;
pub mod screen;
pub mod small_disk;
pub mod times;
pub mod wait;

pub use daemon::{Daemon, DaemonOptions, mounted_below};
pub use guest::{create, exec, exec_as_root, output, output_of_root, refusal, shell};
pub use times::Times;
pub use wait::{patience, patient, until};

use std::path::PathBuf;

/// What the tests run with.
#[derive(Debug, Clone)]
pub struct Setting {
    /// A data directory with baked templates.
    pub templates: PathBuf,
    /// Where `dayfly` and `dayflyd` are.
    pub programs: PathBuf,
}

/// The setting, or `None` when this machine has not been prepared.
#[must_use]
pub fn setting() -> Option<Setting> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (templates, programs) = (path("DAYFLY_E2E_TEMPLATES"), path("DAYFLY_E2E_PROGRAMS"));
    match (templates, programs) {
        (Some(templates), Some(programs)) => Some(Setting {
            templates,
            programs,
        }),
        _ => None,
    }
}

/// Leaves the test when the machine has not been prepared.
#[macro_export]
macro_rules! setting_or_skip {
    () => {
        match $crate::setting() {
            Some(setting) => setting,
            None if std::env::var_os("DAYFLY_REQUIRE_VM").is_some() => {
                anyhow::bail!("DAYFLY_E2E_TEMPLATES and DAYFLY_E2E_PROGRAMS are not set");
            }
            None => {
                eprintln!("skipped: DAYFLY_E2E_TEMPLATES and DAYFLY_E2E_PROGRAMS are not set");
                return Ok(());
            }
        }
    };
}

/// Writes a measured figure to the test's output.
#[macro_export]
macro_rules! figure {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        // A closed output must not fail a test.
        let _ = writeln!(std::io::stdout(), $($part)*);
    }};
}
