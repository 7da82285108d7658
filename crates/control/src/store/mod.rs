//! What should exist, in a database.
//!
//! Every statement is one that SQLite and PostgreSQL both run, and every statement on a table of
//! tenants names the project: the check is in the query, not only in the handler. The few that
//! cannot are in [`across_projects`]. A test reads the statements and holds both rules.

mod across_projects;
mod connect;
mod error;
mod idempotency;
mod key;
mod row;
mod sandboxes;

pub use connect::Store;
pub use error::StoreError;
pub use idempotency::{Idempotency, Inserted, Subject};
pub use key::KeyRow;
pub use row::SandboxRow;
pub use sandboxes::KeyFate;
