//! What `dayflyd bench fork` answers.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use dayfly_api::Capture;
use serde::Serialize;

use crate::args::ForkBenchArguments;
use crate::environment::Environment;
use crate::figures::{Figures, mebibytes, median, round};
use crate::fork::Samples;
use crate::goal::Goal;

const PAUSE_RATIO_MAX: f64 = 1.25;
const CHILD_RATIO_MAX: f64 = 1.2;
const RAM_ADDED_RATIO_MAX: f64 = 0.1;

/// Everything that the bench found. The shape is documented; fields are only added. Where nothing
/// else is said, a figure is the median of its samples.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// How long the parent's engine stood still.
    pub(crate) pause_ms: f64,
    /// How long the parent's user processes did.
    pub(crate) frozen_ms: f64,
    /// What no pause of this parent can be shorter than: the engine's stop and its device state,
    /// and its changed memory and disk at the speed of a plain write.
    pub(crate) pause_floor_ms: f64,
    /// `pause_ms` over `pause_floor_ms`.
    pub(crate) pause_ratio: f64,
    pub(crate) pause_parts: PauseParts,
    pub(crate) floor_parts: FloorParts,
    pub(crate) write_mib_per_s: f64,
    /// From the end of the capture to the answer of the first `true`, of a child alone.
    pub(crate) child_ready_p50_ms: f64,
    pub(crate) child_ready_p99_ms: f64,
    /// As `bench create` measures it, in the same run.
    pub(crate) create_p50_ms: f64,
    /// `child_ready_p50_ms` over `create_p50_ms`.
    pub(crate) child_ratio: f64,
    /// Medians of the parts of `child_ready`, in milliseconds.
    pub(crate) child_parts: BTreeMap<String, f64>,
    /// What all children of one capture hold of guest memory for themselves.
    pub(crate) ram_added_mib: f64,
    /// `ram_added_mib` over `session_mib`.
    pub(crate) ram_added_ratio: f64,
    /// What the parent holds of guest memory for itself, once its session is set up.
    pub(crate) session_mib: f64,
    /// What a capture saved of memory, and of the disk.
    pub(crate) changed_mib: f64,
    pub(crate) changed_disk_mib: f64,
    pub(crate) pause: Figures,
    pub(crate) frozen: Figures,
    pub(crate) child_ready: Figures,
    pub(crate) create: Figures,
    pub(crate) goals: Vec<Goal>,
    pub(crate) children: u64,
    pub(crate) rounds: u64,
    /// How much the session's program was told to hold.
    pub(crate) session_mib_wanted: u64,
    #[serde(flatten)]
    pub(crate) environment: Environment,
    /// The type of the file system that captures are on.
    pub(crate) file_system: String,
    pub(crate) clock: Clock,
}

/// The parts of a pause, as the product reports them.
#[derive(Debug, Serialize)]
pub(crate) struct PauseParts {
    /// The engine's stop and its device state.
    pub(crate) device_ms: f64,
    pub(crate) memory_ms: f64,
    pub(crate) disk_ms: f64,
    /// None of the three: mostly the engine's start.
    pub(crate) rest_ms: f64,
}

/// The parts of the floor.
#[derive(Debug, Serialize)]
pub(crate) struct FloorParts {
    /// The same as in the pause.
    pub(crate) device_ms: f64,
    pub(crate) memory_ms: f64,
    pub(crate) disk_ms: f64,
}

/// Where each clock starts and stops.
#[derive(Debug, Serialize)]
pub(crate) struct Clock {
    pause: &'static str,
    frozen: &'static str,
    child_ready: &'static str,
    create: &'static str,
    ram_added: &'static str,
}

const CLOCK: Clock = Clock {
    pause: "from the command that stops the engine to the answer of the one that starts it, on \
            the host, as the capture reports it",
    frozen: "from the call that freezes user processes to the answer of the one that thaws them",
    child_ready: "from sending POST fork of one child to the answer of POST exec `true` in it, \
                  over HTTP, less the capture's own `total_ms`",
    create: "from sending POST /v1/sandboxes to the answer of POST exec `true`, over HTTP",
    ram_added: "anonymous pages of guest memory in each engine, a second after the answer of its \
                first `true`",
};

