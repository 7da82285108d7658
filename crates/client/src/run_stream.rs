//! What a run of code printed, read again.

use dayfly_api::RunCode;
use serde::Deserialize;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::event_stream::{EventStream, told};
use crate::limits;

/// What a run printed until its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOutput {
    pub stdout: String,
    pub stderr: String,
    pub duration_ms: u64,
}

#[derive(Debug, Deserialize)]
struct Chunk {
    chunk: String,
}

#[derive(Debug, Deserialize)]
struct End {
    #[serde(default)]
    duration_ms: u64,
}

impl Client {
    /// Reads what a run that has ended printed: the context knows it by its `run_id`, and does not
    /// run it again. Of each stream the first bytes are kept, up to `bytes_max`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn read_run(
        &self,
        id: &str,
        context: &str,
        request: &RunCode,
        bytes_max: usize,
    ) -> Result<RunOutput, ClientError> {
        let url = self.context_address(id, context, &["run", "stream"])?;
        let request = self.http.post(url).json(request);
        let response = self.open(request, limits::CALL_DEADLINE).await?;
        let mut events = EventStream::new(response, self.url());
        let mut output = RunOutput::default();
        loop {
            let event = events.next().await?;
            match event.name.as_str() {
                "stdout" => keep(&mut output.stdout, &event.data, bytes_max)?,
                "stderr" => keep(&mut output.stderr, &event.data, bytes_max)?,
                "end" => {
                    output.duration_ms = decode::<End>(event.data.as_bytes())?.duration_ms;
                    return Ok(output);
                }
                "error" => return Err(told(&event.data)?),
                // Results and what later versions may say.
                _ => {}
            }
        }
    }
}

fn keep(text: &mut String, data: &str, bytes_max: usize) -> Result<(), ClientError> {
    let chunk: Chunk = decode(data.as_bytes())?;
    let room = bytes_max.saturating_sub(text.len());
    text.push_str(&chunk.chunk[..chunk.chunk.floor_char_boundary(room)]);
    Ok(())
}
