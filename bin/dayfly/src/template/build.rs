//! `dayfly template build`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use dayfly_build::{Build, BuildContext, BuildError, BuildEvent, BuildWish, Built};
use serde::Serialize;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::template::args::BuildArgs;
use crate::template::build_view::BuildView;

const LATEST: &str = "latest";
const DOCKERFILE: &str = "Dockerfile";

/// The end of a build, for programs.
#[derive(Serialize)]
struct Report<'a> {
    event: &'static str,
    name: &'a str,
    tag: &'a str,
    version: &'a str,
    steps: usize,
    cached: usize,
    elapsed_ms: u64,
}

pub(crate) async fn build(session: &Session<'_>, args: &BuildArgs) -> Result<(), CommandError> {
    let wish = wish(args)?;
    let root = args.directory.clone();
    let opened = tokio::task::spawn_blocking(move || BuildContext::open(root)).await;
    let context = match opened {
        Ok(Ok(context)) => context,
        Ok(Err(error)) => return Err(refused(session, &wish, BuildError::Context(error))),
        Err(_) => return Err(stopped()),
    };
    let began = Instant::now();
    let mut view = BuildView::new(session.printer);
    let outcome = {
        let mut tell = |event: BuildEvent| view.show(&event);
        Build::new(&session.client, &wish, &context, &mut tell)
            .run()
            .await
    };
    view.end();
    match outcome {
        Ok(built) => done(session, &wish, &built, began),
        Err(error) => Err(refused(session, &wish, error)),
    }
}

fn stopped() -> CommandError {
    CommandError::Refused {
        what: "the build stopped".to_owned(),
        hint: "run it again; steps that were done are kept",
    }
}

fn wish(args: &BuildArgs) -> Result<BuildWish, CommandError> {
    let (name, tag) = named(args)?;
    let file = args
        .file
        .clone()
        .unwrap_or_else(|| args.directory.join(DOCKERFILE));
    let dockerfile = std::fs::read_to_string(&file)
        .map_err(|source| CommandError::local(format!("cannot read {}", file.display()), source))?;
    Ok(BuildWish {
        name,
        tag,
        description: args.description.clone().unwrap_or_default(),
        dockerfile,
        target: args.target.clone(),
        arguments: args.build_arg.iter().cloned().collect(),
        memory_mb: args.memory,
        cpu: args.cpu,
        disk_gb: args.disk_gb,
        network: args.network.wish()?,
        is_fresh: args.no_cache,
    })
}

/// The name and the tag that are asked for, or those that follow from the directory.
fn named(args: &BuildArgs) -> Result<(String, String), CommandError> {
    if let Some(text) = &args.tag {
        let (name, tag) = text.split_once(':').unwrap_or((text, LATEST));
        return Ok((name.to_owned(), tag.to_owned()));
    }
    let whole: PathBuf = std::fs::canonicalize(&args.directory).map_err(|source| {
        CommandError::local(format!("cannot read {}", args.directory.display()), source)
    })?;
    let name = whole
        .file_name()
        .map(Path::new)
        .map(|name| name.to_string_lossy());
    let name = name.as_deref().map(label).unwrap_or_default();
    if name.is_empty() {
        return Err(CommandError::Usage {
            what: "the directory has no name that a template could have".to_owned(),
            hint: "give one: --tag NAME",
        });
    }
    Ok((name, LATEST.to_owned()))
}

/// A directory's name as a template's.
fn label(text: &str) -> String {
    let plain = |letter: char| {
        let letter = letter.to_ascii_lowercase();
        if letter.is_ascii_lowercase() || letter.is_ascii_digit() {
            letter
        } else {
            '-'
        }
    };
    let text: String = text.chars().map(plain).take(50).collect();
    text.trim_matches('-').to_owned()
}

fn done(
    session: &Session<'_>,
    wish: &BuildWish,
    built: &Built,
    began: Instant,
) -> Result<(), CommandError> {
    let elapsed = began.elapsed();
    if session.printer.is_json() {
        return session.printer.json(&Report {
            event: "built",
            name: &wish.name,
            tag: &wish.tag,
            version: &built.version.id,
            steps: built.steps,
            cached: built.cached,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        });
    }
    let how = if built.is_known { "unchanged" } else { "built" };
    let (name, tag) = (&wish.name, &wish.tag);
    session.printer.note(&format!(
        "{how} {name}:{tag} in {:.1} s ({} of {} steps from the cache)",
        elapsed.as_secs_f64(),
        built.cached,
        built.steps
    ));
    session
        .printer
        .note(&format!("to use it: dayfly create --template {name}:{tag}"));
    session.printer.line(&built.version.id)
}

/// Says why there is no template, and how to look at a step that failed.
fn refused(session: &Session<'_>, wish: &BuildWish, error: BuildError) -> CommandError {
    match error {
        BuildError::Call { what, source } => {
            CommandError::call(format!("cannot {what}"), source).about(Subject::Template)
        }
        BuildError::Image { image, source } => {
            CommandError::call(format!("cannot get the image {image}"), source)
                .about(Subject::Template)
        }
        BuildError::Step(step) => {
            for line in &step.tail {
                session.printer.note(&format!("  | {line}"));
            }
            session.printer.note(&format!(
                "to look: dayfly template debug {} (for the next minutes)",
                step.sandbox
            ));
            CommandError::Refused {
                what: BuildError::Step(step).to_string(),
                hint: "correct it and build again; the steps before it are kept",
            }
        }
        error @ (BuildError::Dockerfile(_)
        | BuildError::Context(_)
        | BuildError::Unsupported { .. }
        | BuildError::ImageFailed { .. }
        | BuildError::NoSource { .. }
        | BuildError::Template { .. }) => CommandError::Refused {
            what: format!(
                "template {}: {}",
                wish.name,
                dayfly_types::error_chain(&error)
            ),
            hint: "correct it and build again; steps that were done are kept",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gives_its_name() {
        for (text, name) in [("My App_2", "my-app-2"), ("..", ""), ("web", "web")] {
            assert_eq!(label(text), name);
        }
    }
}
