//! What happens to sandboxes, as server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use dayfly_api::SandboxEvent;
use http::HeaderMap;

use crate::admission::limit::Permit;
use crate::admission::rates::WatchUnderWay;
use crate::control::Control;
use crate::http::answer::SearchRefusals;
use crate::http::auth::Caller;
use crate::http::error::ApiError;
use crate::http::parameter::{EventCursor, parameters};
use crate::http::sse;
use crate::store::{EventRow, StoreError};
use crate::tenancy::whose::{Whose, WhoseParameter};
use crate::time::rfc3339;

/// Events that are read at once.
const PAGE: i64 = 256;
/// After the database could not be read.
const RETRY: Duration = Duration::from_millis(500);

parameters! {
    Query EventParameter {
        /// The `cursor` of the last event that was seen; `0` for all that are kept. `Last-Event-ID`
        /// does the same. Default: only what happens from now on.
        after: Option<EventCursor>,
    }
}

/// What happens to the sandboxes of this project, as server-sent events named `sandbox`, for as
/// long as the caller stays. Each has its cursor as `id`, from which a later request goes on;
/// events are kept for a week.
#[utoipa::path(get, path = "/v1/events", operation_id = "follow_events", tag = "projects",
    params(EventParameter, WhoseParameter),
    responses((status = 200, content_type = "text/event-stream", body = SandboxEvent), SearchRefusals))]
pub(crate) async fn follow(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: WhoseParameter,
    EventParameter { after }: EventParameter,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let whose = whose.of(&control, &caller).await?;
    let after = sse::beginning(after, &headers)?;
    let share = control.rates.watch(&caller.project, Instant::now())?;
    let place = control.limits.watch(&caller.project)?;
    let after = match after {
        Some(after) => after,
        None => match &whose {
            Whose::One(project) => control.store.last_event(project).await?,
            Whose::Everybody => control.store.last_of_all_events().await?,
        },
    };
    let stream = Stream {
        control,
        whose,
        after,
        // Headers go out with the first byte.
        pending: VecDeque::from([Bytes::from_static(sse::COMMENT)]),
        _place: (place, share),
    };
    Ok(sse::response(futures::stream::unfold(
        stream,
        async |mut stream| Some((stream.next().await, stream)),
    )))
}

struct Stream {
    control: Arc<Control>,
    whose: Whose,
    after: i64,
    pending: VecDeque<Bytes>,
    _place: (Permit, WatchUnderWay),
}

impl Stream {
    async fn read(&self) -> Result<Vec<EventRow>, StoreError> {
        let store = &self.control.store;
        match &self.whose {
            Whose::One(project) => store.events(project, self.after, PAGE).await,
            Whose::Everybody => store.all_events(self.after, PAGE).await,
        }
    }

    async fn next(&mut self) -> Bytes {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            let signal = self.control.store.new_event();
            let told = signal.notified();
            let mut told = std::pin::pin!(told);
            // Before the look, so that what is written in between is not missed.
            told.as_mut().enable();
            match self.read().await {
                Ok(rows) if !rows.is_empty() => {
                    for row in rows {
                        self.after = row.seq;
                        self.pending.push_back(event(row, &self.whose));
                    }
                }
                Ok(_) => {
                    if tokio::time::timeout(sse::COMMENT_INTERVAL, told)
                        .await
                        .is_err()
                    {
                        return Bytes::from_static(sse::COMMENT);
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "events cannot be read"
                    );
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

fn event(row: EventRow, whose: &Whose) -> Bytes {
    let data = present(row, whose);
    let id = format!("id: {}\n", data.cursor);
    [Bytes::from(id), sse::event("sandbox", &data)]
        .concat()
        .into()
}

pub(crate) fn present(row: EventRow, whose: &Whose) -> SandboxEvent {
    SandboxEvent {
        project: whose.named(&row.project_id),
        cursor: row.seq.to_string(),
        at: rfc3339(row.at_ms),
        sandbox_id: row.sandbox_id,
        state: row.state,
        reason: row.reason,
    }
}
