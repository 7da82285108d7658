//! The fake guest is frozen, copied and thawed as the real agent is: these claims are the ones of
//! `pause` in the tests of `dayfly-guest`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test must fail the test"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dayfly_guest_client::{AgentClient, CallError, DiskMount, ExecSession, QuiesceSpec};
use dayfly_guest_proto::{AgentToken, Entropy, GuestErrorCode, GuestState, Identity, MachineId};
use dayfly_testkit::FakeGuest;
use dayfly_types::exec::ExecCommand;
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec};
use dayfly_types::{ExecId, SandboxId};
use tokio::net::UnixStream;

const DEADLINE: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_millis(300);

async fn connect(guest: &FakeGuest) -> AgentClient {
    let (control, control_guest) = UnixStream::pair().unwrap();
    let (bulk, bulk_guest) = UnixStream::pair().unwrap();
    let guest = guest.clone();
    tokio::spawn(async move { guest.serve(control_guest, bulk_guest).await });
    AgentClient::connect(control, bulk, DEADLINE).await.unwrap()
}

fn identity() -> Identity {
    Identity {
        sandbox_id: SandboxId::parse("sb-local-0123456789abcdefghjkmnpqrs").unwrap(),
        hostname: "box".to_owned(),
        machine_id: MachineId::from_random([1; 16]),
        wall_clock_unix_nanos: 0,
        entropy: Entropy([2; 32]),
        agent_token: AgentToken::new("token"),
        event: None,
        reseed_user_space: false,
    }
}

fn with_lease() -> QuiesceSpec {
    QuiesceSpec {
        lease: Some(LEASE),
        mark: Some([3; 32]),
    }
}

/// Each command has an id of its own.
static EXECS: AtomicU32 = AtomicU32::new(0);

async fn exec(client: &AgentClient, line: &str) -> ExecSession {
    let command = ExecCommand::Shell(line.to_owned());
    let number = EXECS.fetch_add(1, Ordering::Relaxed);
    let spec = ExecSpec::new(ExecId::parse(&format!("ex-{number}")).unwrap(), command);
    client.exec(spec).await.unwrap()
}

async fn exit_code(mut session: ExecSession) -> i32 {
    while let Some(event) = session.next().await.unwrap() {
        if let ExecEvent::Exited(ExecEnd { exit, .. }) = event {
            return exit.code;
        }
    }
    panic!("no exit");
}

fn refusal<T: std::fmt::Debug>(result: Result<T, CallError>) -> GuestErrorCode {
    match result {
        Err(CallError::Refused(error)) => error.code,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn conversation_outlives_a_quiesce_and_its_calls_wait_for_the_thaw() {
    let guest = FakeGuest::booted();
    let client = connect(&guest).await;
    let hanging = exec(&client, "hang").await;
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { exit_code(exec(&client, "exit 7").await).await }
    });
    tokio::time::sleep(LEASE).await;
    assert!(!waiting.is_finished());
    assert_eq!(client.activity().await.unwrap().execs, 1);
    client.thaw().await.unwrap();
    assert_eq!(waiting.await.unwrap(), 7);
    hanging.signal(15).await.unwrap();
    assert_eq!(exit_code(hanging).await, 143);
}

#[tokio::test]
async fn copy_needs_an_identity_and_goes_on_with_what_ran() {
    let guest = FakeGuest::booted();
    let client = connect(&guest).await;
    let _hanging = exec(&client, "hang").await;
    client.quiesce(with_lease()).await.unwrap();
    let copy = guest.copy();
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(guest.state(), GuestState::Running, "the lease is over");
    assert_eq!(copy.state(), GuestState::Quiesced, "but not for a copy");
    let child = connect(&copy).await;
    assert_eq!(copy.state(), GuestState::Quarantined);
    assert_eq!(refusal(child.thaw().await), GuestErrorCode::WrongState);
    child.identify(identity()).await.unwrap();
    child.thaw().await.unwrap();
    assert_eq!(copy.state(), GuestState::Running);
    assert_eq!((guest.running_execs(), copy.running_execs()), (1, 1));
    assert_eq!(child.activity().await.unwrap().execs, 1);
    assert_eq!(copy.sandbox_id(), Some(identity().sandbox_id));
    assert_eq!(guest.sandbox_id(), None);
}

#[tokio::test]
async fn host_that_died_in_a_capture_leaves_execs_and_a_guest_that_goes_on() {
    let guest = FakeGuest::booted();
    let client = connect(&guest).await;
    let hanging = exec(&client, "hang").await;
    client.quiesce(with_lease()).await.unwrap();
    drop((hanging, client));
    let next = connect(&guest).await;
    // A slow host may see the lease run out first.
    assert_ne!(guest.state(), GuestState::Quiesced);
    let end = tokio::time::Instant::now() + DEADLINE;
    while guest.state() != GuestState::Running {
        assert!(tokio::time::Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(exit_code(exec(&next, "true").await).await, 0);
    assert_eq!(guest.running_execs(), 1);
}

#[tokio::test]
async fn volumes_are_mounted_until_they_are_unmounted_and_not_while_busy() {
    let guest = FakeGuest::restored();
    let client = connect(&guest).await;
    let volume = |serial: &str| DiskMount {
        serial: serial.to_owned(),
        path: "/volumes/a".to_owned(),
        read_only: true,
        expect_bytes: Some(1),
    };
    client.mount_volume(volume("spare0")).await.unwrap();
    client.mount_volume(volume("spare0")).await.unwrap();
    assert!(guest.volume("/volumes/a").unwrap().read_only);
    let other = client.mount_volume(volume("spare1")).await;
    assert_eq!(refusal(other), GuestErrorCode::Exists);
    guest.set_volume_busy("/volumes/a", true);
    let busy = client.unmount_volume("/volumes/a").await;
    assert_eq!(refusal(busy), GuestErrorCode::Busy);
    guest.set_volume_busy("/volumes/a", false);
    client.unmount_volume("/volumes/a").await.unwrap();
    client.unmount_volume("/volumes/a").await.unwrap();
    assert_eq!(guest.volume("/volumes/a"), None);
    client.grow_disk(5 << 30).await.unwrap();
    assert_eq!(guest.disk_bytes(), Some(5 << 30));
    guest.set_busy(DEADLINE);
    let busy_ms = client.activity().await.unwrap().busy_ms;
    assert!((1000..=30_000).contains(&busy_ms));
}
