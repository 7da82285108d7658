use std::fs::File;
use std::io::Write;

use crate::clock::uptime_ms;

/// Writes one line to the kernel's console. Failure has nowhere to be told.
pub(super) fn say(text: &str) {
    let ms = uptime_ms();
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = writeln!(
            console,
            "dayfly-guest [{}.{:03}] {text}",
            ms / 1000,
            ms % 1000
        );
    }
}
