//! Templates in other sizes: `dayfly template bake --memory`.

use std::time::Instant;

use dayfly_api::{BakeTemplate, Template, TemplateState, TemplateVariant};
use dayfly_client::{WaitProgress, WaitReason};

use super::commands::LOOK_AGAIN;
use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::sandbox::progress::Progress;

/// One size for each amount of memory, or one with the template's own.
pub(super) fn sizes(memory: &[u64], cpu: Option<u64>) -> Vec<BakeTemplate> {
    let size = |memory_mb| BakeTemplate { memory_mb, cpu };
    if memory.is_empty() {
        return vec![size(None)];
    }
    memory.iter().map(|mib| size(Some(*mib))).collect()
}

pub(super) fn size(variant: &TemplateVariant) -> String {
    format!("{} MiB, {} CPU", variant.memory_mb, variant.cpu)
}

pub(super) fn state(variant: &TemplateVariant) -> String {
    let took = variant.bake_ms.map_or_else(String::new, |ms| {
        format!(", baked in {}.{} s", ms / 1000, ms % 1000 / 100)
    });
    match variant.state {
        TemplateState::NotBaked => "not baked".to_owned(),
        TemplateState::Waiting => "waiting".to_owned(),
        TemplateState::Baking => format!("baking {} %", variant.percent),
        TemplateState::Ready => format!("ready{took}, {} MiB", variant.size_bytes >> 20),
        TemplateState::Failed => {
            let reason = variant.detail.as_deref().unwrap_or_default();
            format!("failed: {reason}")
        }
    }
}

/// Has a template baked in other sizes and shows how far they are, if its caller waits.
pub(super) async fn bake(
    session: &Session<'_>,
    name: &str,
    sizes: &[BakeTemplate],
    wait: bool,
) -> Result<(), CommandError> {
    let failed = |source| {
        CommandError::call(format!("cannot bake template {name}"), source).about(Subject::Template)
    };
    let mut template = None;
    for size in sizes {
        let ordered = session.client.bake_variant(name, size).await;
        template = Some(ordered.map_err(failed)?);
    }
    let Some(mut template) = template else {
        return Ok(());
    };
    let started = Instant::now();
    let mut progress = Progress::new(session.printer, Some(name));
    while let Some(news) = wait.then(|| news(&template, sizes)).flatten() {
        progress.update(&WaitProgress {
            waited: started.elapsed(),
            ..news
        });
        tokio::time::sleep(LOOK_AGAIN).await;
        template = session.client.template(name).await.map_err(failed)?;
    }
    drop(progress);
    let meant: Vec<&TemplateVariant> = meant(&template, sizes).collect();
    let broken = meant.iter().find(|one| one.state == TemplateState::Failed);
    if let Some(broken) = broken.filter(|_| wait) {
        let (size, state) = (size(broken), state(broken));
        return Err(CommandError::Refused {
            what: format!("template {name} could not be baked with {size}: {state}"),
            hint: "the daemon's log says more; the same command tries again",
        });
    }
    if session.printer.is_json() {
        return session.printer.json(&template);
    }
    for variant in meant {
        let (size, state) = (size(variant), state(variant));
        let words = format!("template {name} with {size}: {state}");
        session.printer.note(&words);
    }
    Ok(())
}

/// The variants among those of a template that were asked for. The template's own size is none.
fn meant<'t>(
    template: &'t Template,
    sizes: &'t [BakeTemplate],
) -> impl Iterator<Item = &'t TemplateVariant> {
    let is_meant = |variant: &&TemplateVariant| {
        sizes.iter().any(|size| {
            let memory = size.memory_mb.unwrap_or(template.memory_mb);
            let cpu = size.cpu.unwrap_or_else(|| u64::from(template.cpu));
            memory == variant.memory_mb && cpu == u64::from(variant.cpu)
        })
    };
    template.variants.iter().filter(is_meant)
}

/// What to say while one of them is not settled.
fn news(template: &Template, sizes: &[BakeTemplate]) -> Option<WaitProgress> {
    let mut open = meant(template, sizes)
        .filter(|one| !matches!(one.state, TemplateState::Ready | TemplateState::Failed));
    let first = open.next()?;
    // One is baked after the other.
    let now = open
        .find(|one| one.state == TemplateState::Baking)
        .filter(|_| first.state != TemplateState::Baking)
        .unwrap_or(first);
    Some(WaitProgress {
        reason: WaitReason::TemplateBaking,
        percent: Some(now.percent),
        message: now.detail.clone().unwrap_or_default(),
        waited: std::time::Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_amount_of_memory_is_a_size() {
        let cpu = Some(2);
        let of = |memory_mb| BakeTemplate { memory_mb, cpu };
        assert_eq!(sizes(&[1024, 4096], cpu), [of(Some(1024)), of(Some(4096))]);
        assert_eq!(sizes(&[], cpu), [of(None)]);
    }
}
