//! What a sandbox may reach, and the record of what it tried.
//!
//! Every value here is in its one canonical form by construction: a name that matched a rule is
//! byte for byte the name that is dialled. Whether a destination is allowed is decided in
//! `dayfly_core::egress`. Start reading at [`EgressPolicy`].

mod host_name;
mod internal;
mod network;
mod never;
mod policy;
mod record;

pub use host_name::{HostName, HostPattern, InvalidHost};
pub use internal::{InternalNetwork, InternalNetworks, InvalidInternalNetwork};
pub use network::{InvalidNetwork, Ipv4Network};
pub use never::NEVER_NETWORKS;
pub use policy::{
    DEFAULT_PORTS, EgressMode, EgressPolicy, EgressRule, EgressTarget, InvalidPolicy, Ports,
};
pub use record::{Decision, DenyReason, EgressRecord, EgressRecordKind, NameSource};
