//! The bytes of a layer on their way to a file, over as many connections as it takes.

use std::path::Path;

use bytes::Buf as _;
use dayfly_types::limits::REGISTRY_LAYER_DEADLINE;
use reqwest::header::CONTENT_RANGE;
use reqwest::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::RegistryError;
use super::request::{Asker, Failure, Question, Tries, broken, shown};
use crate::blob::{FetchBlobError, Piece, PieceReader, write_verified};
use crate::document::LayerBlob;

/// Pieces between the connection and the disk.
const PIECES_MAX: usize = 16;

/// A layer that is on its way.
struct Transfer<'a> {
    asker: &'a Asker,
    question: Question,
    size: u64,
    pieces: mpsc::Sender<Piece>,
    progress: &'a (dyn Fn(u64) + Sync),
    done: u64,
}

pub(super) async fn transfer(
    asker: &Asker,
    question: Question,
    layer: &LayerBlob,
    into: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), FetchBlobError> {
    let (pieces, received) = mpsc::channel(PIECES_MAX);
    let (written_layer, into) = (layer.clone(), into.to_owned());
    // Ends with an error, and removes what it wrote, when the sender is dropped without an end.
    let writer = spawn_blocking(move || {
        write_verified(PieceReader::new(received), &written_layer, &into, |_| true)
    });
    let mut under_way = Transfer {
        asker,
        question,
        size: layer.size,
        pieces,
        progress,
        done: 0,
    };
    let moved = tokio::time::timeout(REGISTRY_LAYER_DEADLINE, under_way.run()).await;
    let host = shown(&asker.registry);
    drop(under_way);
    let written = writer.await.map_err(|_| FetchBlobError::GivenUp)?;
    match moved.unwrap_or(Err(RegistryError::Slow { host })) {
        // Then the writer knows better why.
        Ok(()) | Err(RegistryError::Stopped) => written,
        Err(error) => Err(error.into()),
    }
}

impl Transfer<'_> {
    async fn run(&mut self) -> Result<(), RegistryError> {
        let mut tries = Tries::default();
        while let Err(failure) = self.attempt().await {
            tries.wait(failure).await?;
        }
        let sent = self.pieces.send(Piece::End).await;
        sent.map_err(|_| RegistryError::Stopped)
    }

    /// Goes on where the last one broke.
    async fn attempt(&mut self) -> Result<(), Failure> {
        if self.done > 0 && self.done == self.size {
            return Ok(());
        }
        self.question.from = (self.done > 0).then_some(self.done);
        let mut response = self.asker.get(&self.question).await?;
        let url = response.url().clone();
        let host = || shown(&url);
        let wanted = self.size;
        let other_size = || RegistryError::OtherSize {
            host: host(),
            wanted,
        };
        let mut known = self.already_known(&response)?;
        let coming = self.size - self.done + known;
        if response
            .content_length()
            .is_some_and(|length| length != coming)
        {
            return Err(other_size().into());
        }
        while let Some(mut piece) = response.chunk().await.map_err(|e| broken(&url, e))? {
            let skipped = usize::try_from(known)
                .unwrap_or(usize::MAX)
                .min(piece.len());
            piece.advance(skipped);
            known -= skipped as u64;
            if piece.is_empty() {
                continue;
            }
            let done = self.done + piece.len() as u64;
            if done > self.size {
                return Err(other_size().into());
            }
            let sent = self.pieces.send(Piece::Bytes(piece)).await;
            sent.map_err(|_| RegistryError::Stopped)?;
            self.done = done;
            (self.progress)(done);
        }
        match self.done == self.size {
            true => Ok(()),
            false => Err(other_size().into()),
        }
    }

    /// How many bytes of what is coming are here already: all, where a registry begins again.
    fn already_known(&self, response: &Response) -> Result<u64, RegistryError> {
        if response.status() == StatusCode::OK {
            return Ok(self.done);
        }
        let last = self.size.saturating_sub(1);
        let wanted = format!("bytes {}-{last}/{}", self.done, self.size);
        let found = response.headers().get(CONTENT_RANGE);
        match found.is_some_and(|found| self.done > 0 && found.as_bytes() == wanted.as_bytes()) {
            true => Ok(0),
            false => Err(RegistryError::OtherPart {
                host: shown(response.url()),
            }),
        }
    }
}
