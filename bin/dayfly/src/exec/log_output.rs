//! What commands of a guest printed, shown again: as it is, or as objects for a program.

use dayfly_api::utf8::Utf8Pieces;
use serde_json::{Value, json};

use crate::exec::guest_output::GuestOutput;
use crate::failure::CommandError;

/// Takes two streams.
#[derive(Debug)]
pub(crate) enum LogOutput {
    Bytes,
    /// One object in a line: `stream`, and `text` or the length of a `gap`.
    Objects {
        stdout: Utf8Pieces,
        stderr: Utf8Pieces,
    },
}

impl LogOutput {
    pub(crate) fn new(is_json: bool) -> Self {
        if is_json {
            let (stdout, stderr) = Default::default();
            return Self::Objects { stdout, stderr };
        }
        Self::Bytes
    }

    pub(crate) async fn stdout(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        match self {
            Self::Bytes => GuestOutput::Live.stdout(bytes).await,
            Self::Objects { stdout, .. } => print("stdout", stdout.push(bytes)).await,
        }
    }

    pub(crate) async fn stderr(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        match self {
            Self::Bytes => GuestOutput::Live.stderr(bytes).await,
            Self::Objects { stderr, .. } => print("stderr", stderr.push(bytes)).await,
        }
    }

    /// Something of a stream is missing here. Where bytes are shown, it is said beside them.
    pub(crate) async fn gap(&mut self, stream: &str, bytes: u64) -> Result<(), CommandError> {
        let Self::Objects { .. } = self else {
            return Ok(());
        };
        self.flush().await?;
        print_object(&json!({"stream": stream, "gap": bytes})).await
    }

    /// What was held back because it was half a character.
    pub(crate) async fn flush(&mut self) -> Result<(), CommandError> {
        if let Self::Objects { stdout, stderr } = self {
            print("stdout", stdout.finish().unwrap_or_default()).await?;
            print("stderr", stderr.finish().unwrap_or_default()).await?;
        }
        Ok(())
    }
}

async fn print(stream: &str, text: String) -> Result<(), CommandError> {
    if text.is_empty() {
        return Ok(());
    }
    print_object(&json!({"stream": stream, "text": text})).await
}

async fn print_object(object: &Value) -> Result<(), CommandError> {
    let line = format!("{object}\n");
    GuestOutput::Live.stdout(line.as_bytes()).await
}
