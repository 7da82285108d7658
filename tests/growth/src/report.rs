//! The table, and what in it has grown too much.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::times::Figures;

/// A call that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Call {
    Create,
    Get,
    GetOldest,
    FirstExec,
    Exec,
    Page,
    Delete,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::GetOldest => "get of the oldest",
            Self::FirstExec => "first exec",
            Self::Exec => "exec of `true`",
            Self::Page => "first page of the list (10)",
            Self::Delete => "delete",
        }
    }
}

/// What came of one number of sandboxes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) count: u32,
    pub(crate) running: u32,
    pub(crate) hot: BTreeMap<Call, Figures>,
    pub(crate) node_start_us: u64,
    pub(crate) adoption_us: u64,
    pub(crate) node_kib: u64,
    pub(crate) all_kib: u64,
    /// Unless only what callers wait for was measured.
    pub(crate) background: Option<Background>,
}

/// What goes on while nobody asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Background {
    pub(crate) metrics: Figures,
    pub(crate) sweep: Figures,
    pub(crate) exec_beside_sweeps: Figures,
    pub(crate) lateness: Figures,
    pub(crate) list_all_us: u64,
    pub(crate) idle_cpu_thousandths: u64,
}

impl Measured {
    fn each(&self, all: u64) -> f64 {
        ratio(all, u64::from(self.count))
    }
}

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share more or less of a figure"
)]
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "below a day")]
fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

fn both(figures: Figures) -> String {
    let (p50, p99) = (milliseconds(figures.p50_us), milliseconds(figures.p99_us));
    format!("{p50:.2} / {p99:.2}")
}

/// Calls whose p50 is more than `at_most` times that with the fewest sandboxes.
pub(crate) fn grown(all: &[Measured], at_most: f64) -> Vec<String> {
    let Some((first, others)) = all.split_first() else {
        return Vec::new();
    };
    let mut grown = Vec::new();
    for other in others {
        for (call, figures) in &other.hot {
            let Some(before) = first.hot.get(call) else {
                continue;
            };
            let times = ratio(figures.p50_us, before.p50_us);
            if times > at_most {
                let (name, count) = (call.name(), other.count);
                grown.push(format!("{name}: {times:.2} times at {count}"));
            }
        }
    }
    grown
}

/// The table in Markdown.
pub(crate) fn table(all: &[Measured]) -> Result<String> {
    let first = all.first().context("nothing was measured")?;
    let n = first.hot.values().map(|figures| figures.n).max();
    let mut text = String::new();
    writeln!(
        text,
        "Times in ms, p50 / p99; n = {} of each call. The real node over simulated machines and the \
         real control plane over HTTP, in one process on a real disk.\n",
        n.unwrap_or_default()
    )?;
    row(&mut text, "sandboxes", all, |one| one.count.to_string())?;
    writeln!(text, "|{}", " --- |".repeat(all.len() + 1))?;
    row(&mut text, "of which run", all, |one| {
        one.running.to_string()
    })?;
    for call in first.hot.keys() {
        row(&mut text, call.name(), all, |one| {
            one.hot.get(call).copied().map_or_else(String::new, both)
        })?;
        row(&mut text, "— p50, times the first", all, |one| {
            let times = one.hot.get(call).zip(first.hot.get(call));
            times.map_or_else(String::new, |(now, before)| {
                format!("{:.2}", ratio(now.p50_us, before.p50_us))
            })
        })?;
    }
    once(&mut text, all)?;
    if all.iter().all(|one| one.background.is_some()) {
        in_the_background(&mut text, all)?;
    }
    Ok(text)
}

fn once(text: &mut String, all: &[Measured]) -> Result<()> {
    row(text, "node's start after a crash, whole", all, |one| {
        format!("{:.1}", milliseconds(one.node_start_us))
    })?;
    row(text, "the same, µs for each sandbox", all, |one| {
        format!("{:.0}", one.each(one.node_start_us))
    })?;
    row(
        text,
        "adoption by an empty database, µs for each",
        all,
        |one| format!("{:.0}", one.each(one.adoption_us)),
    )?;
    row(text, "memory of the node, KiB for each", all, |one| {
        format!("{:.1}", one.each(one.node_kib))
    })?;
    row(
        text,
        "memory of node and control, KiB for each",
        all,
        |one| format!("{:.1}", one.each(one.all_kib)),
    )
}

fn in_the_background(text: &mut String, all: &[Measured]) -> Result<()> {
    let mut line = |name: &str, cell: fn(&Background) -> String| {
        row(text, name, all, |one| {
            one.background.as_ref().map_or_else(String::new, cell)
        })
    };
    line("exec beside comparisons without a pause", |one| {
        both(one.exec_beside_sweeps)
    })?;
    line("`/metrics` (n = 20)", |one| both(one.metrics))?;
    line("comparison of rows and node (n = 5)", |one| both(one.sweep))?;
    line("end after a time to live, late by (n = 20)", |one| {
        both(one.lateness)
    })?;
    line("whole list, in pages of 1000", |one| {
        format!("{:.1}", milliseconds(one.list_all_us))
    })?;
    line("CPU while nobody asks, % of one", |one| {
        format!("{:.1}", ratio(one.idle_cpu_thousandths, 10))
    })
}

fn row(
    text: &mut String,
    name: &str,
    all: &[Measured],
    cell: impl Fn(&Measured) -> String,
) -> Result<()> {
    write!(text, "| {name} |")?;
    for one in all {
        write!(text, " {} |", cell(one))?;
    }
    Ok(writeln!(text)?)
}
