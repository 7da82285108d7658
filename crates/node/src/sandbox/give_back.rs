//! Giving memory that the guest has freed back to the host, while the sandbox runs.
//!
//! ```text
//! note what is written        user code runs
//! ask which pages are free    user code runs; a look at all pages by the guest's agent
//! discard them                the engine stands still for moments
//! ```
//! Nothing of it is activity of the sandbox, and a failure leaves it as it was. ADR 0050.

use dayfly_guest_client::AgentClient;
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, limits};
use dayfly_vmm::{FrameRange, GiveBackError, GivenBack};
use tokio::time::timeout;

use super::Activity;
use super::handle::wrong_state;
use super::owner::Owner;

const WHAT: &str = "memory could not be given back";

impl Owner {
    /// Gives back what is free, if it is enough. `None`: this machine or its agent cannot.
    pub(super) async fn give_back(&mut self) -> Result<Option<GivenBack>, NodeError> {
        if self.room.is_waiting() {
            return Err(super::waits_for_room());
        }
        let agent = self.running_agent()?;
        let slot = self.slot().await?;
        let memory_bytes = self.record.machine.memory.bytes();
        let state = self.record.state();
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        let process = vm.process();
        let noted = vm.note_writes(memory_bytes).await;
        if !noted.map_err(|error| failed(&error))? {
            return Ok(None);
        }
        let upkeep = Activity::before_upkeep(process.pid);
        let free = free_frames(&agent).await;
        if let Some(upkeep) = upkeep {
            self.activity.after_upkeep(upkeep);
        }
        let free = free?;
        self.guard = Some(self.parts.pause_guard.watch(&slot, process));
        let given = self.discard(&free).await;
        self.release_guard().await;
        given.map(Some)
    }

    async fn discard(&mut self, free: &[FrameRange]) -> Result<GivenBack, NodeError> {
        let state = self.record.state();
        let vm = self.vm.as_mut().ok_or_else(|| wrong_state(state))?;
        let work = vm.give_back(free, limits::GIVE_BACK_LEAST_BYTES);
        let given = timeout(limits::GIVE_BACK_DEADLINE, work).await;
        let given = given.unwrap_or(Err(GiveBackError::TimedOut(limits::GIVE_BACK_DEADLINE)));
        let error = match given {
            Ok(given) => return Ok(given),
            Err(error) => error,
        };
        // One that stands still for another reason is let go by whoever knows that reason.
        let is_ours = !matches!(error, GiveBackError::NotRunning | GiveBackError::Gone);
        if is_ours && let Err(error) = vm.resume().await {
            let error = crate::error_chain(&error);
            tracing::error!(sandbox_id = %self.record.id, error, "cannot resume");
        }
        Err(failed(&error))
    }
}

async fn free_frames(agent: &AgentClient) -> Result<Vec<FrameRange>, NodeError> {
    let asked = agent.free_pages(limits::FREE_BLOCK_PAGES, limits::FREE_RANGES_MAX);
    let told = match timeout(limits::FREE_PAGES_DEADLINE, asked).await {
        Ok(Ok(told)) => told,
        Ok(Err(error)) => return Err(unavailable(&crate::error_chain(&error))),
        Err(_) => return Err(unavailable("it did not say in time which pages are free")),
    };
    let frames = told.into_iter().map(|range| FrameRange {
        first: range.first,
        count: range.count,
    });
    Ok(frames.collect())
}

fn unavailable(why: &str) -> NodeError {
    NodeError::new(ErrorCode::GuestUnavailable, format!("{WHAT}: {why}"))
}

fn failed(error: &GiveBackError) -> NodeError {
    NodeError::internal(format!("{WHAT}: {}", crate::error_chain(error)))
}
