//! What the commands of a sandbox print, all together.

use serde::Deserialize;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::event_stream::EventStream;
use crate::limits;

/// A line that a command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub is_stderr: bool,
    pub text: String,
}

/// Lines as they come.
#[derive(Debug)]
pub struct LogFollow {
    stream: EventStream,
}

#[derive(Debug, Deserialize)]
struct Line {
    line: String,
}

impl Client {
    /// Follows what the commands print that run now, and begins with what they have printed.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_logs(&self, id: &str) -> Result<LogFollow, ClientError> {
        let mut url = self.sandbox_address(id, &["logs"])?;
        url.query_pairs_mut().append_pair("follow", "true");
        let response = self.open(self.http.get(url), limits::CALL_DEADLINE).await?;
        let stream = EventStream::new(response, self.url());
        Ok(LogFollow { stream })
    }
}

impl LogFollow {
    /// The next line; none when the last command has ended.
    ///
    /// # Errors
    /// [`ClientError`].
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Option<LogLine>, ClientError> {
        loop {
            let Some(event) = self.stream.next_or_end().await? else {
                return Ok(None);
            };
            // A newer server may say more.
            if event.name != "stdout" && event.name != "stderr" {
                continue;
            }
            let line: Line = decode(event.data.as_bytes())?;
            return Ok(Some(LogLine {
                is_stderr: event.name == "stderr",
                text: line.line,
            }));
        }
    }
}
