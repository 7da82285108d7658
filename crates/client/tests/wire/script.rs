//! A server that knows no HTTP but its script.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use dayfly_client::{ApiKey, Client, ClientConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The connection is closed without a byte.
    Drop,
    /// Kept alive afterwards.
    Whole(String),
    /// Closed afterwards.
    Raw(String),
}

impl Answer {
    pub(crate) fn json(status: u16, body: &str) -> Self {
        let length = match status {
            204 => String::new(),
            _ => format!("content-length: {}\r\n", body.len()),
        };
        Self::Whole(format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nretry-after: 3\r\n\
             location: http://127.0.0.1:1/\r\n{length}\r\n{body}"
        ))
    }

    pub(crate) fn stream(events: &str) -> Self {
        Self::Whole(format!("{}0\r\n\r\n", chunked(events)))
    }

    /// A chunked body without its end.
    pub(crate) fn cut_stream(events: &str) -> Self {
        Self::Raw(chunked(events))
    }
}

fn chunked(events: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{events}\r\n",
        events.len()
    )
}

/// What the server saw.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.head.lines().find_map(|line| {
            line.split_once(": ")
                .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        });
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Stage {
    answers: VecDeque<Answer>,
    requests: Vec<Request>,
}

#[derive(Debug)]
pub(crate) struct Script {
    address: SocketAddr,
    stage: Arc<Mutex<Stage>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Script {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Script {
    pub(crate) async fn play(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = answers.into_iter().collect();
        let stage = Arc::new(Mutex::new(Stage {
            answers,
            requests: Vec::new(),
        }));
        let shared = Arc::clone(&stage);
        let task = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, connection, Arc::clone(&shared)));
            }
        });
        Self {
            address,
            stage,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.stage.lock().unwrap().requests.clone()
    }
}

async fn serve(mut stream: TcpStream, connection: usize, stage: Arc<Mutex<Stage>>) {
    while let Some(mut request) = read_request(&mut stream).await {
        request.connection = connection;
        let answer = {
            let mut stage = stage.lock().unwrap();
            stage.requests.push(request);
            stage
                .answers
                .pop_front()
                .expect("the script has an answer for every request")
        };
        match answer {
            Answer::Drop => return,
            Answer::Whole(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Answer::Raw(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                return;
            }
        }
    }
}

/// Reads a request whose body has a length; of one without, only the head.
async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut request = Request {
        connection: 0,
        head,
        body: Vec::new(),
    };
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}

/// A client of the script.
pub(crate) fn client(script: &Script) -> Client {
    let key = Some(ApiKey::parse("df_key").unwrap());
    Client::new(ClientConfig {
        url: script.url(),
        key,
    })
    .unwrap()
}
