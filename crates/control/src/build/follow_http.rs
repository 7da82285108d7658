//! The events of a build, and the same as lines of text.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use dayfly_api::TemplateBuildEvent;
use futures::Stream;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use tokio::sync::watch;

use super::http::BuildParameter;
use super::log::{LogEntry, LogPage};
use super::read::{self, FoundBuild};
use super::running::LiveBuild;
use super::start::last_event;
use crate::admission::limit::Permit;
use crate::admission::rates::WatchUnderWay;
use crate::control::Control;
use crate::http::answer::SearchRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{EventCursor, LooseFlag, parameters};
use crate::http::sse;

const EVENT_STREAM: &str = "text/event-stream";
/// The end of followed lines, as both published clients look for it.
const END_OF_LINES: &[u8] = b"event: done\ndata: end\n\n";
/// What one of them takes for the end wherever it stands, and what is told instead.
const FALSE_END: (&str, &str) = ("event: done", "event:done");

parameters! {
    Query BuildEventParameter {
        /// The `id` of the last event that was seen. `Last-Event-ID` does the same. Default: from
        /// the first one that is kept.
        after: Option<EventCursor>,
    }

    Query BuildLogParameter {
        /// Whether to wait for what the build will say. `true`, `1`, `false` or `0`.
        follow: LooseFlag,
    }
}

/// The events of a build, as server-sent events with a number as `id`, until the last one, which is
/// `built` or `failed`. A reader that was cut off goes on behind the number of the last that it saw.
/// Of a long build the oldest lines of steps are left out, with `dropped` in their place; of one that
/// ended long ago, or with an earlier process of the server, there is only the last event.
#[utoipa::path(get, path = "/v1/templates/builds/{id}/events", operation_id = "follow_build", tag = "templates",
    params(BuildParameter, BuildEventParameter),
    responses((status = 200, content_type = "text/event-stream", body = TemplateBuildEvent), SearchRefusals))]
pub(crate) async fn events(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    BuildParameter { id }: BuildParameter,
    BuildEventParameter { after }: BuildEventParameter,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = sse::beginning(after, &headers)?;
    let after = after
        .and_then(|after| u64::try_from(after).ok())
        .unwrap_or(0);
    let found = read::find(&control, &caller.project, &id).await?;
    let place = Place::take(&control, &caller)?;
    let source = Source::of(found, after);
    Ok(sse::response(source.stream(Shape::Events, true, place)))
}

/// What a build says, as lines of text. With `follow`, or for who accepts nothing but server-sent
/// events, each line is the data of one, and an event `done` is the last.
#[utoipa::path(get, path = "/v1/templates/builds/{id}/logs", operation_id = "read_build_logs", tag = "templates",
    params(BuildParameter, BuildLogParameter),
    responses((status = 200, content((String = "text/plain"), (String = "text/event-stream"))), SearchRefusals))]
pub(crate) async fn logs(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    BuildParameter { id }: BuildParameter,
    BuildLogParameter { follow }: BuildLogParameter,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = read::find(&control, &caller.project, &id).await?;
    let accepted = headers.get(ACCEPT);
    // Both published clients read events here also when they do not follow.
    let wants_events = accepted.is_some_and(|accepted| accepted == EVENT_STREAM);
    if follow || wants_events {
        let place = Place::take(&control, &caller)?;
        let source = Source::of(found, 0);
        return Ok(sse::response(source.stream(Shape::Lines, follow, place)));
    }
    let mut source = Source::of(found, 0);
    let mut text = String::new();
    loop {
        let page = source.page();
        if page.entries.is_empty() {
            break;
        }
        for line in page.entries.iter().flat_map(|entry| lines(&entry.event)) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((headers, text).into_response())
}

/// The right to stay for as long as a reader stays.
struct Place {
    _held: (Permit, WatchUnderWay),
}

impl Place {
    fn take(control: &Control, caller: &Caller) -> Result<Self, ApiError> {
        let share = control.rates.watch(&caller.project, Instant::now())?;
        let place = control.limits.watch(&caller.project)?;
        let _held = (place, share);
        Ok(Self { _held })
    }
}

/// How events are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Events,
    Lines,
}

/// Events of a build behind a number.
struct Source {
    from: From,
    after: u64,
}

enum From {
    Live(Arc<LiveBuild>, watch::Receiver<u64>),
    /// All that is known of a build of which nothing else is.
    Last(Arc<LogEntry>),
}

impl Source {
    fn of(found: FoundBuild, after: u64) -> Self {
        let from = match found {
            FoundBuild::Live(live) => {
                let watch = live.log.watch();
                From::Live(live, watch)
            }
            FoundBuild::Row(row) => {
                let number = after.saturating_add(1);
                From::Last(Arc::new(LogEntry::new(number, last_event(&row))))
            }
        };
        Self { from, after }
    }

    /// What there is now behind what was read.
    fn page(&mut self) -> LogPage {
        let page = match &self.from {
            From::Live(live, _) => live.log.after(self.after),
            From::Last(entry) => LogPage {
                entries: Some(entry)
                    .filter(|entry| entry.id > self.after)
                    .map(Arc::clone)
                    .into_iter()
                    .collect(),
                is_end: true,
            },
        };
        if let Some(last) = page.entries.last() {
            self.after = last.id;
        }
        page
    }

