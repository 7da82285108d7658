//! Puts the context bridge into a booted guest, before anything of the recipe runs.

use bytes::Bytes;
use dayfly_guest_client::{AgentClient, WriteSpec};
use dayfly_snapshots::bridge;

use super::warm_up::WarmUpError;

/// Nobody but root may change what the sandbox's calls go through.
const OWNER: &str = "root";
const FILE_MODE: u32 = 0o644;

pub(super) async fn install(agent: &AgentClient) -> Result<(), WarmUpError> {
    for file in bridge::FILES {
        let path = format!("{}/{}", bridge::DIRECTORY, file.name);
        let options = WriteSpec {
            user: Some(OWNER.to_owned()),
            mode: Some(FILE_MODE),
            make_parents: true,
            ..WriteSpec::default()
        };
        let writing = agent.write_file(&path, options).await;
        let mut writing = writing.map_err(WarmUpError::FileCall)?;
        if !file.text.is_empty() {
            let text = Bytes::from_static(file.text.as_bytes());
            writing.write(text).await.map_err(WarmUpError::FileBytes)?;
        }
        writing.finish().await.map_err(WarmUpError::FileBytes)?;
    }
    Ok(())
}
