//! What should exist, in a database.
//!
//! Every statement is one that SQLite and PostgreSQL both run, and every statement on a table of
//! tenants names the project: the check is in the query, not only in the handler. The few that
//! cannot are in [`across_projects`], [`all_projects`], [`projects`] and [`sampling`]. A test reads
//! the statements and holds both rules.

mod across_projects;
mod all_projects;
mod audit;
mod audit_write;
mod builds;
mod connect;
mod copy;
mod cursor;
mod environment;
mod error;
mod events;
mod export;
mod idempotency;
mod identity;
mod key;
mod local_key;
mod meter;
mod network;
mod ordered_templates;
mod port_links;
mod project_state;
mod projects;
mod quota;
mod request_hash;
mod row;
mod sampling;
mod sandboxes;
mod usage_hours;
mod write_check;
mod writer;

pub(crate) use across_projects::ADMIN_PREFIX;
pub use across_projects::PurgeBefore;
pub use all_projects::AuditPlace;
pub use audit::{AuditEvent, AuditPage, AuditRow};
pub use builds::{BuildDocument, BuildRow, BuildState};
pub use connect::Store;
pub use copy::{DatabaseRefusal, check_database, copy_database};
pub use cursor::Cursor;
pub use error::{StoreError, Unavailable};
pub use events::EventRow;
pub use export::NumberedAudit;
pub use idempotency::{Idempotency, Inserted, Subject};
pub use identity::DatabaseIdentity;
pub use key::{KeyPlace, KeyRow, KnownKey, PersonOfKey, Revoked};
pub(crate) use local_key::LOCAL_PREFIX;
pub use meter::SampleRow;
pub use network::{EgressRow, ExpectedEgress};
pub use ordered_templates::{Marked, OrderDocument, OrderKind, OrderRow, TagRow};
pub use port_links::{PortLinkRow, PortOf};
pub use project_state::ProjectState;
pub use projects::{LimitsRow, ProjectRow};
pub use quota::{OverQuota, Used};
pub use request_hash::RequestHash;
#[cfg(test)]
pub(crate) use request_hash::RequestKey;
pub use row::{Ending, SandboxRow, SandboxSpec, SandboxStatus};
pub use sandboxes::{InsertRefusal, KeyFate};
pub use usage_hours::{Amounts, HourPlace, HourSpan, UsageHourRow};
