//! Conversations begin and end: after garbage, after a dead host, one after the other.

use std::io::Write;

use crate::support::{Guest, identity, run, shell, within};
use dayfly_guest_client::{CallError, ConversationLost};
use dayfly_guest_proto::{FrameEncoder, GuestErrorCode, GuestState, Nonce, Opening, PortRole};

#[tokio::test]
async fn two_conversations_one_after_the_other() {
    let guest = Guest::start();
    let first = guest.connect().await;
    let session = first.exec(shell("sleep 1000; true")).await.unwrap();
    let pid = session.pid();
    let second = guest.connect().await;
    assert_eq!(
        run(&second, shell("echo second")).await.stdout_text(),
        "second\n"
    );
    // What the old one started goes on.
    assert!(Guest::is_alive(pid));
    assert_eq!(second.activity().await.unwrap().execs, 1);
}

#[tokio::test]
async fn garbage_on_both_ports_does_not_keep_a_host_out() {
    let mut guest = Guest::start();
    guest.control.write_all(&[0xDF; 5000]).unwrap();
    guest
        .bulk
        .write_all(b"\xDFdayfly-opening\nbut then something else")
        .unwrap();
    let client = guest.connect().await;
    assert_eq!(run(&client, shell("echo in")).await.stdout_text(), "in\n");
}

#[tokio::test]
async fn dead_half_frame_does_not_keep_a_host_out() {
    let mut guest = Guest::start();
    for port in [PortRole::Control, PortRole::Bulk] {
        let nonce = Nonce([7; 16]);
        let mut bytes = Opening::new(nonce, port).encode().to_vec();
        FrameEncoder::new(nonce.session_tag()).control(&[1; 60_000], &mut bytes);
        let socket = if port == PortRole::Control {
            &mut guest.control
        } else {
            &mut guest.bulk
        };
        socket.write_all(&bytes[..100]).unwrap();
    }
    let client = guest.connect().await;
    assert_eq!(run(&client, shell("echo in")).await.stdout_text(), "in\n");
}

#[tokio::test]
async fn first_boot_is_running_and_tells_about_itself() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let status = client.status().await.unwrap();
    assert_eq!((status.state, status.generation), (GuestState::Running, 1));
    assert_eq!(status.boot_id.len(), 36);
    assert!(status.uptime_ms > 0);
}

#[tokio::test]
async fn bad_host_name_is_refused() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut bad = identity();
    bad.hostname = "a b\n127.0.0.1 evil".to_owned();
    let Err(CallError::Refused(error)) = client.identify(bad).await else {
        panic!("not refused");
    };
    assert_eq!(error.code, GuestErrorCode::Invalid);
}

#[tokio::test]
async fn vanished_guest_ends_the_conversation() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut session = client.exec(shell("sleep 1000")).await.unwrap();
    drop(guest);
    let lost = within(client.closed()).await;
    assert!(
        matches!(lost, ConversationLost::PortClosed { .. }),
        "{lost:?}"
    );
    assert!(within(session.next()).await.is_err());
    assert!(matches!(client.status().await, Err(CallError::Lost(_))));
}

#[tokio::test]
async fn ports_of_two_hosts_make_no_conversation() {
    let mut guest = Guest::start();
    let (mine, other) = (Nonce([3; 16]), Nonce([4; 16]));
    guest
        .bulk
        .write_all(&Opening::new(other, PortRole::Bulk).encode())
        .unwrap();
    guest
        .control
        .write_all(&Opening::new(mine, PortRole::Control).encode())
        .unwrap();
    let mut call = Vec::new();
    let status = br#"{"call":1,"request":{"kind":"status"}}"#;
    FrameEncoder::new(mine.session_tag()).control(status, &mut call);
    guest.control.write_all(&call).unwrap();
    // The stray call is dropped, and a host that opens both ports gets only its own answers.
    let client = guest.connect().await;
    assert_eq!(client.status().await.unwrap().state, GuestState::Running);
}
