//! The parts of a form, of which little is in memory at any time.
//!
//! The parser takes all that there is to take before it looks at it, and keeps the head of a part
//! until it ends, however long that is. So it is given no more than it has used up, and a head that
//! does not end is an error.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use dayfly_types::limits::BUILD_FORM_AHEAD_BYTES_MAX;
use futures::{Stream, StreamExt as _};
use http::HeaderMap;

/// What stands around the head of a part, beside the boundary.
const AROUND_HEAD_BYTES: usize = 8;

/// Why there is no next part, or no next piece of one.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartError {
    #[error("the head of a part is too long")]
    HeadTooLong,
    #[error("the body broke off")]
    Body(#[source] axum::Error),
    #[error("the form cannot be read: {0}")]
    Form(multer::Error),
}

impl From<multer::Error> for PartError {
    fn from(error: multer::Error) -> Self {
        let multer::Error::StreamReadFailed(inner) = error else {
            return Self::Form(error);
        };
        match inner.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::Form(multer::Error::StreamReadFailed(other)),
        }
    }
}

/// A form, part by part.
pub(super) struct Parts {
    parser: multer::Multipart<'static>,
    ahead: Arc<AtomicUsize>,
    boundary_bytes: usize,
}

/// One part.
pub(super) struct Part {
    field: multer::Field<'static>,
    ahead: Arc<AtomicUsize>,
}

impl Parts {
    pub(super) fn new(body: Body, boundary: String) -> Self {
        let ahead = Arc::new(AtomicUsize::new(0));
        let stream = Measured {
            body: body.into_data_stream(),
            ahead: Arc::clone(&ahead),
            refused_at: None,
        };
        let boundary_bytes = boundary.len();
        Self {
            parser: multer::Multipart::new(stream, boundary),
            ahead,
            boundary_bytes,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Part>, PartError> {
        let Some(field) = self.parser.next_field().await? else {
            return Ok(None);
        };
        let used = self.boundary_bytes + AROUND_HEAD_BYTES + head_bytes(field.headers());
        use_up(&self.ahead, used);
        let ahead = Arc::clone(&self.ahead);
        Ok(Some(Part { field, ahead }))
    }
}

impl Part {
    pub(super) fn name(&self) -> Option<&str> {
        self.field.name()
    }

    pub(super) fn has_file_name(&self) -> bool {
        self.field.file_name().is_some()
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, PartError> {
        let piece = self.field.chunk().await?;
        use_up(&self.ahead, piece.as_ref().map_or(0, Bytes::len));
        Ok(piece)
    }
}

fn head_bytes(headers: &HeaderMap) -> usize {
    let lines = headers.iter();
    // Not more than it had: what is missing only makes it a little slower.
    lines
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum()
}

fn use_up(ahead: &AtomicUsize, bytes: usize) {
    let less = |now: usize| Some(now.saturating_sub(bytes));
    let _ = ahead.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

/// A body that stops while too much of it is unused.
struct Measured {
    body: BodyDataStream,
    ahead: Arc<AtomicUsize>,
    /// How much was unused when it last stopped.
    refused_at: Option<usize>,
}

impl Stream for Measured {
    type Item = Result<Bytes, PartError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let ahead = self.ahead.load(Ordering::Acquire);
        if ahead > BUILD_FORM_AHEAD_BYTES_MAX {
            // Nothing was used since: there is no end in what it has.
            if self.refused_at == Some(ahead) {
                return Poll::Ready(Some(Err(PartError::HeadTooLong)));
            }
            self.refused_at = Some(ahead);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.refused_at = None;
        match self.body.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(bytes))) => {
                self.ahead.fetch_add(bytes.len(), Ordering::AcqRel);
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(PartError::Body(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const BOUNDARY: &str = "b0undary";

    fn parts(pieces: Vec<String>) -> Parts {
        let pieces = pieces
            .into_iter()
            .map(|text| Ok::<_, Infallible>(Bytes::from(text)));
        let body = Body::from_stream(futures::stream::iter(pieces));
        Parts::new(body, BOUNDARY.to_owned())
    }

    fn part(name: &str, text: &str) -> String {
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    }

    #[tokio::test]
    async fn a_form_of_many_parts_is_read_whole_and_never_held_whole() {
        let long = "x".repeat(300_000);
        let small = 20_000;
        let mut pieces: Vec<String> = Vec::new();
        // Thousands of parts in each piece, as a fast network has them.
        for _ in 0..20 {
            pieces.push((0..small / 20).map(|_| part("a", "b")).collect());
        }
        pieces.push(part("long", &long));
        pieces.push(format!("--{BOUNDARY}--\r\n"));
        let whole: usize = pieces.iter().map(String::len).sum();
        let largest = pieces.iter().map(String::len).max().unwrap();
        let mut form = parts(pieces);
        let (mut count, mut most, mut read) = (0, 0, 0);
        while let Some(mut part) = form.next().await.unwrap() {
            count += 1;
            most = most.max(form.ahead.load(Ordering::Acquire));
            while let Some(piece) = part.next().await.unwrap() {
                read += piece.len();
            }
        }
        assert_eq!((count, read), (small + 1, small + long.len()));
        // The last piece that it was given may have been all but unused.
        let allowed = BUILD_FORM_AHEAD_BYTES_MAX + largest;
        assert!(most <= allowed && allowed < whole / 2, "{most} of {whole}");
    }

    #[tokio::test]
    async fn a_head_that_does_not_end_is_refused() {
        let begun = format!("--{BOUNDARY}\r\nX: ");
        let endless = std::iter::repeat_n("x".repeat(64 << 10), 100);
        let mut form = parts(std::iter::once(begun).chain(endless).collect());
        let refused = form.next().await.err().unwrap();
        assert!(matches!(refused, PartError::HeadTooLong), "{refused}");
    }

    #[tokio::test]
    async fn a_form_that_breaks_off_is_refused() {
        let mut form = parts(vec![part("a", "b")]);
        let mut first = form.next().await.unwrap().unwrap();
        while let Ok(Some(_)) = first.next().await {}
        drop(first);
        assert!(form.next().await.is_err());
    }
}
