//! The engine's monitor: one JSON message a line over a unix socket, one client at a time.
//!
//! A [`Monitor`] has no task of its own. Between commands nobody reads, so its owner closes it
//! before the guest runs on: a guest can cause events, and they would pile up unread.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use dayfly_host::unix::connect_unix_within;
use dayfly_types::limits::{CONSOLE_RING_BYTES, ENGINE_COMMAND_DEADLINE, ENGINE_MESSAGE_BYTES_MAX};
use dayfly_vmm::{Afterwards, file_names};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::MonitorError;
use crate::launch::CONSOLE;

/// Events kept for a later wait. One operation causes fewer than ten.
const EVENTS_MAX: usize = 64;

/// What is kept of the engine's own words in an error.
const DESCRIPTION_CHARACTERS_MAX: usize = 500;

/// Device state takes milliseconds; a host whose disk is busy, more.
const MIGRATION_LIMIT: Duration = Duration::from_secs(20);

/// What the engine said without being asked. Other events are dropped when they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QmpEvent {
    Stop,
    Resume,
    Shutdown,
    GuestPanicked,
    /// A write to a disk failed, and the guest was told.
    WriteFailed,
    Migration {
        status: String,
    },
}

/// An open conversation with one engine. Drop it after any error.
#[derive(Debug)]
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
    /// The start of a line that has not ended yet.
    line: Vec<u8>,
    events: VecDeque<QmpEvent>,
    next_id: u64,
}

/// Where the guest's writes go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WritableNode {
    pub(crate) node: String,
    /// In the run directory.
    pub(crate) file: String,
    pub(crate) bytes: u64,
}

/// The node of the disk that a machine starts with.
pub(crate) const WRITABLE_NODE: &str = "writable";
/// What the name of a layer's file has behind the name of its node.
pub(crate) const LAYER_SUFFIX: &str = ".img";

/// The last part of the path of an image. The engine names one with options of its own in the
/// form of JSON, which has the path as `filename`.
#[must_use]
pub fn plain_file_name(image: &str) -> Option<String> {
    let path = match image.strip_prefix("json:") {
        Some(text) => {
            let options: Value = serde_json::from_str(text).ok()?;
            let nested = options["file"]["filename"].as_str();
            nested.or(options["filename"].as_str())?.to_owned()
        }
        None => image.to_owned(),
    };
    let name = path.rsplit('/').next()?;
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains('\0');
    is_plain.then(|| name.to_owned())
}

/// The file of a node that we named. The engine cuts what it says of a file off at 4,096
/// characters, and in the form of JSON that has the whole chain of layers below: after some sixty
/// captures of a sandbox it cannot be read any more.
fn file_of_node(node: &str) -> Option<String> {
    match node {
        WRITABLE_NODE => Some(file_names::WRITABLE_DISK.to_owned()),
        "" => None,
        // The engine's own names; no layer of ours is called so.
        other if other.starts_with('#') => None,
        layer => Some(format!("{layer}{LAYER_SUFFIX}")),
    }
}

/// One line of the engine.
#[derive(Debug)]
pub enum QmpMessage {
    Greeting,
    Event(QmpEvent),
    Return {
        id: Option<u64>,
        value: Value,
    },
    Error {
        id: Option<u64>,
        description: String,
    },
    Other,
}

impl Monitor {
    /// Dials as soon as the socket listens, and opens the conversation.
    pub(crate) async fn open(socket: &Path, limit: Duration) -> Result<Self, MonitorError> {
        let deadline = Instant::now() + limit;
        let stream = connect_unix_within(socket, limit).await.map_err(|error| {
            if error.kind() == io::ErrorKind::TimedOut {
                MonitorError::TimedOut(limit)
            } else {
                MonitorError::Connect(error)
            }
        })?;
        stream
            .set_nonblocking(true)
            .map_err(MonitorError::Connect)?;
        let stream = UnixStream::from_std(stream).map_err(MonitorError::Connect)?;
        timeout_at(deadline, Self::negotiate(stream))
            .await
            .map_err(|_| MonitorError::TimedOut(limit))?
    }

