//! Making a sandbox, with everything that can come in between.

use dayfly_api::{Advice, CreateSandbox, Sandbox, Template, TemplateState};
use dayfly_client::ClientError;
use dayfly_types::ErrorCode;
use tokio::sync::Notify;

use crate::args::CreationArgs;
use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::sandbox::prefixes;
use crate::sandbox::progress::Progress;
use crate::signals::StopSignals;
use crate::{durations, pairs};

/// The request that the shared flags ask for.
pub(crate) async fn request(
    session: &Session<'_>,
    args: &CreationArgs,
) -> Result<CreateSandbox, CommandError> {
    let network = args.network.wish()?;
    let from_snapshot = match &args.from_snapshot {
        Some(text) => Some(prefixes::resolve_snapshot(&session.client, text).await?),
        None => None,
    };
    Ok(CreateSandbox {
        template: args.template.clone(),
        image: args.image.clone(),
        name: args.name.clone(),
        from_snapshot,
        disk_only: args.disk_only.then_some(true),
        ttl_seconds: args.ttl.map(durations::seconds_up),
        idle_seconds: args.idle.map(durations::seconds_up),
        on_timeout: args.on_timeout.map(Into::into),
        volumes: (!args.volume.is_empty()).then(|| args.volume.clone()),
        metadata: pairs::given(&args.metadata),
        cpu: args.cpu,
        memory_mb: args.memory,
        disk_gb: args.disk_gb,
        class: args.class.map(Into::into),
        network,
        ..CreateSandbox::default()
    })
}

/// Creates a sandbox and waits for its template if need be. After a signal nothing is left.
pub(crate) async fn create(
    session: &Session<'_>,
    args: &CreationArgs,
    request: &CreateSandbox,
    signals: &mut StopSignals,
) -> Result<Sandbox, CommandError> {
    if args.disk_only {
        let words =
            "a machine boots on the disk of the snapshot, which takes longer than a restore";
        session.printer.note(words);
    }
    let stop = Notify::new();
    let creation = async {
        if args.no_wait {
            return session.client.create_sandbox(request).await.map(Some);
        }
        let mut progress = Progress::new(session.printer, request.template.as_deref());
        let on_progress = |news: &_| progress.update(news);
        session
            .client
            .create_when_ready_unless(request, stop.notified(), on_progress)
            .await
    };
    tokio::pin!(creation);
    let signal = tokio::select! {
        outcome = &mut creation => return finish(session, request, outcome).await,
        signal = signals.next() => signal,
    };
    session.printer.note("stopping");
    stop.notify_one();
    // A request that is under way may still make a sandbox, which only its answer names.
    let outcome = tokio::select! {
        outcome = &mut creation => outcome,
        _ = signals.next() => {
            session.printer.warning("a sandbox may have been created; `dayfly ls` would show it");
            Ok(None)
        }
    };
    if let Ok(Some(sandbox)) = outcome {
        delete(session, &sandbox.id, signals).await;
    }
    Err(CommandError::Interrupted { signal })
}

async fn finish(
    session: &Session<'_>,
    request: &CreateSandbox,
    outcome: Result<Option<Sandbox>, ClientError>,
) -> Result<Sandbox, CommandError> {
    match outcome {
        Ok(Some(sandbox)) => Ok(sandbox),
        // Only a stop gives none, and nobody asked for one; say so and not nothing.
        Ok(None) => Err(CommandError::Refused {
            what: "the create was stopped".to_owned(),
            hint: "run the command again",
        }),
        Err(source) => {
            let source = with_reason(session, request, source).await;
            Err(CommandError::call("cannot create a sandbox", source).about(Subject::Origin))
        }
    }
}

/// Adds why a template could not be baked: the refusal does not say it, the template does.
async fn with_reason(
    session: &Session<'_>,
    request: &CreateSandbox,
    error: ClientError,
) -> ClientError {
    let ClientError::Api(mut refusal) = error else {
        return error;
    };
    if refusal.known_code() == Some(ErrorCode::TemplateFailed) {
        let templates = session.client.templates().await.unwrap_or_default();
        // Which one is the default, only the server knows; its words name it.
        let is_meant = |template: &Template| match &request.template {
            Some(name) => *name == template.name,
            None => refusal
                .message
                .split([' ', '`', '"'])
                .any(|word| word == template.name),
        };
        let mut meant = templates.into_iter().filter(is_meant);
        if let Some((command, reason)) = meant.find_map(|template| why_failed(request, template)) {
            refusal.message = format!("{}: {reason}", refusal.message);
            refusal.advice = Advice {
                hint: Some(format!("`{command} --wait` tries again")),
                ..Advice::default()
            };
        }
    }
    ClientError::Api(refusal)
}

/// What bakes a template anew in the size of the request, and why it could not be baked.
fn why_failed(request: &CreateSandbox, template: Template) -> Option<(String, String)> {
    let command = format!("dayfly template bake {}", template.name);
    let memory = request.memory_mb.unwrap_or(template.memory_mb);
    let mut variants = template.variants.into_iter();
    let variant = variants
        .find(|one| one.memory_mb == memory && one.state == TemplateState::Failed)
        .filter(|_| request.memory_mb.is_some() || request.cpu.is_some());
    if let Some(variant) = variant {
        let command = format!("{command} --memory {memory} --cpu {}", variant.cpu);
        return Some((command, variant.detail?));
    }
    let is_failed = template.state == TemplateState::Failed;
    is_failed.then_some((command, template.detail?))
}

/// Deletes a sandbox at the end of a command; says whether it is gone. A further signal gives up.
pub(crate) async fn delete(session: &Session<'_>, id: &str, signals: &mut StopSignals) -> bool {
    let failure = tokio::select! {
        outcome = session.client.delete_sandbox(id) => match outcome {
            Ok(()) => return true,
            Err(error) => error.to_string(),
        },
        _ = signals.next() => "stopped".to_owned(),
    };
    let failure = crate::text::visible(&failure);
    session.printer.warning(&format!(
        "sandbox {id} may still exist ({failure}); `dayfly rm {id}` deletes it, \
         and so does its time to live"
    ));
    false
}
