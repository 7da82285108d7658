//! Runs one command in a guest: `agent_call CONTROL BULK -- COMMAND [ARGUMENT ...]`.
//!
//! `CONTROL` and `BULK` are the unix sockets of the guest's two ports. The exit status is the one
//! of the command. With `--status`, `--quiesce` or `--thaw` in the place of `--` it does that.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dayfly_guest_client::{AgentClient, QuiesceSpec};
use dayfly_guest_proto::{AgentToken, Entropy, Identity, MachineId};
use dayfly_types::exec::ExecCommand;
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec};
use dayfly_types::{ExecId, SandboxId};
use tokio::net::UnixStream;

const CONNECT_DEADLINE: Duration = Duration::from_secs(120);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [control, bulk, action, command @ ..] = arguments.as_slice() else {
        return Err("usage: agent_call CONTROL BULK -- COMMAND [ARGUMENT ...]".into());
    };
    let start = Instant::now();
    let (control, bulk) = (
        UnixStream::connect(control).await?,
        UnixStream::connect(bulk).await?,
    );
    let client = AgentClient::connect(control, bulk, CONNECT_DEADLINE).await?;
    let mut errors = std::io::stderr();
    writeln!(
        errors,
        "agent_call: connected after {} ms",
        start.elapsed().as_millis()
    )?;
    match action.as_str() {
        "--status" => writeln!(errors, "{:?}", client.status().await?)?,
        "--quiesce" => client.quiesce(QuiesceSpec::default()).await?,
        "--thaw" => {
            writeln!(errors, "{:?}", client.identify(identity()?).await?)?;
            client.thaw().await?;
        }
        _ => {
            let code = run(&client, command).await?;
            writeln!(
                errors,
                "agent_call: done after {} ms",
                start.elapsed().as_millis()
            )?;
            return Ok(ExitCode::from(u8::try_from(code)?));
        }
    }
    writeln!(
        errors,
        "agent_call: done after {} ms",
        start.elapsed().as_millis()
    )?;
    Ok(ExitCode::SUCCESS)
}

async fn run(client: &AgentClient, command: &[String]) -> Result<i32, Box<dyn std::error::Error>> {
    let spec = ExecSpec::new(
        ExecId::parse("ex-call")?,
        ExecCommand::Argv(command.to_vec()),
    );
    let mut session = client.exec(spec).await?;
    while let Some(event) = session.next().await? {
        match event {
            ExecEvent::Stdout(bytes) => std::io::stdout().write_all(&bytes)?,
            ExecEvent::Stderr(bytes) => std::io::stderr().write_all(&bytes)?,
            ExecEvent::Gap(gap) => {
                writeln!(std::io::stderr(), "[{} bytes dropped]", gap.bytes)?;
            }
            ExecEvent::Exited(ExecEnd { exit, .. }) => {
                writeln!(std::io::stderr(), "agent_call: {:?}", exit.reason)?;
                return Ok(exit.code);
            }
        }
    }
    Err("the exec ended without an exit".into())
}

fn identity() -> Result<Identity, Box<dyn std::error::Error>> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(Identity {
        sandbox_id: SandboxId::parse("sb-local-example")?,
        hostname: "example".to_owned(),
        machine_id: MachineId::from_random([random[0]; 16]),
        wall_clock_unix_nanos: u64::try_from(clock.as_nanos())?,
        entropy: Entropy(random),
        agent_token: AgentToken::new("example"),
        event: None,
        reseed_user_space: false,
    })
}
