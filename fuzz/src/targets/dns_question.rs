//! Questions for names.
//!
//! What is promised for any packet: no panic; what is answered is one well-formed packet with the
//! question's own number that fits in the smallest datagram; and a name is one only when its
//! labels, written out, are that name.

use std::net::Ipv4Addr;

use dayfly_egress::readers::{Parsed, Question, Reply, parse_question};
use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RecordType};

use super::Inputs;

/// What every client can take.
const DATAGRAM_BYTES: usize = 512;
const ADDRESSES: [Ipv4Addr; 8] = [Ipv4Addr::new(93, 184, 216, 34); 8];

pub(super) fn check(packet: &[u8]) {
    match parse_question(packet) {
        Parsed::Nothing => assert!(
            packet.len() < 12,
            "a packet with a header was not even refused"
        ),
        Parsed::Refused(answer) => {
            let message = read(&answer);
            assert_eq!(answer[..2], packet[..2], "another number");
            assert_eq!(message.metadata.message_type, MessageType::Response);
            assert!(message.answers.is_empty() && message.queries.is_empty());
        }
        Parsed::Question(question) => check_question(packet, &question),
    }
}

fn check_question(packet: &[u8], question: &Question) {
    let asked = read(packet);
    let Some(query) = asked.queries.first() else {
        assert!(!asked.queries.is_empty(), "a question out of nothing");
        return;
    };
    if let Some(name) = &question.name {
        let labels: Vec<&[u8]> = query.name.iter().collect();
        let written = labels.join(&b'.').to_ascii_lowercase();
        assert_eq!(name.as_str().as_bytes(), written, "another name");
    }
    for reply in [
        Reply::Addresses {
            addresses: &ADDRESSES,
            ttl: 60,
        },
        Reply::Empty,
        Reply::Absent,
        Reply::Failed,
        Reply::Refused,
    ] {
        let answer = question.reply(reply).unwrap_or_default();
        let message = read(&answer);
        assert_eq!(answer[..2], packet[..2], "another number");
        assert_eq!(
            message.queries.first(),
            Some(query),
            "another question is answered"
        );
        assert!(message.additionals.is_empty() && message.edns.is_none());
        if matches!(reply, Reply::Addresses { .. }) {
            assert_eq!(message.answers.len(), ADDRESSES.len());
        }
        assert!(answer.len() <= DATAGRAM_BYTES, "{} bytes", answer.len());
    }
}

fn read(packet: &[u8]) -> Message {
    let message = Message::from_vec(packet);
    assert!(message.is_ok(), "not a packet: {message:?}");
    message.unwrap_or_else(|_| Message::error_msg(0, OpCode::Query, Default::default()))
}

pub(super) fn seeds() -> Inputs {
    let mut inputs = Vec::new();
    let long = "a".repeat(61);
    for (number, (name, kind)) in [
        ("allowed.test.", RecordType::A),
        ("AlloweD.tEst.", RecordType::AAAA),
        ("xn--bcher-kva.test.", RecordType::HTTPS),
        ("version.bind.", RecordType::TXT),
        ("allowed.test.", RecordType::AXFR),
        (
            &format!("{long}.{long}.{long}.{long}.test."),
            RecordType::ANY,
        ),
        (".", RecordType::NS),
    ]
    .into_iter()
    .enumerate()
    {
        let Ok(name) = Name::from_ascii(name) else {
            continue;
        };
        let mut message = Message::new(7, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(name, kind));
        inputs.push((
            format!("seed-{number:02}"),
            message.to_vec().unwrap_or_default(),
        ));
    }
    // A pointer to itself, and options behind the question.
    let mut looped = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let mut options = looped.clone();
    looped.extend([0xc0, 12, 0, 1, 0, 1]);
    options[11] = 1;
    options.extend(b"\x07allowed\x04test\0\0\x01\0\x01\0\0\x29\x10\0\0\0\0\0\0\x08\0\x08\0\x04");
    options.extend([0, 1, 24, 0]);
    inputs.push(("seed-loop".to_owned(), looped));
    inputs.push(("seed-options".to_owned(), options));
    inputs
}
