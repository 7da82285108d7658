//! The name server of the test's internet. It keeps every packet that it was sent.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

pub const ADDRESS: &str = "9.9.9.9:53";

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Entry {
    Addresses(Vec<Ipv4Addr>),
    /// Each question gets the next one, with a time to live of 0; the last one stays.
    InTurn(Vec<Vec<Ipv4Addr>>),
    Alias(String, Vec<Ipv4Addr>),
    /// No answer at all.
    Silence,
}

/// What it knows and what it was asked.
#[derive(Debug, Default)]
pub struct NameServer {
    entries: Mutex<HashMap<String, Entry>>,
    packets: Mutex<Vec<Vec<u8>>>,
    is_dead: AtomicBool,
}

impl NameServer {
    pub fn set(&self, name: &str, entry: Entry) {
        self.entries.lock().unwrap().insert(name.to_owned(), entry);
    }

    pub fn set_addresses(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap());
        self.set(name, Entry::Addresses(addresses.collect()));
    }

    /// Lets it answer nobody, or everybody again. It still keeps what it is sent.
    pub fn set_dead(&self, is_dead: bool) {
        self.is_dead.store(is_dead, Ordering::Relaxed);
    }

    /// Every packet that came, as it came.
    #[must_use]
    pub fn packets(&self) -> Vec<Vec<u8>> {
        self.packets.lock().unwrap().clone()
    }

    /// The names that were asked for, in order.
    #[must_use]
    pub fn questions(&self) -> Vec<String> {
        let packets = self.packets();
        let messages = packets
            .iter()
            .map(|packet| Message::from_vec(packet).unwrap());
        messages
            .map(|message| message.queries[0].name.to_ascii())
            .map(|name| name.trim_end_matches('.').to_owned())
            .collect()
    }

    fn answer(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.packets.lock().unwrap().push(packet.to_vec());
        if self.is_dead.load(Ordering::Relaxed) {
            return None;
        }
        let question = Message::from_vec(packet).ok()?;
        let query = question.queries.first()?.clone();
        let mut reply = Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
        reply.metadata.recursion_desired = true;
        reply.metadata.recursion_available = true;
        reply.add_query(query.clone());
        let name = query.name.to_ascii().to_ascii_lowercase();
        let name = name.trim_end_matches('.');
        let mut entries = self.entries.lock().unwrap();
        let (records, ttl) = match entries.get_mut(name) {
            None => {
                reply.metadata.response_code = ResponseCode::NXDomain;
                (Vec::new(), 0)
            }
            Some(Entry::Silence) => return None,
            Some(Entry::Addresses(addresses)) => (addresses.clone(), 300),
            Some(Entry::InTurn(turns)) if turns.len() > 1 => (turns.remove(0), 0),
            Some(Entry::InTurn(turns)) => (turns[0].clone(), 0),
            Some(Entry::Alias(alias, addresses)) => {
                let alias = Name::from_ascii(format!("{alias}.")).unwrap();
                let data = RData::CNAME(CNAME(alias.clone()));
                reply.add_answer(Record::from_rdata(query.name.clone(), 300, data));
                for address in addresses {
                    let data = RData::A(A(*address));
                    reply.add_answer(Record::from_rdata(alias.clone(), 300, data));
                }
                (Vec::new(), 0)
            }
        };
        if query.query_type == RecordType::A {
            for address in records {
                let data = RData::A(A(address));
                reply.add_answer(Record::from_rdata(query.name.clone(), ttl, data));
            }
        }
        reply.to_vec().ok()
    }

    pub async fn serve_udp(self: Arc<Self>, socket: UdpSocket) {
        let mut buffer = vec![0; 4096];
        while let Ok((count, peer)) = socket.recv_from(&mut buffer).await {
            if let Some(reply) = self.answer(&buffer[..count]) {
                socket.send_to(&reply, peer).await.unwrap();
            }
        }
    }

    pub async fn serve_tcp(self: Arc<Self>, listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            let server = Arc::clone(&self);
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut packet = vec![0; length.into()];
                    stream.read_exact(&mut packet).await.unwrap();
                    let Some(reply) = server.answer(&packet) else {
                        return;
                    };
                    let length = u16::try_from(reply.len()).unwrap();
                    stream.write_u16(length).await.unwrap();
                    stream.write_all(&reply).await.unwrap();
                }
            });
        }
    }
}
