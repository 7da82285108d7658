//! For crash tests: ends this process by SIGKILL at a chosen effect on the world.
//!
//! `DAYFLY_CRASH_FILE` names a file. When it holds a number at an effect's point, that many points
//! are let through and the next one kills the process; the file is emptied first, so that the next
//! start goes on. While the file holds `record`, the points are appended to `FILE.points` instead.
//! Without the variable nothing is looked at.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use dayfly_node::{Effects, Point};
use rustix::process::{Signal, getpid, kill_process};

const VARIABLE: &str = "DAYFLY_CRASH_FILE";
const RECORD: &str = "record";
/// No number was read yet.
const UNARMED: i64 = -1;

pub(crate) fn effects_from_environment() -> Effects {
    let Some(file) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return Effects::default();
    };
    let left = AtomicI64::new(UNARMED);
    Effects::observed_by(Arc::new(move |point| look(&file, &left, point)))
}

fn look(file: &Path, left: &AtomicI64, point: Point) {
    if left.load(Ordering::SeqCst) == UNARMED {
        let order = std::fs::read_to_string(file).unwrap_or_default();
        let order = order.trim();
        if order == RECORD {
            record(file, point);
            return;
        }
        let Ok(count) = order.parse() else {
            return;
        };
        left.store(count, Ordering::SeqCst);
    }
    if left.fetch_sub(1, Ordering::SeqCst) == 0 {
        // Emptied before the end: the next life of the node must not die of the same order.
        let _ = std::fs::write(file, "");
        let _ = std::fs::write(file.with_extension("died"), point.to_string());
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

fn record(file: &Path, point: Point) {
    let points = file.with_extension("points");
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(points);
    if let Ok(mut points) = opened {
        let _ = writeln!(points, "{point}");
    }
}
