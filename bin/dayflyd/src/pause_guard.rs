//! The process that lets an engine run again when the node dies while it is paused.
//!
//! It waits for its standard input to end. A word before the end means that all is well; silence
//! means that whoever stopped the engine is gone.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use dayfly_installation::runtime;
use dayfly_node::pause_guard::ALL_IS_WELL;
use dayfly_vmm::{Engine as _, EngineProcess, EngineView, Slot, SlotIndex};

use crate::args::GuardArguments;
use crate::engine;

/// The hidden command by which the daemon starts this.
pub(crate) const COMMAND: &str = "guard-pause";

/// Waits, and resumes the engine if nobody else will.
pub(crate) fn run(arguments: &GuardArguments) -> Result<()> {
    let mut said = Vec::new();
    // An input that breaks is an input that has ended.
    let _ = std::io::stdin().take(1).read_to_end(&mut said);
    if said == [ALL_IS_WELL] {
        return Ok(());
    }
    let slot = Slot {
        index: SlotIndex(arguments.slot),
        run_directory: arguments.run_directory.clone(),
        engine_run_directory: PathBuf::from("/run"),
        engine_view: EngineView::Jailed,
    };
    let process = EngineProcess {
        pid: arguments.pid,
        start_time_ticks: arguments.start_time_ticks,
    };
    runtime::block_on(async {
        let engine = engine::for_adoption()?;
        let vm = engine.adopt(&slot, process).await;
        let mut vm = vm.context("cannot find the engine")?;
        vm.resume().await.context("cannot resume the engine")
    })
}
