//! What a guest does. Everything here runs inside the guest's namespace.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

pub(crate) use dayfly_netlab::wire::{addresses, alert, hello, in_records, question, raw_hello};

/// A guest never has to wait this long.
pub(crate) const LIMIT: Duration = Duration::from_secs(8);

pub(crate) fn connect(address: &str) -> io::Result<TcpStream> {
    let address: SocketAddr = address.parse().unwrap();
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What the other side said until it closed. A reset is an end as well; a hang is not.
pub(crate) fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ) => {}
        Err(error) => panic!("it neither answered nor closed: {error}"),
    }
    said
}

/// Sends raw bytes, closes for writing, and returns what came back.
pub(crate) fn say(address: &str, bytes: &[u8]) -> String {
    let mut stream = connect(address).unwrap();
    // A connection that is reset early cannot be written to; what it said before still counts.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    String::from_utf8_lossy(&read_to_end(&mut stream)).into_owned()
}

pub(crate) fn get(address: &str, host: &str, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    say(address, request.as_bytes())
}

/// Speaks HTTPS to an address, with a name that may be another's.
pub(crate) fn get_tls(
    config: &Arc<ClientConfig>,
    address: &str,
    name: &str,
) -> Result<String, io::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(address)?);
    stream.write_all(b"GET /tls HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut said = [0; 512];
    let count = stream.read(&mut said)?;
    Ok(String::from_utf8_lossy(&said[..count]).into_owned())
}

pub(crate) fn say_raw(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = match connect(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => return Vec::new(),
        connected => connected.unwrap(),
    };
    let _ = stream.write_all(bytes);
    read_to_end(&mut stream)
}

fn udp(limit: Duration) -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(limit)).unwrap();
    socket
}

/// Asks by UDP.
pub(crate) fn ask_raw(server: &str, packet: &[u8], limit: Duration) -> io::Result<Message> {
    let socket = udp(limit);
    socket.connect((server, 53))?;
    socket.send(packet)?;
    let mut buffer = [0; 4096];
    let count = socket.recv(&mut buffer)?;
    Ok(Message::from_vec(&buffer[..count]).unwrap())
}

pub(crate) fn ask_kind(server: &str, name: &str, kind: RecordType) -> Message {
    let packet = question(name, kind).to_vec().unwrap();
    ask_raw(server, &packet, LIMIT).unwrap()
}

pub(crate) fn ask(name: &str) -> (ResponseCode, Vec<Ipv4Addr>) {
    let reply = ask_kind("10.11.0.1", name, RecordType::A);
    (reply.metadata.response_code, addresses(&reply))
}

/// Asks by TCP, any number of questions ahead of the answers.
pub(crate) fn ask_tcp(server: &str, packets: &[Vec<u8>]) -> Vec<Message> {
    let mut stream = connect(&format!("{server}:53")).unwrap();
    for packet in packets {
        let length = u16::try_from(packet.len()).unwrap().to_be_bytes();
        stream
            .write_all(&[&length, packet.as_slice()].concat())
            .unwrap();
    }
    let read = |_: &Vec<u8>| {
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut packet = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut packet).unwrap();
        Message::from_vec(&packet).unwrap()
    };
    packets.iter().map(read).collect()
}