impl Report {
    pub(crate) fn of(
        samples: &Samples,
        arguments: &ForkBenchArguments,
        environment: Environment,
        file_system: String,
    ) -> Result<Self> {
        let middle = |values: &[f64]| median(values).context("no samples");
        let of = |figure: fn(&Capture) -> f64| captured(samples, figure);
        let pause = figures(&of(|capture| capture.pause_ms))?;
        let frozen = figures(&of(|capture| capture.frozen_ms))?;
        let child_ready = Figures::of(&samples.children_ready).context("no children")?;
        let create = Figures::of(&samples.creates).context("no creates")?;
        let speed = middle(&samples.write_speeds)?;
        let floor = median_of(samples, |capture| floor_ms(capture, speed))?;
        let session_mib = middle(&samples.sessions)?;
        let ram_added_mib = middle(&samples.ram_added)?;
        let pause_ratio = round(pause.p50_ms / floor);
        let child_ratio = round(child_ready.p50_ms / create.p50_ms);
        let ram_added_ratio = round(ram_added_mib / session_mib);
        Ok(Self {
            pause_ms: pause.p50_ms,
            frozen_ms: frozen.p50_ms,
            pause_floor_ms: floor,
            pause_ratio,
            pause_parts: PauseParts::of(samples)?,
            floor_parts: FloorParts::of(samples, speed)?,
            write_mib_per_s: speed,
            child_ready_p50_ms: child_ready.p50_ms,
            child_ready_p99_ms: child_ready.p99_ms,
            create_p50_ms: create.p50_ms,
            child_ratio,
            child_parts: samples.child_parts.medians_ms(),
            ram_added_mib,
            ram_added_ratio,
            session_mib,
            changed_mib: median_of(samples, |capture| mebibytes(capture.memory_bytes))?,
            changed_disk_mib: median_of(samples, |capture| mebibytes(capture.disk_bytes))?,
            pause,
            frozen,
            child_ready,
            create,
            goals: vec![
                Goal::at_most("pause_ratio", PAUSE_RATIO_MAX, pause_ratio),
                Goal::at_most("child_ratio", CHILD_RATIO_MAX, child_ratio),
                Goal::at_most("ram_added_ratio", RAM_ADDED_RATIO_MAX, ram_added_ratio),
            ],
            children: arguments.children,
            rounds: arguments.rounds,
            session_mib_wanted: arguments.session_mib,
            environment,
            file_system,
            clock: CLOCK,
        })
    }
}

impl PauseParts {
    fn of(samples: &Samples) -> Result<Self> {
        Ok(Self {
            device_ms: median_of(samples, |capture| capture.device_ms)?,
            memory_ms: median_of(samples, |capture| capture.memory_ms)?,
            disk_ms: median_of(samples, |capture| capture.disk_ms)?,
            rest_ms: median_of(samples, |capture| {
                capture.pause_ms - capture.device_ms - capture.memory_ms - capture.disk_ms
            })?,
        })
    }
}

impl FloorParts {
    fn of(samples: &Samples, speed: f64) -> Result<Self> {
        Ok(Self {
            device_ms: median_of(samples, |capture| capture.device_ms)?,
            memory_ms: median_of(samples, |capture| write_ms(capture.memory_bytes, speed))?,
            disk_ms: median_of(samples, |capture| write_ms(capture.disk_bytes, speed))?,
        })
    }
}

fn floor_ms(capture: &Capture, speed: f64) -> f64 {
    capture.device_ms + write_ms(capture.memory_bytes + capture.disk_bytes, speed)
}

/// How long a plain write of so many bytes takes.
fn write_ms(bytes: u64, mib_per_second: f64) -> f64 {
    mebibytes(bytes) / mib_per_second * 1000.0
}

fn captured(samples: &Samples, figure: impl Fn(&Capture) -> f64) -> Vec<f64> {
    samples.captures.iter().map(figure).collect()
}

fn median_of(samples: &Samples, figure: impl Fn(&Capture) -> f64) -> Result<f64> {
    median(&captured(samples, figure)).context("no captures")
}

fn figures(milliseconds: &[f64]) -> Result<Figures> {
    Figures::of_milliseconds(milliseconds).context("no captures")
}

/// For a person.
pub(crate) fn render(report: &Report) -> String {
    let mut text = report.pause.line("pause");
    let (pause, floor) = (&report.pause_parts, &report.floor_parts);
    text.push_str(&format!(
        "  device {:.1} ms, memory {:.1} ms, disk {:.1} ms, rest {:.1} ms\n",
        pause.device_ms, pause.memory_ms, pause.disk_ms, pause.rest_ms
    ));
    text.push_str(&format!(
        "floor        {:.1} ms: device {:.1} ms, {:.0} MiB of memory {:.1} ms, {:.1} MiB of disk \
         {:.1} ms, at {:.0} MiB/s\n",
        report.pause_floor_ms,
        floor.device_ms,
        report.changed_mib,
        floor.memory_ms,
        report.changed_disk_mib,
        floor.disk_ms,
        report.write_mib_per_s
    ));
    text.push_str(&report.frozen.line("frozen"));
    text.push_str(&report.child_ready.line("child ready"));
    for (part, milliseconds) in &report.child_parts {
        text.push_str(&format!("  {part:<16} {milliseconds:>8.1} ms\n"));
    }
    text.push_str(&report.create.line("create"));
    text.push_str(&format!(
        "{} children add {:.1} MiB to a session of {:.1} MiB\n",
        report.children, report.ram_added_mib, report.session_mib
    ));
    for goal in &report.goals {
        text.push_str(&goal.line());
    }
    text.push_str(&report.environment.line());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_device_state_and_a_plain_write() {
        let capture = Capture {
            device_ms: 20.0,
            memory_bytes: 300 << 20,
            disk_bytes: 100 << 20,
            ..Capture::default()
        };
        assert_eq!(floor_ms(&capture, 1000.0), 420.0);
    }
}
