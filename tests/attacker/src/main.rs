//! Reads a file with a list of probes and prints a report of each, one a line, in order.
#![forbid(unsafe_code)]

use std::io::Write as _;

use anyhow::{Context as _, Result};
use dayfly_attacker::{Probe, run};

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).context("which file?")?;
    let text = std::fs::read(path).context("cannot read the probes")?;
    let probes: Vec<Probe> = serde_json::from_slice(&text).context("these are no probes")?;
    for probe in &probes {
        let line = serde_json::to_string(&run(probe))?;
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}