    /// Waits until there may be more; `false` after a long silence.
    async fn wait(&mut self) -> bool {
        let From::Live(_, watch) = &mut self.from else {
            return true;
        };
        let changed = tokio::time::timeout(sse::COMMENT_INTERVAL, watch.changed());
        changed.await.is_ok()
    }

    fn stream(
        self,
        shape: Shape,
        is_followed: bool,
        place: Place,
    ) -> impl Stream<Item = Bytes> + Send + 'static {
        // Headers go out with the first byte.
        let pending = VecDeque::from([Bytes::from_static(sse::COMMENT)]);
        let state = (self, pending, false, place);
        futures::stream::unfold(
            state,
            move |(mut source, mut pending, mut is_over, place)| async move {
                loop {
                    if let Some(event) = pending.pop_front() {
                        return Some((event, (source, pending, is_over, place)));
                    }
                    if is_over {
                        return None;
                    }
                    let page = source.page();
                    for entry in &page.entries {
                        tell(entry, shape, &mut pending);
                    }
                    is_over = page.is_end || (!is_followed && page.entries.is_empty());
                    if is_over && shape == Shape::Lines {
                        pending.push_back(Bytes::from_static(END_OF_LINES));
                    }
                    if page.entries.is_empty() && !is_over && !source.wait().await {
                        pending.push_back(Bytes::from_static(sse::COMMENT));
                    }
                }
            },
        )
    }
}

fn tell(entry: &LogEntry, shape: Shape, out: &mut VecDeque<Bytes>) {
    match shape {
        Shape::Events => {
            let event = format!("id: {}\ndata: {}\n\n", entry.id, entry.json);
            out.push_back(event.into());
        }
        Shape::Lines => {
            for line in lines(&entry.event) {
                let line = line.replace(FALSE_END.0, FALSE_END.1);
                out.push_back(format!("data: {line}\n\n").into());
            }
        }
    }
}

/// An event for people. What a step said has a mark before it, so that none of it looks like ours.
fn lines(event: &TemplateBuildEvent) -> Vec<String> {
    let progress = |what: &str, percent: u8, detail: &Option<String>| {
        let detail = detail.as_deref().unwrap_or("waiting");
        vec![plain(&format!("{what}: {detail}, {percent} %"))]
    };
    match event {
        TemplateBuildEvent::Base {
            image,
            percent,
            detail,
        } => progress(&format!("image {image}"), *percent, detail),
        TemplateBuildEvent::Stage { name, steps } => vec![plain(&format!("{name}: {steps} steps"))],
        TemplateBuildEvent::Cached {
            number,
            steps,
            text,
        } => vec![plain(&format!("[{number}/{steps}] cached  {text}"))],
        TemplateBuildEvent::Started {
            number,
            steps,
            text,
        } => vec![plain(&format!("[{number}/{steps}] {text}"))],
        TemplateBuildEvent::Output { text, .. } => vec![plain(&format!("| {text}"))],
        TemplateBuildEvent::Finished { number, elapsed_ms } => {
            let (seconds, rest) = (elapsed_ms / 1000, elapsed_ms % 1000 / 100);
            vec![format!("step {number} is done in {seconds}.{rest} s")]
        }
        TemplateBuildEvent::Baking { percent, detail } => progress("template", *percent, detail),
        TemplateBuildEvent::Dropped { lines } => vec![format!("({lines} lines are left out)")],
        TemplateBuildEvent::Built {
            name,
            tag,
            version,
            steps,
            cached,
            ..
        } => vec![format!(
            "built {name}:{tag} as {version} ({cached} of {steps} steps from the cache)"
        )],
        TemplateBuildEvent::Failed { error, step } => {
            let mut told = vec![plain(&format!("failed: {error}"))];
            if let Some(step) = step {
                told.push(format!("to look: dayfly template debug {}", step.sandbox));
            }
            told
        }
    }
}

/// A text as one line, wherever a client may break lines.
fn plain(text: &str) -> String {
    let is_break = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    text.replace(|letter: char| letter != '\t' && is_break(letter), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_step_says_ends_the_lines_or_breaks_them() {
        for text in [
            "end",
            "event: done",
            "{\"line\":\"x\"}",
            "a\u{2028}b\u{85}c\nd",
        ] {
            let event = TemplateBuildEvent::Output {
                text: text.to_owned(),
                is_error: false,
            };
            let mut told = VecDeque::new();
            tell(&LogEntry::new(1, event), Shape::Lines, &mut told);
            let told = String::from_utf8(told[0].to_vec()).unwrap();
            let data = told.strip_prefix("data: | ").unwrap();
            let data = data.strip_suffix("\n\n").unwrap();
            let breaks = ['\n', '\u{85}', '\u{2028}'];
            assert!(
                !data.contains(breaks) && !told.contains("event: done"),
                "{told}"
            );
        }
    }
}