    async fn negotiate(stream: UnixStream) -> Result<Self, MonitorError> {
        let mut monitor = Self {
            stream: BufReader::new(stream),
            line: Vec::new(),
            events: VecDeque::new(),
            next_id: 0,
        };
        while !matches!(monitor.read_message().await?, QmpMessage::Greeting) {}
        monitor.exchange("qmp_capabilities", Value::Null).await?;
        Ok(monitor)
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn execute(
        &mut self,
        command: &str,
        arguments: Value,
        limit: Duration,
    ) -> Result<Value, MonitorError> {
        timeout(limit, self.exchange(command, arguments))
            .await
            .map_err(|_| MonitorError::TimedOut(limit))?
    }

    /// The run state by the engine's own name for it.
    pub(crate) async fn status(&mut self, limit: Duration) -> Result<String, MonitorError> {
        let answer = self.execute("query-status", Value::Null, limit).await?;
        Ok(shortened(answer["status"].as_str().unwrap_or_default()))
    }

    /// Makes the end of a load an event.
    pub(crate) async fn prepare_migration(&mut self, limit: Duration) -> Result<(), MonitorError> {
        let capabilities = json!({ "capabilities": [
            { "capability": "events", "state": true },
        ]});
        self.execute("migrate-set-capabilities", capabilities, limit)
            .await?;
        Ok(())
    }

    /// Writes the state of all devices, without memory. With [`Afterwards::Ends`] the disks are also
    /// flushed and given up, as far as the engine can; [`Afterwards::GoesOn`] is flushed by its seal.
    pub(crate) async fn save_devices(
        &mut self,
        file: &Path,
        afterwards: Afterwards,
    ) -> Result<(), MonitorError> {
        // Made for another hypervisor's toolstack, and the one command that saves devices alone
        // whatever memory is mapped from. `live` means that another host takes over: a machine that
        // goes on had to open each of its disks anew.
        let live = afterwards == Afterwards::Ends;
        let arguments = json!({ "filename": file, "live": live });
        self.execute("xen-save-devices-state", arguments, MIGRATION_LIMIT)
            .await?;
        Ok(())
    }

    /// The block node that the guest's writable disk is on: its name, file and size.
    pub(crate) async fn writable_node(&mut self) -> Result<WritableNode, MonitorError> {
        let answer = self
            .execute("query-block", Value::Null, ENGINE_COMMAND_DEADLINE)
            .await?;
        let devices = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_it = |device: &&Value| {
            device["qdev"]
                .as_str()
                .is_some_and(|name| name.contains("disk-writable"))
        };
        let inserted = devices
            .iter()
            .find(is_it)
            .map(|device| &device["inserted"])
            .ok_or(MonitorError::NoWritableDisk)?;
        let node = inserted["node-name"].as_str().unwrap_or_default();
        let told = inserted["image"]["filename"].as_str().unwrap_or_default();
        let file = plain_file_name(told)
            .or_else(|| file_of_node(node))
            .ok_or(MonitorError::NoWritableDisk)?;
        Ok(WritableNode {
            node: node.to_owned(),
            file,
            bytes: inserted["image"]["virtual-size"].as_u64().unwrap_or(0),
        })
    }

    /// Starts a migration by `command` and waits for its end.
    pub(crate) async fn migrate(&mut self, command: &str, file: &Path) -> Result<(), MonitorError> {
        let limit = MIGRATION_LIMIT;
        let deadline = Instant::now() + limit;
        let uri = format!("file:{}", file.display());
        self.events.clear();
        self.execute(command, json!({ "uri": uri }), limit).await?;
        let status = timeout_at(deadline, self.migration_end())
            .await
            .map_err(|_| MonitorError::TimedOut(limit))??;
        if status == "completed" {
            return Ok(());
        }
        let answer = self.execute("query-migrate", Value::Null, limit).await?;
        let description = shortened(answer["error-desc"].as_str().unwrap_or("no reason given"));
        Err(MonitorError::Migration {
            status,
            description,
        })
    }

    async fn migration_end(&mut self) -> Result<String, MonitorError> {
        loop {
            if let QmpEvent::Migration { status } = self.next_event().await?
                && matches!(status.as_str(), "completed" | "failed" | "cancelled")
            {
                return Ok(status);
            }
        }
    }

    /// The next message, if it is an event that means something. Cancel safe.
    pub(crate) async fn hear(&mut self) -> Result<Option<QmpEvent>, MonitorError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        match self.read_message().await? {
            QmpMessage::Event(event) => Ok(Some(event)),
            QmpMessage::Greeting
            | QmpMessage::Return { .. }
            | QmpMessage::Error { .. }
            | QmpMessage::Other => Ok(None),
        }
    }

    /// Writes and flushes of the guest's disks that failed and of which it was told, in the whole
    /// life of the engine. One that waits for room is none of them.
    pub(crate) async fn failed_writes(&mut self) -> Result<u64, MonitorError> {
        let answer = self
            .execute("query-blockstats", Value::Null, ENGINE_COMMAND_DEADLINE)
            .await?;
        let devices = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        let counts = ["failed_wr_operations", "failed_flush_operations"];
        Ok(devices
            .iter()
            .flat_map(|device| counts.map(|name| device["stats"][name].as_u64().unwrap_or(0)))
            .fold(0, u64::saturating_add))
    }

