//! A conversation starts anew whatever bytes are left over from the former one.

use dayfly_guest_proto::frame::FRAME_BYTES_MAX;
use dayfly_guest_proto::{
    Frame, FrameEncoder, GuestPort, HostPort, Nonce, Opening, Pairing, PortRole, Received,
};
use proptest::prelude::*;

const OLD: Nonce = Nonce([1; 16]);
const NEW: Nonce = Nonce([2; 16]);

fn drain(port: &mut GuestPort) -> Vec<Received> {
    std::iter::from_fn(|| port.next()).collect()
}

fn opening(nonce: Nonce) -> Opening {
    Opening::new(nonce, PortRole::Control)
}

/// A guest that is in the middle of the old conversation.
fn conversing() -> GuestPort {
    let mut port = GuestPort::new(PortRole::Control);
    port.push(&opening(OLD).encode());
    assert_eq!(drain(&mut port), vec![Received::Opened(opening(OLD))]);
    port
}

fn control_frame(nonce: Nonce, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameEncoder::new(nonce.session_tag()).control(message, &mut out);
    out
}

#[test]
fn opening_at_a_frame_boundary_starts_a_new_conversation() {
    let mut port = conversing();
    port.push(&control_frame(OLD, b"hello"));
    port.push(&opening(NEW).encode());
    port.push(&control_frame(NEW, b"fresh"));
    let seen = drain(&mut port);
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(matches!(seen[1], Received::Lost(_)));
    assert_eq!(seen[2], Received::Opened(opening(NEW)));
    assert_eq!(
        seen[3],
        Received::Frame(Frame::Control {
            is_last: true,
            bytes: b"fresh".to_vec()
        })
    );
}

#[test]
fn filler_flushes_a_guest_out_of_a_dead_frame() {
    let whole = control_frame(OLD, &vec![7; 60_000]);
    for cut in [1, 2, 20, 35, 36, 37, 30_000, whole.len() - 1] {
        let mut port = conversing();
        port.push(&whole[..cut]);
        assert_eq!(drain(&mut port), vec![], "cut at {cut}");
        port.push(&opening(NEW).encode());
        drain(&mut port);
        port.push(&vec![0; FRAME_BYTES_MAX]);
        port.push(&opening(NEW).encode());
        let seen = drain(&mut port);
        assert_eq!(
            seen.last(),
            Some(&Received::Opened(opening(NEW))),
            "cut at {cut}"
        );
        assert_eq!(port.held_bytes(), 0);
    }
}

#[test]
fn frame_of_the_former_conversation_ends_in_a_hunt() {
    let mut port = conversing();
    port.push(&control_frame(NEW, b"foreign"));
    assert!(matches!(drain(&mut port)[..], [Received::Lost(_)]));
    port.push(&opening(NEW).encode());
    assert_eq!(drain(&mut port), vec![Received::Opened(opening(NEW))]);
}

#[test]
fn opening_for_the_other_port_is_passed_over() {
    let mut port = GuestPort::new(PortRole::Bulk);
    port.push(&opening(NEW).encode());
    assert_eq!(drain(&mut port), vec![]);
}

#[test]
fn host_skips_stale_bytes_and_acks_that_are_not_its_own() {
    let mut host = HostPort::new(PortRole::Control);
    host.push(&control_frame(OLD, b"stale")[5..]);
    host.push(&opening(OLD).answer().encode());
    assert_eq!(host.next_ack(NEW), Ok(None));
    host.push(&opening(NEW).answer().encode());
    host.push(&control_frame(NEW, b"answer"));
    assert_eq!(host.next_ack(NEW), Ok(Some(opening(NEW).answer())));
    host.converse(NEW);
    let frame = Frame::Control {
        is_last: true,
        bytes: b"answer".to_vec(),
    };
    assert_eq!(host.next_frame(), Ok(Some(frame)));
}

#[test]
fn ports_pair_only_on_one_nonce() {
    let mut pairing = Pairing::default();
    pairing.opened(PortRole::Control, OLD);
    assert_eq!(pairing.agreed(), None);
    pairing.opened(PortRole::Bulk, NEW);
    assert_eq!(pairing.agreed(), None);
    pairing.opened(PortRole::Control, NEW);
    assert_eq!(pairing.agreed(), Some(NEW));
    pairing.lost(PortRole::Bulk);
    assert_eq!(pairing.agreed(), None);
}

proptest! {
    #[test]
    fn any_garbage_then_filler_then_opening_is_understood(
        garbage in proptest::collection::vec(any::<u8>(), 0..2000),
        step in 1_usize..5000,
    ) {
        let mut port = conversing();
        let mut bytes = garbage;
        bytes.extend_from_slice(&vec![0; FRAME_BYTES_MAX]);
        bytes.extend_from_slice(&opening(NEW).encode());
        let mut last = None;
        for piece in bytes.chunks(step) {
            port.push(piece);
            last = drain(&mut port).pop().or(last);
            prop_assert!(port.held_bytes() <= FRAME_BYTES_MAX + step);
        }
        prop_assert_eq!(last, Some(Received::Opened(opening(NEW))));
    }
}
