//! What stages are built on: images of registries, and templates of the server.

use std::time::Duration;

use dayfly_api::{
    Command, CreateSandbox, EnsureImage, ImageTemplate, Template, TemplateHealthCheck,
    TemplateState,
};
use dayfly_client::{Client, ClientError};
use dayfly_dockerfile::{StageConfig, StageHealth, StageHealthCommand};
use dayfly_types::ErrorCode;

use crate::build::BuildWish;
use crate::error::BuildError;
use crate::event::{BuildEvent, Listener};

/// How often an image that is being fetched is asked about: nothing tells when it is there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// In templates of the server commands are this user's, and begin here.
const TEMPLATE_USER: &str = "agent";
const TEMPLATE_DIRECTORY: &str = "/workspace";
/// What the agent of a guest gives to commands of that user, where nothing else is said. What pip and
/// npm install for it is found.
const TEMPLATE_PATH: &str =
    "/home/agent/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A base that sandboxes can be made from.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) origin: BaseOrigin,
    /// What decides what is on its disk, and how large its machines are.
    pub(crate) identity: String,
    pub(crate) config: StageConfig,
    /// The first instruction that it has for whoever builds on it.
    pub(crate) on_build: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum BaseOrigin {
    Image(String),
    Template { name: String, disk_mb: u64 },
}

impl Base {
    /// Refuses to build on an image that has instructions for that: other builds would run them, and
    /// what comes of it here would be another thing.
    pub(crate) fn check_on_build(&self, name: &str) -> Result<(), BuildError> {
        let Some(instruction) = &self.on_build else {
            return Ok(());
        };
        let reason = format!(
            "it has ONBUILD instructions, which are not run here: {instruction:?}; use an image \
             without them and write them below FROM"
        );
        Err(BuildError::ImageFailed {
            image: name.to_owned(),
            reason,
        })
    }

    /// What a sandbox of it is asked for with.
    pub(crate) fn request(&self, wish: &BuildWish) -> CreateSandbox {
        let sized = match &self.origin {
            BaseOrigin::Image(image) => CreateSandbox {
                image: Some(image.clone()),
                disk_gb: wish.disk_gb,
                ..CreateSandbox::default()
            },
            BaseOrigin::Template { name, disk_mb } => CreateSandbox {
                template: Some(name.clone()),
                // A disk has at least what its template has.
                disk_gb: wish
                    .disk_gb
                    .filter(|gigabytes| is_above(*gigabytes, *disk_mb)),
                ..CreateSandbox::default()
            },
        };
        CreateSandbox {
            memory_mb: wish.memory_mb,
            cpu: wish
                .cpu
                .and_then(|cpu| u32::try_from(cpu).ok())
                .map(f64::from),
            ..sized
        }
    }
}

fn is_above(gigabytes: f64, megabytes: u64) -> bool {
    const MEGABYTES: f64 = 1024.0;
    let megabytes = u32::try_from(megabytes).unwrap_or(u32::MAX);
    gigabytes * MEGABYTES > f64::from(megabytes)
}

/// Finds a base, and waits until it can be used. A plain word that is a template of the server is that
/// template; everything else is an image.
pub(crate) async fn find(
    client: &Client,
    wish: &BuildWish,
    name: &str,
    tell: Listener<'_>,
) -> Result<Base, BuildError> {
    let is_word = !name.contains(['/', ':', '@']);
    if is_word && let Some(template) = find_template(client, name).await? {
        let template = usable(client, template, tell).await?;
        return Ok(of_template(&template, wish));
    }
    of_image(client, wish, name, tell).await
}

async fn find_template(client: &Client, name: &str) -> Result<Option<Template>, BuildError> {
    match client.template(name).await {
        Ok(template) if template.is_global => Ok(Some(template)),
        Ok(_) => Ok(None),
        Err(error) if error.api_code() == Some(ErrorCode::NotFound) => Ok(None),
        // Not every name of an image can be one of a template.
        Err(ClientError::InvalidName { .. }) => Ok(None),
        Err(source) => Err(BuildError::Image {
            image: name.to_owned(),
            source,
        }),
    }
}

