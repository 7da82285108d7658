//! Reading questions and writing answers.

use std::net::Ipv4Addr;

use dayfly_types::egress::HostName;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

const HEADER_BYTES: usize = 12;

/// A question that can be answered, with or without an address.
#[derive(Debug)]
pub struct Question {
    id: u16,
    is_recursion_desired: bool,
    /// As the guest wrote it; its case is part of the answer.
    query: Query,
    /// None for what is no name of a host.
    pub name: Option<HostName>,
}

/// What to do with a packet.
#[derive(Debug)]
pub enum Parsed {
    Question(Question),
    /// Answered without being looked at further.
    Refused(Vec<u8>),
    /// Not even a header.
    Nothing,
}

/// What a guest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    Addresses {
        addresses: &'a [Ipv4Addr],
        ttl: u32,
    },
    /// The name is there and has nothing of that type.
    Empty,
    Absent,
    Failed,
    Refused,
}

/// Takes one question of the plain kind. Options and whatever else is in the packet are dropped.
#[must_use]
pub fn parse(packet: &[u8]) -> Parsed {
    let Some(id) = packet
        .get(..HEADER_BYTES)
        .map(|head| u16::from_be_bytes([head[0], head[1]]))
    else {
        return Parsed::Nothing;
    };
    let refuse = |op_code, code| {
        let message = Message::error_msg(id, op_code, code);
        message.to_vec().map_or(Parsed::Nothing, Parsed::Refused)
    };
    let Ok(message) = Message::from_vec(packet) else {
        return refuse(OpCode::Query, ResponseCode::FormErr);
    };
    let op_code = message.metadata.op_code;
    if message.metadata.message_type != MessageType::Query {
        return refuse(OpCode::Query, ResponseCode::FormErr);
    }
    if op_code != OpCode::Query {
        return refuse(op_code, ResponseCode::NotImp);
    }
    let is_recursion_desired = message.metadata.recursion_desired;
    let Ok([query]) = <[Query; 1]>::try_from(message.queries) else {
        return refuse(op_code, ResponseCode::FormErr);
    };
    let is_transfer = matches!(query.query_type, RecordType::AXFR | RecordType::IXFR);
    if query.query_class != DNSClass::IN || is_transfer {
        return refuse(op_code, ResponseCode::Refused);
    }
    Parsed::Question(Question {
        id,
        is_recursion_desired,
        name: host_name(&query.name),
        query,
    })
}

