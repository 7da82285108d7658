//! Bytes in both directions, as they are.
//!
//! A connection with little to say costs a buffer while bytes come and nothing while none do. One
//! with much to say is moved inside the kernel, for as long as it has.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use super::splice::{Moved, Pipe};
use crate::connection::{Dialed, Session, Socket};

/// Small, because a guest that reads nothing can have one waiting for each of its connections.
const BUFFER_BYTES: usize = 16 << 10;
/// So much without a pause is much.
const MUCH_BYTES: usize = 128 << 10;
/// A pause as long as this gives the pipe back.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends on what was read of the guest already, then everything, until both sides are done.
pub(super) async fn run(session: &Session, guest: &Socket, dialed: &Dialed, opening: Vec<u8>) {
    let outside = &dialed.socket;
    let upwards = async {
        outside.write_all(&opening).await?;
        drop(opening);
        pump(guest, outside).await
    };
    let done = tokio::try_join!(upwards, pump(outside, guest));
    if done.is_err() {
        // One side was reset, so the other one hears of it in the same way.
        session.reset();
    }
}

/// How a direction came to a stop.
#[derive(Debug, PartialEq, Eq)]
enum Stopped {
    Quiet,
    /// It has much to say.
    Busy,
    End,
}

async fn pump(from: &Socket, to: &Socket) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut stopped = copy(from, to).await?;
        // Without a pipe, because there are no descriptors left, copying goes on.
        if stopped == Stopped::Busy
            && let Ok(pipe) = Pipe::new()
        {
            stopped = splice(&pipe, from, to).await?;
        }
        if stopped == Stopped::End {
            // The other side is not there any more when this fails, which it will say by itself.
            let _ = to.finish();
            return Ok(());
        }
    }
}

async fn copy(from: &Socket, to: &Socket) -> io::Result<Stopped> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut copied = 0;
    while copied < MUCH_BYTES {
        from.paced().await;
        match from.try_read(&mut buffer) {
            Ok(0) => return Ok(Stopped::End),
            Ok(count) => {
                to.write_all(&buffer[..count]).await?;
                copied += count;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Stopped::Quiet),
            Err(error) => return Err(error),
        }
    }
    Ok(Stopped::Busy)
}

async fn splice(pipe: &Pipe, from: &Socket, to: &Socket) -> io::Result<Stopped> {
    loop {
        match pipe.pass(from, to).await? {
            Moved::Some => from.paced().await,
            Moved::End => return Ok(Stopped::End),
            Moved::Nothing => match timeout(PAUSE, from.readable()).await {
                Ok(readable) => readable?,
                Err(_) => return Ok(Stopped::Quiet),
            },
        }
    }
}
