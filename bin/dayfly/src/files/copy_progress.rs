//! What a person sees of a copy that takes long.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use crate::printer::Printer;

/// A copy that is done sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(700);
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Bytes that have moved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moved(Arc<AtomicU64>);

impl Moved {
    pub(crate) fn add(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does the work and meanwhile shows how far it is, on a terminal.
pub(crate) async fn show<T>(
    printer: &Printer,
    moved: &Moved,
    total: Option<u64>,
    work: impl Future<Output = T>,
) -> T {
    if !printer.can_redraw() || printer.is_json() {
        return work.await;
    }
    let start = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut pause = PATIENCE;
    let mut is_drawn = false;
    loop {
        if let Ok(outcome) = tokio::time::timeout(pause, work.as_mut()).await {
            if is_drawn {
                printer.redraw("");
            }
            return outcome;
        }
        printer.redraw(&words(moved.get(), total, start.elapsed()));
        is_drawn = true;
        pause = REDRAW_INTERVAL;
    }
}

fn words(moved: u64, total: Option<u64>, elapsed: Duration) -> String {
    let milliseconds = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let pace = size(moved.saturating_mul(1000) / milliseconds);
    match total.filter(|total| *total > 0) {
        Some(total) => {
            let percent = moved.saturating_mul(100) / total;
            format!(
                "{percent:3} %  {} of {}, {pace}/s",
                size(moved),
                size(total)
            )
        }
        None => format!("{}, {pace}/s", size(moved)),
    }
}

/// A size for people: one digit behind the point.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes.saturating_mul(10) / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < units.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

/// Counts what is read through it.
#[derive(Debug)]
pub(crate) struct Counted<R> {
    inner: R,
    moved: Moved,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R, moved: &Moved) -> Self {
        Self {
            inner,
            moved: moved.clone(),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.moved.add(buffer.filled().len() - before);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (104_857_600, "100.0 MiB"),
            (5 << 30, "5.0 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn the_line_says_how_far_and_how_fast() {
        let second = Duration::from_secs(1);
        let line = words(50 << 20, Some(100 << 20), second);
        assert_eq!(line, " 50 %  50.0 MiB of 100.0 MiB, 50.0 MiB/s");
        assert_eq!(words(1 << 20, None, second), "1.0 MiB, 1.0 MiB/s");
    }
}
