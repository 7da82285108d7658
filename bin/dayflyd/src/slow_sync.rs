//! For tests of a slow disk: makes every sync of this process take longer.
//!
//! `DAYFLY_SLOW_SYNC_FILE` names a file. While it holds a number, each sync takes that many
//! milliseconds more. Without the variable nothing is looked at.

use std::path::{Path, PathBuf};
use std::time::Duration;

const VARIABLE: &str = "DAYFLY_SLOW_SYNC_FILE";
/// A sync that never ends is another test than this one.
const DELAY_MAX: Duration = Duration::from_secs(60);

pub(crate) fn delay_from_environment() {
    if let Some(file) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        dayfly_host::files::delay_syncs(move || delay(&file));
    }
}

fn delay(file: &Path) -> Duration {
    let order = std::fs::read_to_string(file).unwrap_or_default();
    let milliseconds = order.trim().parse().unwrap_or(0);
    Duration::from_millis(milliseconds).min(DELAY_MAX)
}
