//! What the programs of one installation share: where its data is, how its running daemon is
//! reached, which programs lie beside each other, and how each of them runs and answers.
//!
//! It must not know sandboxes, engines, or what is inside of control and node. Start reading at
//! [`DataDirectory`].
#![forbid(unsafe_code)]

mod admin_client;
mod daemon_lock;
mod data_directory;
pub mod output;
pub mod runtime;
mod sibling;

pub use admin_client::{AdminClientError, admin_client, is_key_accepted};
pub use daemon_lock::{DaemonLock, LockError};
pub use data_directory::{DataDirectory, DataDirectoryError, Instance, RunningDaemon};
pub use sibling::{SiblingError, sibling_program};
