//! Standard input on its way to a command of a guest.

use std::io::Read as _;

use dayfly_client::FollowInput;
use tokio::sync::mpsc;

const PIECE_BYTES: usize = 32 << 10;

/// Passes standard input on until it ends or nobody takes it. In a thread of its own: a read of a
/// terminal cannot be given up, and leaving must not wait for it.
pub(crate) fn pass_on(to: mpsc::Sender<FollowInput>) {
    std::thread::spawn(move || {
        let mut piece = vec![0; PIECE_BYTES];
        let mut stdin = std::io::stdin();
        loop {
            match stdin.read(&mut piece) {
                Ok(0) => {
                    let _ = to.blocking_send(FollowInput::End);
                    return;
                }
                Ok(count) => {
                    let bytes = piece[..count].to_vec().into();
                    if to.blocking_send(FollowInput::Bytes(bytes)).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => {
                    let _ = to.blocking_send(FollowInput::End);
                    return;
                }
            }
        }
    });
}
