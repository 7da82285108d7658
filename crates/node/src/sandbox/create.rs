//! From a record to a guest that runs user code.
//!
//! Each step that takes something notes it in the record before the next begins, so that whoever
//! finds the record after a crash can undo it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dayfly_guest_client::{AgentClient, CallError};
use dayfly_guest_proto::{AgentToken, Entropy, Identity, MachineId};
use dayfly_types::{Clock, limits};
use dayfly_vmm::{RestoreError, Vm};

use super::stages::Stages;
use crate::guest::{OpenAgentError, open_agent};
use crate::journal::{Journal, JournalError, SandboxRecord};
use crate::pool::{Parked, Pool, TakeError};
use crate::templates::ReadyTemplate;

/// Why a sandbox could not be created. The owner releases the slot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateError {
    #[error("no engine could be had")]
    Engine(#[source] TakeError),
    #[error("the journal could not be written")]
    Journal(#[source] JournalError),
    #[error("the snapshot could not be restored")]
    Restore(#[source] RestoreError),
    #[error("the guest did not answer after its restore")]
    Agent(#[source] OpenAgentError),
    #[error("the guest did not take its identity")]
    Identity(#[source] CallError),
    #[error("the guest's processes could not be thawed")]
    Thaw(#[source] CallError),
    #[error("no randomness could be had")]
    Randomness,
    #[error("the creation took longer than {0:?}")]
    TimedOut(Duration),
}

/// A machine whose guest has its identity and runs user code.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) vm: Box<dyn Vm>,
    pub(crate) agent: AgentClient,
    pub(crate) stages: Stages,
}

/// Where the engine may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supply {
    /// A parked one if there is one.
    Any,
    /// One started now: a parked one was found dead.
    FreshOnly,
}

/// Creates the machine that `record` describes, and keeps the record's slot and process true: the
/// slot is in the record before anything else is done with it.
pub(crate) async fn create(
    pool: &Arc<Pool>,
    journal: &Journal,
    record: &mut SandboxRecord,
    template: &Arc<ReadyTemplate>,
    clock: &dyn Clock,
    supply: Supply,
) -> Result<Created, CreateError> {
    let mut stages = Stages::begin();
    let parked = match supply {
        Supply::Any => pool.take(template).await,
        Supply::FreshOnly => pool.make(template).await,
    }
    .map_err(CreateError::Engine)?;
    note(journal, record, &parked)?;
    stages.end("engine");
    let slot = parked.slot;
    let vm = parked.vm.restore().await.map_err(CreateError::Restore)?;
    stages.end("restore");
    let agent = open_agent(&slot.run_directory, limits::AGENT_HANDSHAKE_DEADLINE)
        .await
        .map_err(CreateError::Agent)?;
    stages.end("agent");
    agent
        .identify(identity(record, clock)?)
        .await
        .map_err(CreateError::Identity)?;
    stages.end("identity");
    agent
        .thaw_at(unix_nanos(clock))
        .await
        .map_err(CreateError::Thaw)?;
    stages.end("thaw");
    Ok(Created { vm, agent, stages })
}

fn note(journal: &Journal, record: &mut SandboxRecord, parked: &Parked) -> Result<(), CreateError> {
    record.slot = Some(parked.slot.index);
    record.process = Some(parked.vm.process());
    journal.write(record).map_err(CreateError::Journal)
}

/// Everything that must differ between two guests of one snapshot.
fn identity(record: &SandboxRecord, clock: &dyn Clock) -> Result<Identity, CreateError> {
    let mut entropy = [0_u8; 32];
    getrandom::fill(&mut entropy).map_err(|_| CreateError::Randomness)?;
    let mut machine_id = [0_u8; 16];
    getrandom::fill(&mut machine_id).map_err(|_| CreateError::Randomness)?;
    Ok(Identity {
        sandbox_id: record.id.clone(),
        hostname: record.id.as_str().to_owned(),
        machine_id: MachineId::from_random(machine_id),
        wall_clock_unix_nanos: unix_nanos(clock),
        entropy: Entropy(entropy),
        agent_token: AgentToken::new(record.agent_token.clone()),
    })
}

/// Read as late as can be: every microsecond between here and the guest is an error of its clock.
fn unix_nanos(clock: &dyn Clock) -> u64 {
    let wall = clock
        .wall()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)
}