/// Waits until a template is baked: before that nothing says what its disk has, and a key without
/// that would find what was built on an earlier bake.
async fn usable(
    client: &Client,
    template: Template,
    tell: Listener<'_>,
) -> Result<Template, BuildError> {
    let name = template.name.clone();
    let wrap = |source| BuildError::Image {
        image: name.clone(),
        source,
    };
    let mut template = template;
    if !template.usable {
        template = client.bake_template(&name).await.map_err(wrap)?;
    }
    while !template.usable {
        if template.state == TemplateState::Failed {
            return Err(BuildError::ImageFailed {
                image: name,
                reason: template.detail.unwrap_or_default(),
            });
        }
        tell(BuildEvent::Base {
            image: name.clone(),
            percent: template.percent,
            detail: template.detail,
        });
        tokio::time::sleep(LOOK_AGAIN).await;
        template = client.template(&name).await.map_err(wrap)?;
    }
    Ok(template)
}

fn of_template(template: &Template, wish: &BuildWish) -> Base {
    let baked = template.baked_at.as_deref().unwrap_or_default();
    Base {
        origin: BaseOrigin::Template {
            name: template.name.clone(),
            disk_mb: template.disk_mb,
        },
        identity: format!(
            "template {} {baked} {:?} {:?} {:?}",
            template.name, wish.memory_mb, wish.cpu, wish.disk_gb
        ),
        on_build: None,
        config: StageConfig {
            environment: [("PATH".to_owned(), TEMPLATE_PATH.to_owned())].into(),
            user: Some(TEMPLATE_USER.to_owned()),
            directory: Some(TEMPLATE_DIRECTORY.to_owned()),
            ..StageConfig::default()
        },
    }
}

async fn of_image(
    client: &Client,
    wish: &BuildWish,
    name: &str,
    tell: Listener<'_>,
) -> Result<Base, BuildError> {
    let request = EnsureImage {
        image: name.to_owned(),
        memory_mb: wish.memory_mb,
        cpu: wish.cpu,
        disk_gb: wish.disk_gb,
    };
    loop {
        let found = client.ensure_image(&request).await;
        let image = found.map_err(|source| BuildError::Image {
            image: name.to_owned(),
            source,
        })?;
        if image.usable {
            return Ok(ready(image));
        }
        if image.state == TemplateState::Failed {
            return Err(BuildError::ImageFailed {
                image: image.image,
                reason: image.detail.unwrap_or_default(),
            });
        }
        tell(BuildEvent::Base {
            image: image.image,
            percent: image.percent,
            detail: image.detail,
        });
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn ready(image: ImageTemplate) -> Base {
    let digest = image.digest.unwrap_or_default();
    let identity = format!(
        "image {digest} {} {} {}",
        image.memory_mb, image.cpu, image.disk_mb
    );
    Base {
        origin: BaseOrigin::Image(image.image),
        identity,
        on_build: image.on_build,
        config: StageConfig {
            environment: image.env,
            user: image.user,
            directory: image.directory,
            // None means the shell that all have.
            shell: image.shell,
            entry_point: image.entry_point,
            command: image.command,
            health: image.health_check.map(health),
            ..StageConfig::default()
        },
    }
}

/// As a HEALTHCHECK of the Dockerfile would have said it.
fn health(check: TemplateHealthCheck) -> StageHealth {
    let time =
        |seconds: Option<f64>| seconds.and_then(|time| Duration::try_from_secs_f64(time).ok());
    StageHealth {
        command: match check.command {
            Command::Argv(words) => StageHealthCommand::Words(words),
            Command::Shell(text) => StageHealthCommand::Shell(text),
        },
        interval: time(check.interval_seconds),
        timeout: time(check.timeout_seconds),
        start_period: time(check.start_period_seconds),
        start_interval: None,
        retries: check.retries.and_then(|count| u32::try_from(count).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(fields: serde_json::Value) -> Base {
        let mut whole = serde_json::json!({
            "image": "registry.example/app:1", "state": "ready", "usable": true, "percent": 100,
            "cpu": 1, "memory_mb": 512, "disk_mb": 4096,
        });
        let fields = fields.as_object().cloned().unwrap();
        whole.as_object_mut().unwrap().extend(fields);
        ready(serde_json::from_value(whole).unwrap())
    }

    #[test]
    fn the_shell_of_an_image_is_inherited() {
        let shell = ["/bin/ash", "-c"];
        let base = image(serde_json::json!({ "shell": shell }));
        assert_eq!(base.config.shell, shell);
        assert!(base.check_on_build("app").is_ok());
    }

    #[test]
    fn an_image_with_instructions_for_builds_is_refused_by_name() {
        let base = image(serde_json::json!({ "on_build": "COPY . /app" }));
        let refused = base.check_on_build("app").unwrap_err().to_string();
        for part in ["the image app", "ONBUILD", "COPY . /app"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
