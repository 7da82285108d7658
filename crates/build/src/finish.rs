//! The snapshot of the last step becomes a version of a template.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_api::{Command, CreateTemplate, TemplateHealthCheck, TemplateState, TemplateVersion};
use dayfly_client::Client;
use dayfly_dockerfile::{StageConfig, StageHealth, StageHealthCommand};
use dayfly_types::ErrorCode;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::build::BuildWish;
use crate::error::BuildError;
use crate::event::{BuildEvent, Listener};

/// How often a template that is being baked is asked about: nothing tells when it is there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const KEY: &str = "key";

/// How a version came to be, for whoever wants to know later.
#[derive(Debug)]
pub(crate) struct Provenance {
    /// Of all that is on its disk.
    pub(crate) key: String,
    pub(crate) config: StageConfig,
    /// Each base with what it was.
    pub(crate) images: BTreeMap<String, String>,
    pub(crate) steps: Vec<String>,
}

impl Provenance {
    /// Of everything that decides about the version.
    fn whole_key(&self, wish: &BuildWish) -> String {
        let mut hash = Sha256::new();
        let sizes = format!("{:?} {:?} {:?}", wish.memory_mb, wish.cpu, wish.disk_gb);
        for part in [&self.key, &format!("{:?}", self.config), &sizes] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hex::encode(hash.finalize())
    }

    fn document(&self, wish: &BuildWish) -> Map<String, Value> {
        let entries = [
            (KEY, json!(self.whole_key(wish))),
            ("images", json!(self.images)),
            ("steps", json!(self.steps)),
            (
                "arguments",
                json!(wish.arguments.keys().collect::<Vec<_>>()),
            ),
            ("target", json!(wish.target)),
        ];
        entries
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// A version that was built from the same; the tag means it then.
pub(crate) async fn find(
    client: &Client,
    wish: &BuildWish,
    provenance: &Provenance,
) -> Result<Option<TemplateVersion>, BuildError> {
    let versions = match client.list_template_versions(&wish.name).await {
        Ok(versions) => versions,
        Err(error) if error.api_code() == Some(ErrorCode::NotFound) => return Ok(None),
        Err(source) => {
            let what = "look for earlier versions of the template";
            return Err(BuildError::Call { what, source });
        }
    };
    let key = Value::String(provenance.whole_key(wish));
    let same =
        |version: &&TemplateVersion| version.usable && version.provenance.get(KEY) == Some(&key);
    let Some(found) = versions.iter().find(same) else {
        return Ok(None);
    };
    Ok(Some(tagged(client, wish, found).await?))
}

/// Makes a version of a snapshot, waits for it, and lets the tag mean it.
pub(crate) async fn make(
    client: &Client,
    wish: &BuildWish,
    snapshot: &str,
    config: &StageConfig,
    provenance: Provenance,
    tell: Listener<'_>,
) -> Result<TemplateVersion, BuildError> {
    let mut entry_point = config.entry_point.clone();
    entry_point.extend(config.command.iter().cloned());
    let request = CreateTemplate {
        name: wish.name.clone(),
        from_snapshot: snapshot.to_owned(),
        description: Some(wish.description.clone()),
        user: Some(config.user.clone().unwrap_or_else(|| "0".to_owned())),
        directory: config.directory.clone(),
        env: Some(config.environment.clone()),
        entry_point: Some(entry_point),
        health_check: config
            .health
            .as_ref()
            .map(|health| health_check(health, config)),
        memory_mb: wish.memory_mb,
        cpu: wish.cpu,
        provenance: Some(provenance.document(wish)),
    };
    let ordered = client.create_template(&request).await;
    let mut version = ordered.map_err(BuildError::call("make the template"))?;
    while !version.usable {
        if version.state == TemplateState::Failed {
            let reason = version.detail.unwrap_or_default();
            let _ = client
                .delete_template_version(&wish.name, &version.id)
                .await;
            return Err(BuildError::Template { reason });
        }
        tell(BuildEvent::Baking {
            percent: version.percent,
            detail: version.detail.clone(),
        });
        tokio::time::sleep(LOOK_AGAIN).await;
        let again = client.get_template_version(&wish.name, &version.id).await;
        version = again.map_err(BuildError::call("wait for the template"))?;
    }
    tagged(client, wish, &version).await
}

async fn tagged(
    client: &Client,
    wish: &BuildWish,
    version: &TemplateVersion,
) -> Result<TemplateVersion, BuildError> {
    let set = client
        .set_template_tag(&wish.name, &wish.tag, &version.id)
        .await;
    set.map_err(BuildError::call("set the tag"))
}

fn health_check(health: &StageHealth, config: &StageConfig) -> TemplateHealthCheck {
    let command = match &health.command {
        StageHealthCommand::Words(words) => Command::Argv(words.clone()),
        StageHealthCommand::Shell(text) => {
            let mut words = config.shell.clone();
            words.push(text.clone());
            Command::Argv(words)
        }
    };
    let seconds = |given: Option<Duration>| given.map(|time| time.as_secs_f64());
    TemplateHealthCheck {
        command,
        interval_seconds: seconds(health.interval),
        timeout_seconds: seconds(health.timeout),
        start_period_seconds: seconds(health.start_period),
        retries: health.retries.map(u64::from),
    }
}
