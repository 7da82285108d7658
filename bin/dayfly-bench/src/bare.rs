//! The bare driver: the same engine, snapshot and guest agent, and nothing of the product around
//! them. No jail, slot, journal or API.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use dayfly_guest_client::AgentClient;
use dayfly_guest_proto::{AgentToken, Entropy, Identity, MachineId};
use dayfly_host::unix::connect_unix_within;
use dayfly_types::exec::ExecCommand;
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec};
use dayfly_types::{CellName, ExecId, SandboxId, limits};
use dayfly_vmm::{CpuWeight, Engine, ParkedVm, RestoreSpec, Slot, SlotProvider, Vm, file_names};
use tokio::net::UnixStream;

/// Starts machines of one template without the product.
#[derive(Debug)]
pub(crate) struct BareDriver {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) slots: Arc<dyn SlotProvider>,
    pub(crate) restore: RestoreSpec,
}

/// Where the clock of a sample starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockStart {
    /// At the start of the engine process.
    Engine,
    /// With the engine process already waiting.
    Load,
}

impl BareDriver {
    /// How long it takes to the answer of the first `true`.
    pub(crate) async fn sample(&self, from: ClockStart) -> Result<Duration> {
        let slot = self.slots.acquire().await.context("no slot")?;
        let outcome = self.sample_in(&slot, from).await;
        self.slots
            .release(slot.index)
            .await
            .context("cannot release")?;
        outcome
    }

    async fn sample_in(&self, slot: &Slot, from: ClockStart) -> Result<Duration> {
        let mut start = Instant::now();
        let parked = self
            .engine
            .park(slot, &self.restore)
            .await
            .context("cannot start")?;
        if from == ClockStart::Load {
            start = Instant::now();
        }
        first_true(parked, slot).await?;
        Ok(start.elapsed())
    }
}

/// A running guest without the product around it.
#[derive(Debug)]
pub(crate) struct BareMachine {
    slot: Slot,
    agent: AgentClient,
    _vm: Box<dyn Vm>,
}

impl BareMachine {
    /// Runs `true` over the agent channel.
    pub(crate) async fn run_true(&self) -> Result<()> {
        run_true(&self.agent).await
    }
}

impl BareDriver {
    /// Starts a machine and keeps it.
    pub(crate) async fn hold(&self) -> Result<BareMachine> {
        let slot = self.slots.acquire().await.context("no slot")?;
        match self.start_in(&slot).await {
            Ok((vm, agent)) => Ok(BareMachine {
                slot,
                agent,
                _vm: vm,
            }),
            Err(error) => {
                let _ = self.slots.release(slot.index).await;
                Err(error)
            }
        }
    }

    async fn start_in(&self, slot: &Slot) -> Result<(Box<dyn Vm>, AgentClient)> {
        let parked = self.engine.park(slot, &self.restore).await;
        let machine = ready(parked.context("cannot start")?, slot).await?;
        let weighed = self.slots.weigh_cpu(slot.index, CpuWeight::Running).await;
        weighed.context("cannot weigh its processor time")?;
        Ok(machine)
    }

    /// Ends a machine that was kept.
    pub(crate) async fn release(&self, machine: BareMachine) -> Result<()> {
        let index = machine.slot.index;
        drop(machine);
        self.slots.release(index).await.context("cannot release")
    }
}

async fn first_true(parked: Box<dyn ParkedVm>, slot: &Slot) -> Result<()> {
    let (_vm, agent) = ready(parked, slot).await?;
    run_true(&agent).await
}

/// Restores a machine until user code may run in it.
async fn ready(parked: Box<dyn ParkedVm>, slot: &Slot) -> Result<(Box<dyn Vm>, AgentClient)> {
    let vm = parked.restore().await.context("cannot restore")?;
    let agent = AgentClient::connect(
        connect(slot, file_names::CONTROL_SOCKET).await?,
        connect(slot, file_names::BULK_SOCKET).await?,
        limits::AGENT_HANDSHAKE_DEADLINE,
    )
    .await
    .context("the guest does not answer")?;
    agent.identify(identity()?).await.context("identify")?;
    agent.thaw_at(unix_nanos()?).await.context("thaw")?;
    Ok((vm, agent))
}

async fn run_true(agent: &AgentClient) -> Result<()> {
    let mut exec = agent.exec(true_spec()?).await.context("exec")?;
    while let Some(event) = exec.next().await.context("the exec broke off")? {
        if let ExecEvent::Exited(ExecEnd { exit, .. }) = event {
            if exit.code != 0 {
                bail!("true exited with {}", exit.code);
            }
            return Ok(());
        }
    }
    bail!("the exec ended without an exit")
}

fn true_spec() -> Result<ExecSpec> {
    let id = ExecId::from_random(random()?);
    Ok(ExecSpec::new(
        id,
        ExecCommand::Argv(vec!["true".to_owned()]),
    ))
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).context("no randomness")?;
    Ok(bytes)
}

fn unix_nanos() -> Result<u64> {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(u64::try_from(wall.as_nanos())?)
}

fn identity() -> Result<Identity> {
    let sandbox_id = SandboxId::from_random(&CellName::local(), random()?);
    Ok(Identity {
        hostname: sandbox_id.as_str().to_owned(),
        sandbox_id,
        machine_id: MachineId::from_random(random()?),
        wall_clock_unix_nanos: unix_nanos()?,
        entropy: Entropy(random()?),
        agent_token: AgentToken::new(hex::encode(random::<32>()?)),
        event: None,
        reseed_user_space: false,
    })
}

async fn connect(slot: &Slot, socket: &str) -> Result<UnixStream> {
    let path = slot.run_directory.join(socket);
    let stream = connect_unix_within(&path, limits::ENGINE_START_DEADLINE).await?;
    stream.set_nonblocking(true)?;
    Ok(UnixStream::from_std(stream)?)
}