    /// What the guest wrote to its console since this was asked last. Empty where the engine keeps
    /// none of it.
    pub(crate) async fn console(&mut self) -> Result<String, MonitorError> {
        let arguments = json!({ "device": CONSOLE, "size": CONSOLE_RING_BYTES });
        let read = self.execute("ringbuf-read", arguments, ENGINE_COMMAND_DEADLINE);
        match read.await {
            Ok(text) => Ok(text.as_str().unwrap_or_default().to_owned()),
            // A machine that is baked, or was started by an earlier program.
            Err(MonitorError::Refused { .. }) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    async fn next_event(&mut self) -> Result<QmpEvent, MonitorError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let QmpMessage::Event(event) = self.read_message().await? {
                self.remember(event);
            }
        }
    }

    async fn exchange(&mut self, command: &str, arguments: Value) -> Result<Value, MonitorError> {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = json!({ "execute": command, "id": id });
        if !arguments.is_null() {
            request["arguments"] = arguments;
        }
        let line = format!("{request}\n");
        let stream = self.stream.get_mut();
        stream
            .write_all(line.as_bytes())
            .await
            .map_err(MonitorError::Exchange)?;
        loop {
            match self.read_message().await? {
                QmpMessage::Event(event) => self.remember(event),
                QmpMessage::Return {
                    id: Some(found),
                    value,
                } if found == id => return Ok(value),
                // An error without an id is about the line itself, and only ours is under way.
                QmpMessage::Error {
                    id: found,
                    description,
                } if found.is_none_or(|f| f == id) => {
                    return Err(MonitorError::Refused {
                        command: command.to_owned(),
                        description,
                    });
                }
                // An answer to a command that was given up.
                QmpMessage::Return { .. } | QmpMessage::Error { .. } => {}
                QmpMessage::Greeting | QmpMessage::Other => {}
            }
        }
    }

    fn remember(&mut self, event: QmpEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    async fn read_message(&mut self) -> Result<QmpMessage, MonitorError> {
        loop {
            let available = self
                .stream
                .fill_buf()
                .await
                .map_err(MonitorError::Exchange)?;
            if available.is_empty() {
                return Err(MonitorError::Closed);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |position| position + 1);
            if self.line.len() + taken > ENGINE_MESSAGE_BYTES_MAX {
                return Err(MonitorError::MessageTooLong {
                    limit: ENGINE_MESSAGE_BYTES_MAX,
                });
            }
            self.line.extend_from_slice(&available[..taken]);
            self.stream.consume(taken);
            if newline.is_some() {
                let line = std::mem::take(&mut self.line);
                return parse(&line);
            }
        }
    }
}

/// Reads one line.
///
/// # Errors
/// [`MonitorError::Malformed`].
pub fn parse(line: &[u8]) -> Result<QmpMessage, MonitorError> {
    let mut value: Value = serde_json::from_slice(line).map_err(MonitorError::Malformed)?;
    let id = value["id"].as_u64();
    if value.get("QMP").is_some() {
        return Ok(QmpMessage::Greeting);
    }
    if let Some(name) = value["event"].as_str() {
        return Ok(event(name, &value["data"]).map_or(QmpMessage::Other, QmpMessage::Event));
    }
    if let Some(error) = value.get("error") {
        let description = shortened(error["desc"].as_str().unwrap_or("no reason given"));
        return Ok(QmpMessage::Error { id, description });
    }
    Ok(value
        .get_mut("return")
        .map_or(QmpMessage::Other, |value| QmpMessage::Return {
            id,
            value: value.take(),
        }))
}

fn event(name: &str, data: &Value) -> Option<QmpEvent> {
    Some(match name {
        "STOP" => QmpEvent::Stop,
        "RESUME" => QmpEvent::Resume,
        "SHUTDOWN" => QmpEvent::Shutdown,
        "GUEST_PANICKED" => QmpEvent::GuestPanicked,
        "BLOCK_IO_ERROR" if data["operation"] == "write" && data["action"] == "report" => {
            QmpEvent::WriteFailed
        }
        "MIGRATION" => QmpEvent::Migration {
            status: shortened(data["status"].as_str()?),
        },
        _ => return None,
    })
}

/// The engine is not trusted with the length or the characters of what reaches a log.
pub(crate) fn shortened(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(DESCRIPTION_CHARACTERS_MAX).collect()
}

#[cfg(test)]
#[path = "qmp_tests.rs"]
mod tests;