/// The labels of a question hold any bytes, also dots. Only what is a name when it is written out
/// is one.
fn host_name(name: &Name) -> Option<HostName> {
    let mut text = String::new();
    for label in name.iter() {
        if label.contains(&b'.') || !label.is_ascii() {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(str::from_utf8(label).ok()?);
    }
    // A dot at the end would be dropped, and there is none in a question.
    HostName::parse(&text).ok()
}

impl Question {
    #[must_use]
    pub const fn kind(&self) -> RecordType {
        self.query.query_type
    }

    /// The packet to send. None when it cannot be written, which does not happen.
    #[must_use]
    pub fn reply(&self, reply: Reply<'_>) -> Option<Vec<u8>> {
        let mut message = Message::response(self.id, OpCode::Query);
        message.metadata.recursion_desired = self.is_recursion_desired;
        message.metadata.recursion_available = true;
        message.metadata.response_code = match reply {
            Reply::Addresses { .. } | Reply::Empty => ResponseCode::NoError,
            Reply::Absent => ResponseCode::NXDomain,
            Reply::Failed => ResponseCode::ServFail,
            Reply::Refused => ResponseCode::Refused,
        };
        message.add_query(self.query.clone());
        if let Reply::Addresses { addresses, ttl } = reply {
            for address in addresses {
                let name = self.query.name.clone();
                message.add_answer(Record::from_rdata(name, ttl, RData::A(A(*address))));
            }
        }
        message.to_vec().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resolve::ADDRESSES_MAX;

    fn ask(labels: &[&[u8]], kind: RecordType) -> Message {
        let name = Name::from_labels(labels.iter().copied()).unwrap();
        let mut message = Message::new(7, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(name, kind));
        message
    }

    fn parsed(message: &Message) -> Question {
        let parsed = parse(&message.to_vec().unwrap());
        let Parsed::Question(question) = parsed else {
            panic!("{parsed:?}");
        };
        question
    }

    fn refusal(message: &Message) -> ResponseCode {
        let parsed = parse(&message.to_vec().unwrap());
        let Parsed::Refused(packet) = parsed else {
            panic!("{parsed:?}");
        };
        Message::from_vec(&packet).unwrap().metadata.response_code
    }

    #[test]
    fn c9_labels_are_written_out_only_when_that_is_the_name() {
        let name = |labels: &[&[u8]]| parsed(&ask(labels, RecordType::A)).name;
        let expected = HostName::parse("allowed.test").ok();
        assert_eq!(name(&[b"AlloweD", b"test"]), expected);
        for labels in [
            &[&b"allowed.test"[..]][..],
            &[b"evil", b"x.allowed", b"test"],
            &[b"attacker\0", b"allowed", b"test"],
            &[b"b\xc3\xbccher", b"test"],
            &[b"127", b"0", b"0", b"1"],
            &[],
        ] {
            assert_eq!(name(labels), None, "{labels:?}");
        }
    }

    #[test]
    fn c11_anything_but_one_plain_question_is_refused() {
        let mut two = ask(&[b"allowed", b"test"], RecordType::A);
        two.add_query(two.queries[0].clone());
        assert_eq!(refusal(&two), ResponseCode::FormErr);
        let mut response = ask(&[b"allowed", b"test"], RecordType::A);
        response.metadata.message_type = MessageType::Response;
        assert_eq!(refusal(&response), ResponseCode::FormErr);
        let mut update = ask(&[b"allowed", b"test"], RecordType::A);
        update.metadata.op_code = OpCode::Update;
        assert_eq!(refusal(&update), ResponseCode::NotImp);
        let mut chaos = ask(&[b"version", b"bind"], RecordType::TXT);
        chaos.queries[0].query_class = DNSClass::CH;
        assert_eq!(refusal(&chaos), ResponseCode::Refused);
        let transfer = ask(&[b"allowed", b"test"], RecordType::AXFR);
        assert_eq!(refusal(&transfer), ResponseCode::Refused);
        assert!(matches!(parse(b"short"), Parsed::Nothing));
        assert!(matches!(parse(&[0xff; 64]), Parsed::Refused(_)));
    }

    #[test]
    fn an_answer_echoes_the_case_and_fits_in_the_smallest_packet() {
        let long = [b'a'; 61];
        let question = parsed(&ask(&[&long, &long, &long, &long, b"TeSt"], RecordType::A));
        let addresses = [Ipv4Addr::new(93, 184, 216, 34); ADDRESSES_MAX];
        let reply = Reply::Addresses {
            addresses: &addresses,
            ttl: 60,
        };
        let packet = question.reply(reply).unwrap();
        assert!(packet.len() <= 512, "{}", packet.len());
        let message = Message::from_vec(&packet).unwrap();
        assert_eq!(message.answers.len(), ADDRESSES_MAX);
        assert!(message.queries[0].name.to_ascii().ends_with("TeSt."));
        assert!(message.answers[0].name.to_ascii().ends_with("TeSt."));
        assert!(message.edns.is_none());
    }

    proptest! {
        #[test]
        fn any_packet_is_parsed_or_refused(packet in proptest::collection::vec(any::<u8>(), 0..600)) {
            match parse(&packet) {
                Parsed::Question(question) => {
                    prop_assert!(question.reply(Reply::Absent).is_some());
                }
                Parsed::Refused(_) | Parsed::Nothing => {}
            }
        }
    }
}
