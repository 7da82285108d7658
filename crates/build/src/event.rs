//! What is told of a build while it goes on.

use std::time::Duration;

use serde::Serialize;

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum BuildEvent {
    /// A base image is fetched and baked.
    Base {
        image: String,
        percent: u8,
        detail: Option<String>,
    },
    /// A stage begins.
    Stage { name: String, steps: usize },
    /// A step was done by an earlier build.
    Cached {
        number: usize,
        steps: usize,
        text: String,
    },
    /// A step begins.
    Started {
        number: usize,
        steps: usize,
        text: String,
    },
    /// What a step said: whole lines, or the beginning of a long one.
    Output { text: String, is_error: bool },
    /// A step is done, and its snapshot is kept.
    Finished {
        number: usize,
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
    },
    /// The template is baked.
    Baking { percent: u8, detail: Option<String> },
}

fn milliseconds<S: serde::Serializer>(
    elapsed: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Who is told.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(BuildEvent) + Send);
